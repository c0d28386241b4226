package catalog

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/internal/es"
)

// movable is an engine in which the alias al stands for an index.
type movable struct {
	Engine
	ix    es.Index
	asked int
}

func (m *movable) ResolveIndex(context.Context, es.Caller, string) (es.Index, error) {
	m.asked++
	return m.ix, nil
}

func TestANameThatAnswersShowToBeMovedIsAskedAgain(t *testing.T) {
	now := time.Now()
	e := &movable{ix: es.Index{Name: "blue", UUID: "b"}}
	c := New(Options{Engine: e, Now: func() time.Time { return now }})
	resolve := func(name, before string, asked int) {
		t.Helper()
		ix, err := c.Resolve(t.Context(), asker("anna"), "al", 0)
		if err != nil || ix.Name != name || strings.Join(ix.Before, ",") != before || e.asked != asked {
			t.Errorf("%s before %q, asked %d times, %v; want %s before %q, %d times", ix.Name, ix.Before, e.asked, err, name, before, asked)
		}
	}
	resolve("blue", "", 1)
	realm := asker("anna").Realm
	c.Shown(realm, "al", "blue") // nothing of these is moved
	c.Shown(realm, "other", "green")
	c.Shown(asker("bert").Realm, "al", "green")
	resolve("blue", "", 1)
	c.Shown(realm, "al", "green")
	resolve("blue", "green", 2) // an answer from before
	e.ix = es.Index{Name: "green", UUID: "g"}
	c.Shown(realm, "al", "green")
	resolve("green", "blue", 3)
	now = now.Add(aliasAge / 2)
	resolve("green", "blue", 3)
	now = now.Add(aliasAge / 2)
	resolve("green", "blue", 4)
	e.ix = es.Index{Name: "blue", UUID: "b", Shared: true}
	now = now.Add(aliasAge)
	resolve("blue", "green", 5)
	c.Shown(realm, "al", "green") // a read by an alias of several indices may find documents of each
	resolve("blue", "green", 5)
}

// Nobody has asked what the name is, but reads by it have shown that, or it was asked before other indices were changed. It is moved twice.
func TestWhereReadsFoundANameIsKnownOnceItIsMoved(t *testing.T) {
	for how, after := range map[string]func(c *Catalog){
		"nothing else":      func(*Catalog) {},
		"a change":          func(c *Catalog) { c.Forget(asker("anna").Credentials, "foo") },
		"a doubtful answer": func(c *Catalog) { c.Void(asker("anna").Realm, "al") },
	} {
		e := &movable{}
		c := New(Options{Engine: e})
		for _, index := range []string{"blue", "green", "green"} {
			c.Found(asker("anna"), "al", index, true)
			after(c)
		}
		e.ix = es.Index{Name: "red", UUID: "r"}
		ix, err := c.Resolve(t.Context(), asker("anna"), "al", 0)
		if err != nil || strings.Join(ix.Before, ",") != "green,blue" {
			t.Errorf("%s: before it were %q, %v", how, ix.Before, err)
		}
		if ix, err = c.Resolve(t.Context(), asker("bert"), "al", 0); err != nil || len(ix.Before) > 0 {
			t.Errorf("%s: others don't know of it: %q, %v", how, ix.Before, err)
		}
	}
}

// A search by an alias of several indices finds documents of each. That is no move.
func TestWhereSearchesFoundANameOfSeveralIndicesIsNoMove(t *testing.T) {
	for _, several := range []bool{true, false} {
		e := &movable{ix: es.Index{Name: "red", UUID: "r", Shared: several}}
		c := New(Options{Engine: e})
		for i := range 2 * maxPast {
			c.Found(asker("anna"), "al", "blue"+strconv.Itoa(i), false)
		}
		before := c.names.Len()
		ix, err := c.Resolve(t.Context(), asker("anna"), "al", 0)
		if err != nil || several != (len(ix.Before) == 0) || len(ix.Before) > maxPast || before != 1 {
			t.Errorf("several %v: before it were %q, %v", several, ix.Before, err)
		}
	}
}

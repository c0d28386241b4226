package catalog

import (
	"context"
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
		if err != nil || ix.Name != name || ix.Before != before || e.asked != asked {
			t.Errorf("%s before %q, asked %d times, %v; want %s before %q, %d times", ix.Name, ix.Before, e.asked, err, name, before, asked)
		}
	}
	resolve("blue", "", 1)
	realm := asker("anna").Realm
	if c.Shown(realm, "al", "blue") || c.Shown(realm, "other", "green") || c.Shown(asker("bert").Realm, "al", "green") {
		t.Error("nothing is moved")
	}
	resolve("blue", "", 1)
	if !c.Shown(realm, "al", "green") {
		t.Error("it is moved")
	}
	resolve("blue", "", 2) // an answer from before
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
	if c.Shown(realm, "al", "green") {
		t.Error("a read by an alias of several indices may find documents of each")
	}
}

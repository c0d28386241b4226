package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/enginetest"
	"optimist/internal/es"
	"optimist/internal/session"
)

// slow is an engine without indices. Its answers wait until they are let go.
type slow struct {
	Engine
	asked atomic.Int64
	let   chan struct{}
}

func (e *slow) ResolveIndex(context.Context, es.Caller, string) (es.Index, error) {
	e.asked.Add(1)
	<-e.let
	return es.Index{}, es.ErrNoIndex
}

// The items of a bulk into an index that isn't there all need to know, at the same time.
func TestThoseWhoWaitShareThatAnIndexIsMissing(t *testing.T) {
	const callers = 100
	e := &slow{let: make(chan struct{})}
	var clock atomic.Int64 // it goes on whenever somebody looks
	c := New(Options{Engine: e, Now: func() time.Time { return time.Unix(0, clock.Add(1)) }})
	ask := func() {
		if ix, err := c.Resolve(t.Context(), asker("anna"), "shop", 0); err != nil || ix.UUID != "" || ix.Name != "shop" {
			t.Errorf("%+v %v", ix, err)
		}
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(ask)
	}
	enginetest.Wait(t, "all have begun, and one asks", func() bool { return clock.Load() == callers+1 && e.asked.Load() == 1 })
	close(e.let)
	all.Wait()
	if n := e.asked.Load(); n > 2 { // the first may have asked before the others began
		t.Errorf("asked %d times", n)
	}
	before := e.asked.Load()
	if ask(); e.asked.Load() == before {
		t.Error("it isn't asked again: somebody may have made the index since")
	}
}

// remade is an engine whose index is deleted, and made anew. Without a UUID it is gone.
type remade struct {
	Engine
	uuid string
}

func (e *remade) ResolveIndex(_ context.Context, _ es.Caller, name string) (es.Index, error) {
	if e.uuid == "" {
		return es.Index{}, es.ErrNoIndex
	}
	return es.Index{Name: name, UUID: e.uuid}, nil
}

// TestAnIndexThatWasMissingIsNotTheOneBefore: that an index is gone settles what others suspect of it, and the answer from before counted
// again for the rest of its minute, although the index had been made anew.
func TestAnIndexThatWasMissingIsNotTheOneBefore(t *testing.T) {
	for name, finds := range map[string]func(c *Catalog){
		"by a read of a suspected index":     func(c *Catalog) { _, _ = c.Learn(t.Context(), asker("anna"), "shop") },
		"by a read that finds no such index": func(c *Catalog) { c.IsSame(t.Context(), asker("anna"), "shop") },
		"by a write":                         func(c *Catalog) { _, _ = c.Resolve(t.Context(), asker("anna"), "shop", time.Nanosecond) },
	} {
		t.Run(name, func(t *testing.T) {
			e, s := &remade{uuid: "first"}, session.New(session.Options{})
			c := New(Options{Engine: e, Sessions: s, Recreated: s.DropIndex})
			if ix, err := c.Resolve(t.Context(), asker("anna"), "shop", 0); err != nil || ix.UUID != "first" {
				t.Fatalf("%+v %v", ix, err)
			}
			s.DropIndex(session.Credentials{77}, "shop")
			e.uuid = ""
			finds(c)
			if ix, known := c.Cached(asker("anna").Realm, "shop"); known {
				t.Errorf("what is missing is known to be %+v", ix)
			}
			e.uuid = "second"
			for kind, ask := range map[string]func(context.Context, Asker, string) (Index, error){"read": c.LearnFound, "write": func(
				ctx context.Context, a Asker, name string) (Index, error) {
				return c.Resolve(ctx, a, name, 0)
			}} {
				if ix, err := ask(t.Context(), asker("anna"), "shop"); err != nil || ix.UUID != "second" {
					t.Errorf("to a %s it is %+v, %v", kind, ix, err)
				}
			}
		})
	}
}

// TestWhatSearchesHaveShownStaysWhereNoIndexIsCalledSo: of a name of several indices, none is one for which it stood before.
func TestWhatSearchesHaveShownStaysWhereNoIndexIsCalledSo(t *testing.T) {
	c := New(Options{Engine: &remade{}})
	c.Found(asker("anna"), "all", "shop", false)
	if ix, err := c.Learn(t.Context(), asker("anna"), "all"); err != nil || ix.UUID != "" {
		t.Fatalf("%+v %v", ix, err)
	}
	if a := c.last(asker("anna").Realm, "all"); a == nil || !a.value.oneOfMany {
		t.Errorf("%+v", a)
	}
}

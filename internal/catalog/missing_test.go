package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/enginetest"
	"optimist/internal/es"
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

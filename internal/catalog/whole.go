package catalog

import (
	"cmp"
	"context"
	"errors"

	"optimist/internal/es"
	"optimist/internal/outcome"
)

// SeesWhole tells whether the client's view of the index's documents is unfiltered. index is the name as the client gave it,
// routing that of one of its documents. Callers that wait at the same time share the answer, and a failure. The error says that the engine
// couldn't be asked.
func (c *Catalog) SeesWhole(ctx context.Context, asker Asker, index, routing string) (bool, error) {
	began := c.Now()
	e, err := c.entryOf(asker, index)
	if err != nil {
		return false, err
	}
	if a := e.whole.last.Load(); a.fresh(began, 0) {
		return a.value, nil
	}
	if err := e.whole.take(ctx, &asker); err != nil {
		return false, err
	}
	defer e.whole.leave()
	bound := asker.patience()
	now := c.Now()
	if a := e.whole.last.Load(); a.fresh(now, 0) {
		return a.value, nil
	}
	if f := e.whole.failure.Load(); f.counts(began, bound) {
		return false, f.err
	}
	ctx, cancel := detached(ctx, bound)
	defer cancel()
	whole, err := c.Engine.SeesWhole(ctx, asker.Caller, index, routing)
	if _, busy := errors.AsType[*es.StatusError](err); err != nil && !busy {
		whole, err = c.Engine.SeesWhole(ctx, asker.Caller, index, routing) // the question or its answer was lost, and it changes nothing
	}
	if err != nil {
		e.whole.failure.Store(&failure{c.Now(), bound, err})
		return false, err
	}
	a := &answer[bool]{value: whole, askedAt: now, until: now.Add(trustAge)}
	if !a.value {
		a.until = now.Add(refusalAge)
		name := index
		if known := e.index.last.Load(); known != nil {
			name = cmp.Or(known.value.Name, index)
		}
		c.Unguardable.Call(name, outcome.ReasonFiltered)
	}
	e.whole.last.Store(a)
	return a.value, nil
}

// KnownWhole reports whether SeesWhole holds of the client, as far as is known without asking the engine.
func (c *Catalog) KnownWhole(asker Asker, index string) bool {
	e, found := c.names.Get(nameKey{index, asker.Realm})
	if !found {
		return false
	}
	a := e.whole.last.Load()
	return a.fresh(c.Now(), 0) && a.value
}

// Guardable tells whether guards work in the index, as far as is known.
func (c *Catalog) Guardable(asker Asker, ix Index) bool {
	if ix.NoSeqNo {
		return false
	}
	until, found := c.noSeqNo.Get(nameKey{ix.Name, asker.Realm})
	return !found || c.Now().After(until)
}

// RefusedGuard remembers that the engine refused a guard in the index (concrete name), because it has no sequence numbers.
func (c *Catalog) RefusedGuard(asker Asker, index string) {
	c.noSeqNo.Add(asker.network(), nameKey{index, asker.Realm}, c.Now().Add(trustAge))
	c.Unguardable.Call(index, outcome.ReasonSeqNo)
}

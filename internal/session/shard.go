package session

import (
	"sync"

	"optimist/internal/choice"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// shard has the sessions' reads and writes of a part of the documents, and the writes to these documents that are under way. Its methods
// are called with mu held.
type shard struct {
	mu sync.Mutex
	*viewcache.Memory

	store   *Store // the store that the shard is a part of, as New has returned it
	pending repeat.PendingTable[viewcache.Key]
	// inheritances are the claims that first tries have given back for their repeats, until the repeats take them.
	inheritances map[*repeat.Attempt]*claim

	reads []choice.Read // memory for choiceReads
	view  choice.View   // memory for choiceView

	taken [KindExplicit + 1]uint64
}

func newShard(s *Store, bound int64) *shard {
	sh := &shard{store: s, inheritances: make(map[*repeat.Attempt]*claim)}
	sh.Memory = viewcache.New(viewcache.Options{
		Seed: s.seed, MaxAge: int64(s.o.MaxAge), Bound: bound, Reads: s.o.Candidates, Notes: s.notes, Changed: sh.note,
	})
	return sh
}

// startPending counts the write of c as in flight, until endPending. The strings of c's key are the store's own.
func (sh *shard) startPending(c *claim) { c.pending = sh.pending.Start(c.key, c.departure()) }

// endPending counts c's write as no longer in flight, if it was. It returns the repeat that waits for it; nil if there is none.
func (sh *shard) endPending(c *claim) *repeat.Attempt {
	if c.pending == nil {
		return nil
	}
	c.givenUp = c.pending.SawSince(c.arrived)
	return sh.pending.End(c.pending, c.key, c.departure())
}

// handOver reserves the base of a first try for its repeat r. c is the claim that the first try gives back. The claim stays in flight until
// r takes it, so that no other write takes the base or misses it.
func (sh *shard) handOver(c claim, r *repeat.Attempt) {
	if c.took == choice.TakeSent {
		r.Replace(c.first, c.Numbers)
		return
	}
	r.Unfollow()
	c.attempt, sh.inheritances[r] = r, &c
	sh.startPending(&c)
}

// takeInheritance returns the claim that was handed over to a; nil if there is none. A second call returns nil.
func (sh *shard) takeInheritance(a *repeat.Attempt) *claim {
	c := sh.inheritances[a]
	if c != nil {
		delete(sh.inheritances, a)
	}
	return c
}

// release ends a reservation and gives back what was reserved.
func (sh *shard) release(c *claim, gone Epoch, now int64) {
	k, waited, reserved := c.key, sh.endPending(c), c.reserves() || c.took == choice.TakePast && c.outcomeUnknown
	sh.Get(k, gone, now)
	if waited != nil && (c.took == choice.TakeSent || reserved) {
		sh.handOver(*c, waited)
		return
	}
	waited.Unfollow()
	c.first.RepeatFailed(now)
	switch {
	case reserved && c.since < gone:
		sh.Lose(k, c.network, ReasonIndex)
	case reserved && now-c.At >= int64(sh.store.o.MaxAge):
		sh.Lose(k, c.network, ReasonAged)
	case reserved:
		sh.putBack(sh.Put(k, c.network, gone, c.since, now), c)
	case c.Doubt && k.Session.IsImplicit():
		sh.Lose(k, c.network, ReasonEvicted) // the write may have been applied: then it has used the copy up
	case c.Doubt && k.Session.IsNamed() && c.Numbers.Known() && c.since >= gone:
		e := sh.Put(k, c.network, gone, c.since, now)
		e.Spend(&c.View) // the write's change may be in the document: from this view it would count twice
		sh.Settled(e)
	}
}

// putBack gives the reserved read or view of c back to the entry. It drops a view if the session has written since, and a read of a named
// session if the session has read since.
func (sh *shard) putBack(e *viewcache.Entry, c *claim) {
	switch {
	case c.took != choice.TakeView && (!c.key.Session.IsNamed() || e.NewestRead <= c.Order):
		sh.Memory.GiveBack(e, c.Sight, c.sent, c.trace, c.spent)
		e.MadeBy(c.program, c.Numbers)
	case c.took == choice.TakeView && e.NewestView <= c.Order:
		sh.See(e, c.View, c.stored, c.sent)
	}
	if a := c.attempt; c.outcomeUnknown && a != nil {
		e.Repeats.Doubt(a, c.Numbers)
	}
	sh.Settled(e)
}

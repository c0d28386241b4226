package session

import (
	"optimist/internal/repeat"
	"optimist/internal/seen"
)

// claim is what is reserved for a write, and what is needed to end the reservation. The exported fields of Base are the caller's to
// change, so that claim has copies of those that are given back.
type claim struct {
	store *Store
	key   seen.Key
	since Epoch
	taken uint64 // the order of the newest that any session had seen when the base was taken
	kind  Kind

	kept   bool // a later write can be based on what this one leaves
	blind  bool // if the write overwrites a document, its session becomes a blind writer
	viewed bool // the session's own view is reserved
	past   bool // the base is one of the history, of which nothing is reserved
	// doubted says that nobody knows what became of this write, or of its first try. (Doubt says so of any write with this base.)
	doubted bool

	attempt *repeat.Attempt // nil: nobody looks for repeats of it
	guessed bool            // the base is one of several candidates
	trace   Trace           // in which the reserved read was made
	// again says that the write repeats one that was acknowledged. Nothing is reserved for it. first is the write that it repeats, if that
	// is known to have been given up by its client; the base may be the view then.
	again bool
	first *repeat.Attempt
	part  bool // sent is a part of a document, and not what the client has seen

	seen.View           // what was reserved; of a read, what reads and views have in common
	sent, stored []byte // the bodies of View
}

// reads reports whether an outstanding read is reserved.
func (c *claim) reads() bool {
	return !c.viewed && !c.past && (c.kind == KindRead || c.kind == KindAbsent)
}

// guards reports whether a base is reserved that a client has in hand.
func (c *claim) guards() bool { return c.viewed || c.past || c.reads() }

// departure is the claim's write as one that is in flight.
func (c *claim) departure() repeat.Departure {
	d := repeat.Departure{Attempt: c.attempt, Reads: c.reads(), Guards: c.guards()}
	if d.Guards {
		d.Guard = c.Note().Numbers
	}
	return d
}

// depart counts the write of c as in flight, until land is called for it. The strings of c's key are the store's own.
func (sh *shard) depart(c *claim) { sh.inFlight.Depart(c.key, c.departure()) }

// land ends the flight of c's write. It returns the repeat that waits for it; nil if there is none.
func (sh *shard) land(c *claim) *repeat.Attempt { return sh.inFlight.Land(c.key, c.departure()) }

// handOver reserves for the repeat r what its first try gives back: the claim c. The claim stays in flight until r takes it, so that
// no other write takes the base, or finds that it isn't there.
func (sh *shard) handOver(c claim, r *repeat.Attempt) {
	if c.again {
		r.Replace(c.first, c.Numbers)
		return
	}
	r.Inherit()
	c.attempt, sh.inheritances[r] = r, &c
	sh.depart(&c)
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
	k, waited, reserved := c.key, sh.land(c), c.viewed || c.reads() || c.past && c.doubted
	sh.Get(k, gone, now)
	if waited != nil && (c.again || reserved) {
		sh.handOver(*c, waited)
		return
	}
	waited.StartAnew()
	c.first.Repeatable(now)
	switch {
	case reserved && c.since < gone:
		sh.Lose(k, ReasonIndex)
	case reserved && now-c.At >= int64(c.store.o.MaxAge):
		sh.Lose(k, ReasonAged)
	case reserved:
		sh.giveBack(sh.Put(k, gone, c.since, now), c)
	case c.Doubt && k.Session.IsOfHolder():
		sh.Lose(k, ReasonEvicted) // the write may have used the copy up
	case c.Doubt && k.Session.IsNamed() && c.Numbers.Known() && c.since >= gone:
		e := sh.Put(k, gone, c.since, now)
		e.Spend(&c.View) // what the write sent may be in the document, and would count twice
		sh.Settled(e)
	}
}

// giveBack puts what c had reserved back. A view isn't put back if the session has written since, nor a read if a named session has
// read since.
func (sh *shard) giveBack(e *seen.Entry, c *claim) {
	switch {
	case !c.viewed && (!c.key.Session.IsNamed() || e.NewestRead <= c.Order):
		sh.Memory.GiveBack(e, c.Sight, c.sent, c.trace)
	case c.viewed && e.NewestView <= c.Order:
		sh.See(e, c.View, c.stored, c.sent)
	}
	if a := c.attempt; c.doubted && a != nil {
		e.Repeats.Doubt(a, c.Numbers)
	}
	sh.Settled(e)
}

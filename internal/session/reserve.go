package session

import (
	"optimist/internal/repeat"
	"optimist/internal/seen"
)

// claim is what a Base needs to be ended. It has its own copy of what is given back, as the Base's exported fields are
// the caller's to change.
type claim struct {
	store *Store
	key   seen.Key
	since Epoch
	taken uint64 // the order of the newest that was seen then
	kind  Kind

	kept   bool // the write leaves something that a later one can have as its base
	blind  bool // overwriting the document with it makes its session a blind writer
	viewed bool // the own view is reserved
	past   bool // it is one of the history, of which nothing is reserved
	// doubted says that nobody knows what became of this write, or of its first try; doubt, that it is so of some write with this
	// base.
	doubted bool

	attempt *repeat.Attempt // nil: nobody looks for repeats of it
	guessed bool            // the base is one of several
	trace   Trace           // in which the read was made that is reserved
	// again says that it repeats a write that was acknowledged, and that nothing was reserved for it. first is that write, where
	// it is known to have been given up; then the base may also be the view.
	again bool
	first *repeat.Attempt
	part  bool // sent is a part of a document, and not what the client has seen

	seen.View    // what was reserved; of a read, what reads and views have in common. Its bodies are these:
	sent, stored []byte
}

// reads reports whether an outstanding read is reserved.
func (c *claim) reads() bool {
	return !c.viewed && !c.past && (c.kind == KindRead || c.kind == KindAbsent)
}

// guards reports whether a base is reserved that somebody has in hand.
func (c *claim) guards() bool { return c.viewed || c.past || c.reads() }

// departure is the claim's write as it is under way.
func (c *claim) departure() repeat.Departure {
	d := repeat.Departure{Attempt: c.attempt, Reads: c.reads(), Guards: c.guards()}
	if d.Guards {
		d.Guard = c.Note().Numbers
	}
	return d
}

// depart counts the write of c as in flight until it lands. The strings of c's key are the store's own.
func (sh *shard) depart(c *claim) { sh.inFlight.Depart(c.key, c.departure()) }

// land ends the flight of c's write. It returns the repeat that has waited for it, if there is one.
func (sh *shard) land(c *claim) *repeat.Attempt { return sh.inFlight.Land(c.key, c.departure()) }

// handOver reserves for the repeat r what its first try, of c, gives back. It stays in flight, so that nobody takes it, or misses it,
// before r has looked.
func (sh *shard) handOver(c claim, r *repeat.Attempt) {
	if c.again {
		r.Replace(c.first, c.Numbers)
		return
	}
	r.Inherit()
	c.attempt, sh.handed[r] = r, &c
	sh.depart(&c)
}

// inherited is what was handed over to a; nil: nothing. It is a's from now on.
func (sh *shard) inherited(a *repeat.Attempt) *claim {
	c := sh.handed[a]
	if c != nil {
		delete(sh.handed, a)
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
		sh.Lose(k, ReasonEvicted) // it may have used the copy up
	case c.Doubt && k.Session.IsNamed() && c.Numbers.Known() && c.since >= gone:
		e := sh.Put(k, gone, c.since, now)
		e.Spend(&c.View) // what was sent may be in the document, and would count twice
		sh.Settled(e)
	}
}

// giveBack puts what c had reserved where it was, unless a named session has read, or any has written, since.
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

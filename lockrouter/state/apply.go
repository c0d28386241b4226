package state

import "slices"

// Apply carries out the operations of a call, in their order. changed says whether that changed the document. If not, the caller needn't
// write it: then none of the results needs a write.
func (d *Doc) Apply(c *Call, clock Clock) (results []Result, changed bool) {
	if d.Kind == "" {
		d.Lock, d.Kind, d.Holds, d.Queue, d.Freed = c.Lock, c.Kind, []Hold{}, []Entry{}, []int64{}
	}
	a := applying{d: d, c: c, clock: clock, now: max(clock.Now, d.Seen), beat: d.Beat + 1}
	a.purge()
	results = make([]Result, 0, len(c.Ops))
	for i := range c.Ops {
		v, token := a.do(&c.Ops[i])
		results = append(results, Result{v, token})
	}
	a.markTurns()
	if a.changed {
		a.finish(results)
	}
	return results, a.changed
}

// applying is the state of one Apply.
type applying struct {
	d       *Doc
	c       *Call
	clock   Clock
	now     int64
	beat    int64
	changed bool
	lapsed  []Hold
}

// purge removes leases, promises and places in the queue whose time is over.
//
// A place also goes if it has had its turn for longer than Grace without taking the lock: its proxy has died, or is slow. A slow proxy
// comes back and names the age of its waiters, so they lose nothing. It isn't enough that the place lets the next one pass: the places
// further back would still wait.
func (a *applying) purge() {
	d := a.d
	a.lapsed = []Hold{}
	d.Holds = slices.DeleteFunc(d.Holds, func(h Hold) bool {
		if !a.over(h.Until, h.TTL, h.Mark) {
			return false
		}
		a.lapsed = append(a.lapsed, h)
		a.changed = true
		return true
	})
	d.Queue = slices.DeleteFunc(d.Queue, func(e Entry) bool {
		over := a.over(e.Until, e.Left, e.Mark) || e.TurnSince > 0 && a.over(e.TurnSince+a.c.Grace, a.c.Grace, e.TurnMark)
		a.changed = a.changed || over
		return over
	})
	d.Chain = slices.DeleteFunc(d.Chain, func(h Hold) bool {
		over := a.over(h.Until, h.TTL, h.Mark)
		a.changed = a.changed || over
		return over
	})
	a.promote()
}

// promote makes the first promise of the chain a lease, once nobody holds the lock. If the call comes from the proxy that made the promise,
// that proxy is alive, and the lease begins now. Otherwise the lease ends at the time that was promised.
func (a *applying) promote() {
	d := a.d
	if len(d.Holds) == 0 && len(d.Chain) > 0 {
		h := d.Chain[0]
		d.Chain = slices.Delete(d.Chain, 0, 1)
		if a.c.Proxy == d.Promiser {
			h.Until, h.Beat = a.until(h.TTL), a.beat
		}
		d.Holds = append(d.Holds, h)
		a.changed = true
	}
	if len(d.Chain) == 0 {
		d.Chain, d.Promiser = nil, ""
	}
}

// claim makes the promised lease of a token the lease that is held, and returns its place in Holds, or -1 if there is no such promise.
//
// A client that names the token of a promise proves that all leases before it were released: the promising proxy tells the token to its
// waiter only after these releases, and no other proxy tells it at all.
func (a *applying) claim(token int64, owner string) int {
	d := a.d
	i := slices.IndexFunc(d.Chain, func(h Hold) bool { return h.Token == token && h.Owner == owner })
	if i < 0 {
		return -1
	}
	for _, h := range append(d.Holds, d.Chain[:i]...) {
		a.freed(h.Token)
	}
	d.Holds = append(d.Holds[:0:0], d.Chain[i])
	d.Chain = slices.Delete(d.Chain, 0, i+1)
	a.promote()
	a.changed = true
	return 0
}

// over reports whether a time span has ended. Without Clock.Unchanged the clock decides, by until. With it, the time decides for which the
// document was seen unchanged since the mark, by span.
//
// Both count whole milliseconds. The millisecond in which the span ends still belongs to the span, because the holder may have begun to
// count at the end of its first millisecond.
func (a *applying) over(until, span int64, m func() Mark) bool {
	if a.clock.Unchanged == nil {
		return until < a.now
	}
	return a.clock.Unchanged(m()) > span
}

// until is the end of a span that begins now.
func (a *applying) until(span int64) int64 { return a.now + a.clock.Slack + span }

func (a *applying) do(op *Op) (Verdict, int64) {
	switch op.Do {
	case Acquire:
		return a.acquire(op)
	case Renew:
		return a.renew(op)
	case Release:
		return a.release(op)
	case Abandon:
		return a.abandon(op), 0
	}
	a.unqueue(&Entry{Proxy: a.c.Proxy, Class: op.Class, Path: op.Path, Mode: op.Mode})
	return Left, 0
}

func (a *applying) acquire(op *Op) (Verdict, int64) {
	d := a.d
	if i := slices.IndexFunc(d.Chain, func(h Hold) bool { return h.Rid == op.Rid }); i >= 0 {
		return a.again(op, &d.Chain[i]), d.Chain[i].Token
	}
	i := slices.IndexFunc(d.Holds, func(h Hold) bool { return h.Owner == op.Owner && h.Path == op.Path })
	if i >= 0 && a.relayed(a.c.Proxy) {
		i = -1
	}
	if i >= 0 && (d.Holds[i].Mode == Exclusive || op.Mode == Shared) {
		return a.reenter(op, &d.Holds[i]), d.Holds[i].Token
	}
	me := a.entryOf(op)
	_, taken := d.Conflict(op.Owner, op.Path, op.Mode)
	switch taken = taken || a.relayed(a.c.Proxy); {
	case a.blocked(&me, op.Wait), taken && !a.mayPromise(op, &me):
		return a.refuse(op, &me), 0
	case taken:
		return a.promise(op, &me)
	}
	if i >= 0 {
		d.Holds[i].Mode = Exclusive // a shared lease becomes an exclusive one
		return a.reenter(op, &d.Holds[i]), d.Holds[i].Token
	}
	if v := a.room(op, 1, op.Size); v != Acquired {
		return v, 0
	}
	d.Last = Token(d.Last, a.now, op.Salt)
	d.Holds = append(d.Holds, a.lease(op))
	a.changed = true
	a.overtake(&me)
	a.next(op, &me)
	return Acquired, d.Last
}

// relayed reports whether another proxy than the given one may have handed the lock over, though the document doesn't show it yet. If
// so, the holder that the document names may have released its lease.
func (a *applying) relayed(proxy string) bool { return len(a.d.Chain) > 0 && a.d.Promiser != proxy }

func (a *applying) mayPromise(op *Op, me *Entry) bool {
	d := a.d
	mine := func(h Hold) bool { return h.Owner == op.Owner } // an owner that has a lease, or a promise, gets no second one: it re-enters later
	return op.Wait && !a.behind(me) && int64(len(d.Chain)) < op.Chain && d.Kind != Tree && a.clock.Unchanged == nil && !a.relayed(a.c.Proxy) &&
		!slices.ContainsFunc(d.Holds, mine) && !slices.ContainsFunc(d.Chain, mine)
}

// promise puts a lease at the end of the chain. The time of the lease begins now, not when the lease is handed over.
func (a *applying) promise(op *Op, me *Entry) (Verdict, int64) {
	d := a.d
	d.Last = Token(d.Last, a.now, op.Salt)
	d.Chain = append(d.Chain, a.lease(op))
	d.Promiser = a.c.Proxy
	a.changed = true
	a.overtake(me)
	a.next(op, me)
	return Promised, d.Last
}

// again answers a request that has a promise already. The time of the promised lease begins anew.
func (a *applying) again(op *Op, h *Hold) Verdict {
	h.Until, h.Beat = max(h.Until, a.until(h.TTL)), a.beat
	a.changed = true
	me := a.entryOf(op)
	a.next(op, &me)
	return Promised
}

// lease makes the lease of an operation. Its token is the last one that was given.
func (a *applying) lease(op *Op) Hold {
	return Hold{Owner: op.Owner, Token: a.d.Last, Path: op.Path, Mode: op.Mode, Since: a.now, Until: a.until(op.TTL),
		TTL: op.TTL, Beat: a.beat, Rid: op.Rid, Note: op.Note, Client: op.Client, Size: op.Size}
}

// reenter makes the lease of an owner that asks again longer. It never makes the lease shorter: the first request relies on the time in its
// answer.
func (a *applying) reenter(op *Op, h *Hold) Verdict {
	h.TTL = max(h.TTL, op.TTL)
	h.Until, h.Beat = a.until(h.TTL), a.beat
	a.note(op, h)
	a.changed = true
	me := a.entryOf(op)
	a.next(op, &me)
	if h.Rid == op.Rid {
		return Acquired
	}
	h.Rid = "" // neither request may end the lease by Abandon: the other one relies on it
	return Reentered
}

func (a *applying) renew(op *Op) (Verdict, int64) {
	i := a.held(op)
	if i < 0 {
		return a.unknown(op), 0
	}
	h := &a.d.Holds[i]
	if op.TTL > 0 {
		h.TTL = op.TTL
	}
	h.Until, h.Beat = a.until(h.TTL), a.beat
	a.note(op, h)
	a.changed = true
	return Renewed, h.Token
}

func (a *applying) release(op *Op) (Verdict, int64) {
	if i := a.held(op); i >= 0 {
		a.free(i)
		return Released, op.Token
	}
	if op.Token > 0 && slices.Contains(a.d.Freed, op.Token) {
		a.changed = true // the client relies on this answer: only a write proves that the document is current
		return Released, op.Token
	}
	return a.unknown(op), 0
}

func (a *applying) abandon(op *Op) Verdict {
	if i := slices.IndexFunc(a.d.Holds, func(h Hold) bool { return h.Rid == op.Rid }); i >= 0 {
		a.free(i)
	} else if i := slices.IndexFunc(a.d.Chain, func(h Hold) bool { return h.Rid == op.Rid }); i >= 0 {
		a.d.Chain = slices.Delete(a.d.Chain, i, i+1)
		a.promote()
		a.changed = true
	}
	return Released
}

// free ends a lease.
func (a *applying) free(i int) {
	a.freed(a.d.Holds[i].Token)
	a.d.Holds = slices.Delete(a.d.Holds, i, i+1)
	a.promote()
	a.changed = true
}

func (a *applying) freed(token int64) {
	d, most := a.d, maxFreed
	if d.Kind == Tree {
		most = ofTrees
	}
	d.Freed = append(d.Freed, token)
	if len(d.Freed) > most {
		d.Freed = slices.Delete(d.Freed, 0, len(d.Freed)-most)
	}
}

// held returns the place in Holds of the lease that an operation names: with its token, its owner and its path. If that lease is only
// promised yet, held makes it a held one. -1: there is none.
func (a *applying) held(op *Op) int {
	i := slices.IndexFunc(a.d.Holds, func(h Hold) bool { return h.Token == op.Token && h.Owner == op.Owner && h.Path == op.Path })
	if i < 0 {
		return a.claim(op.Token, op.Owner)
	}
	return i
}

// unknown says why held has found no lease for an operation.
func (a *applying) unknown(op *Op) Verdict {
	d := a.d
	for _, leases := range [][]Hold{d.Holds, d.Chain} {
		if i := slices.IndexFunc(leases, func(h Hold) bool { return h.Token == op.Token }); i >= 0 && leases[i].Owner == op.Owner {
			return Missing // the lease is on another path
		} else if i >= 0 {
			return NotOwner
		}
	}
	switch {
	case op.Token > 0 && d.Last > 0:
		return Expired // also if the token is larger than the last one: a client that guesses mustn't learn whether to guess higher or lower
	case op.Token > 0 || len(d.Holds) == 0:
		return Missing
	case slices.ContainsFunc(d.Holds, func(h Hold) bool { return h.Owner == op.Owner }):
		return NoToken
	}
	return NotOwner
}

// finish sets the fields of the document that each write sets.
func (a *applying) finish(results []Result) {
	d := a.d
	d.Seen, d.Beat, d.Results, d.Lapsed = a.now, a.beat, results, a.lapsed
	d.Owners, d.Since = nil, 0
	for i := range d.Holds {
		h := &d.Holds[i]
		if !slices.Contains(d.Owners, h.Owner) {
			d.Owners = append(d.Owners, h.Owner)
		}
		if d.Since == 0 || h.Since < d.Since {
			d.Since = h.Since
		}
	}
}

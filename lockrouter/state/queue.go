package state

import "slices"

// The queue of a document: who goes before whom.

// entryOf is the entry that the operation has, or would have, in the queue.
func (a *applying) entryOf(op *Op) Entry {
	e := Entry{Proxy: a.c.Proxy, Class: op.Class, Path: op.Path, Mode: op.Mode, Owner: op.Owner, Rid: op.Rid, Since: a.now - op.Age}
	if !op.Wait {
		e.Since = a.now + 1 // behind all who wait
	}
	if i := a.d.entry(&e); i >= 0 && op.Wait && a.d.Queue[i].Rid == op.Rid {
		return a.d.Queue[i]
	} else if i >= 0 && op.Wait {
		e.Passed = a.d.Queue[i].Passed
	}
	return e
}

// blocked reports whether others come first.
func (a *applying) blocked(me *Entry, waits bool) bool {
	for i := range a.d.Queue {
		e := &a.d.Queue[i]
		if (!waits || !e.same(me)) && against(e.Path, e.Mode, me.Path, me.Mode) && before(e, me, a.c.Bound) {
			return true
		}
	}
	return false
}

// before reports whether e comes before o: the foreground first, and with it those of the background whom too many have passed; then
// who came first.
func before(e, o *Entry, bound int64) bool {
	eFirst, oFirst := e.Class == Foreground || e.Passed >= bound, o.Class == Foreground || o.Passed >= bound
	switch {
	case eFirst != oFirst:
		return eFirst
	case e.Since != o.Since:
		return e.Since < o.Since
	case e.Proxy != o.Proxy:
		return e.Proxy < o.Proxy
	case e.Class != o.Class:
		return e.Class == Foreground
	}
	return e.Path < o.Path
}

// behind reports whether somebody of the same entry has asked before in this call, and waits.
func (a *applying) behind(me *Entry) bool {
	i := a.d.entry(me)
	if i < 0 {
		return false
	}
	e := &a.d.Queue[i]
	return e.Beat == a.beat && e.Rid != me.Rid && e.Since <= me.Since
}

// refuse puts who waits into the queue.
func (a *applying) refuse(op *Op, me *Entry) Verdict {
	if !op.Wait {
		return Held
	}
	if a.behind(me) {
		return Queued
	}
	me.Count, me.Left = 1+op.Behind.Count, max(op.Left, op.Behind.Left)
	a.put(me)
	return Queued
}

// next gives the entry of who has got a lease to those who wait behind.
func (a *applying) next(op *Op, me *Entry) {
	if !op.Wait {
		return
	}
	b := &op.Behind
	if b.Count == 0 {
		a.unqueue(me)
		return
	}
	a.put(&Entry{Proxy: me.Proxy, Class: me.Class, Path: me.Path, Mode: me.Mode, Owner: b.Owner, Rid: b.Rid, Since: a.now - b.Age,
		Count: b.Count, Left: b.Left})
}

// put writes an entry.
func (a *applying) put(e *Entry) {
	e.Until, e.Beat = a.until(e.Left), a.beat
	a.changed = true
	if i := a.d.entry(e); i >= 0 {
		a.d.Queue[i] = *e
		return
	}
	a.d.Queue = append(a.d.Queue, *e)
}

func (a *applying) unqueue(e *Entry) {
	if i := a.d.entry(e); i >= 0 {
		a.d.Queue = slices.Delete(a.d.Queue, i, i+1)
		a.changed = true
	}
}

// overtake counts for those of the background that one of the foreground went past.
func (a *applying) overtake(me *Entry) {
	if me.Class != Foreground {
		return
	}
	for i := range a.d.Queue {
		if e := &a.d.Queue[i]; e.Class == Background && against(e.Path, e.Mode, me.Path, me.Mode) {
			e.Passed++
		}
	}
}

// markTurns tells those in the queue whose turn it is: from now on they have the call's Grace to take their lock.
func (a *applying) markTurns() {
	d := a.d
	for i := range d.Queue {
		e := &d.Queue[i]
		_, taken := d.Conflict(e.Owner, e.Path, e.Mode)
		turn := !taken && !a.relayed(e.Proxy)
		for j := range d.Queue {
			o := &d.Queue[j]
			if turn && j != i && against(o.Path, o.Mode, e.Path, e.Mode) && before(o, e, a.c.Bound) {
				turn = false
			}
		}
		switch {
		case turn && e.TurnSince == 0:
			e.TurnSince, e.TurnBeat, a.changed = a.now, a.beat, true
		case !turn && e.TurnSince != 0:
			e.TurnSince, e.TurnBeat, a.changed = 0, 0, true
		}
	}
}

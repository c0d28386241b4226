package lockrouter

import "optimist/lockrouter/state"

// When the waiters of a lane may get the lock, as far as its document says.

// observe notes the document as it is now, and finds out which groups may get the lock, now or later.
func (l *lane) observe(d *state.Doc) {
	now := l.r.now()
	changed := !l.known || (d == nil) != (l.doc == nil) || d != nil && (d.Beat != l.doc.Beat || d.Seen != l.doc.Seen)
	l.version++
	if changed {
		l.doc, l.known, l.seenAt = d, true, now
		l.tick = firstTick.Milliseconds()
		if d != nil && d.Seen > 0 && d.Beat > 0 {
			l.watch.See(d, now)
		} else {
			l.watch.See(nil, now)
		}
	} else {
		l.tick = min(l.tick*3/2, lastTick.Milliseconds())
	}
	l.lookAt = now + l.tick
	l.follow(d)
	l.withdraw(now)
	l.tidy()
	l.judge(now)
}

// judge marks the groups that may get the lock now as due, and finds out when the next one may get it.
func (l *lane) judge(now int64) {
	l.tryAt = never
	for g, stands := range l.standing() {
		if !stands || len(g.waiters) == 0 {
			continue
		}
		at := l.chance(g)
		if at <= now {
			g.due = true
		} else {
			l.tryAt = min(l.tryAt, at)
		}
	}
}

// chance returns when a group should ask. It is now if the group isn't in the queue, if its turn has come, or if the document's count of
// its waiters is too wrong. Else it is when the leases before it will have ended. All proxies ask then, because the proxy of the first in
// the queue may have died.
func (l *lane) chance(g *group) int64 {
	if l.doc == nil || l.doc.Beat == 0 {
		return 0
	}
	if len(l.reentering(g)) > 0 {
		return 0
	}
	head := g.first()
	if head == nil { // all waiters have promises; the next of them asks when the holder's lease has ended, at the latest
		return l.ends(g, "")
	}
	e, ok := l.doc.Entry(l.r.queue, g.class, g.path, g.mode)
	n, until := g.queued()
	if !ok || e.TurnSince > 0 || n > 2*e.Count || 2*n < e.Count { // others see from the entry how many wait
		return 0
	}
	at := l.ends(g, head.op.Owner)
	for i := range l.doc.Queue {
		if q := &l.doc.Queue[i]; q.TurnSince > 0 {
			if since, ok := l.watch.Since(q.TurnMark()); ok {
				at = min(at, since+l.r.grace()+1)
			}
		}
	}
	if end, ok := l.watch.Since(e.Mark()); ok {
		end += e.Left
		if until > end+e.Left/4 { // waiters have joined that wait for longer than the entry says
			at = min(at, end-e.Left/4)
		}
	}
	return at
}

// reentering returns the waiters of a group whose owner has the lock already. They come before all others. Such a request waits because its
// proxy didn't know that, or because another proxy had promises.
func (l *lane) reentering(g *group) []*waiter {
	var found []*waiter
	owners := l.owners(g)
	for _, w := range g.waiters {
		if owners[w.op.Owner] && !w.promised && len(found) < maxReaders {
			found = append(found, w)
		}
	}
	return found
}

// owners returns who has the lock that a group waits for, and may re-enter it now, as far as this proxy knows.
func (l *lane) owners(g *group) map[string]bool {
	owners := map[string]bool{}
	if l.doc == nil || len(l.doc.Chain) > 0 && l.doc.Promiser != l.r.queue {
		return owners
	}
	for i := range l.doc.Holds {
		if h := &l.doc.Holds[i]; h.Path == g.path && (h.Mode == state.Exclusive || g.mode == state.Shared) {
			owners[h.Owner] = true
		}
	}
	return owners
}

// ends returns when the leases that keep an owner from a group's lock will have ended.
func (l *lane) ends(g *group, owner string) int64 {
	last := int64(0)
	for i := range l.doc.Holds {
		if h := &l.doc.Holds[i]; h.Owner != owner && h.Against(g.path, g.mode) {
			last = max(last, l.lapse(h))
		}
	}
	if last == 0 {
		return never
	}
	return last
}

// first returns the first waiter of a group without a promise; nil: all have promises. Waiters with a promise stand before all others.
func (g *group) first() *waiter {
	for _, w := range g.waiters {
		if !w.promised {
			return w
		}
	}
	return nil
}

// queued returns how many waiters of a group have no promise, and when the last of them stops waiting.
func (g *group) queued() (n, until int64) {
	for _, w := range g.waiters {
		if !w.promised {
			n, until = n+1, max(until, w.until)
		}
	}
	return n, until
}

// lapse returns when a lease will have ended, by this process's clock. That may be late by the time between two looks, but never early.
func (l *lane) lapse(h *state.Hold) int64 {
	if l.r.o.Store.Timed() {
		return l.seenAt + max(h.Until-l.doc.Seen, 0) + 1
	}
	since, ok := l.watch.Since(h.Mark())
	if !ok {
		return never
	}
	return since + h.TTL + 1
}

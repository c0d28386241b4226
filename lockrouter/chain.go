package lockrouter

import (
	"slices"
	"time"

	"optimist/lockrouter/state"
)

// Of a lock that many want and nobody keeps for long, the document promises the lease to the next few who wait here. A release then hands
// it over at once, and the document follows: a lock goes from hand to hand faster than documents are written. See state.Relay for why that
// is safe.

const (
	// quick is how long holders of a lock keep it at most for the next to be promised theirs. A promise begins when it is made, not when it
	// is kept.
	quick = 100 * time.Millisecond
	// slow is how long a holder has kept a lock when promises are taken back: they keep everybody else from it, and its owner from
	// re-entering elsewhere.
	slow = 500 * time.Millisecond
)

// chaining reports whether the document may promise waiters of this lane their leases.
func (l *lane) chaining() bool {
	return l.quick && l.r.o.Chain > 0 && l.kind != state.Tree && l.r.o.Store.Timed()
}

// chainable reports whether a waiter may be promised its lease. The lease must not be longer than the default: if this proxy
// dies, its promises last for their ttl. Nor may it be shorter than a slow holder and two looks: a lease begins when it is
// promised, and must not end before this proxy sees that its turn has come.
func (l *lane) chainable(w *waiter) bool {
	return w.op.TTL <= l.r.o.TTL.Milliseconds() && w.op.TTL >= (slow+2*lastTick).Milliseconds()
}

// seats is how long the document's chain may become by a waiter's operation.
func (l *lane) seats(w *waiter) int64 {
	if !l.chaining() || !l.chainable(w) {
		return 0
	}
	return int64(l.r.o.Chain)
}

// heads are the waiters of a group that ask: the first, or the first few if they don't exclude each other or can be promised
// their leases.
func (l *lane) heads(g *group) []*waiter {
	if g.mode == state.Shared {
		return g.waiters[:min(len(g.waiters), maxReaders)]
	}
	n := 1
	if l.chaining() {
		n = max(1, l.r.o.Chain-l.relay.Seats())
	}
	var heads []*waiter
	for _, w := range g.waiters {
		if w.promised && l.relay.Leads() {
			continue // a release will hand it over
		}
		heads = append(heads, w)
		if len(heads) == n || !l.chainable(w) {
			break
		}
	}
	return heads
}

// noteGrant takes note of a lease that the document gave to a waiter or a task of this lane.
func (l *lane) noteGrant(h state.Hold) {
	l.relay.NoteGrant(h)
	l.since = l.r.now()
}

// promise takes note of a lease that the document promised to a waiter.
func (l *lane) promise(w *waiter, o outcome) {
	i := slices.IndexFunc(o.doc.Chain, func(h state.Hold) bool { return h.Token == o.result.Token })
	if i < 0 {
		return // it has ended already
	}
	o.hold, o.result.Verdict = o.doc.Chain[i], state.Acquired
	w.seat = o
	if !w.promised {
		w.promised = true
		l.promised = append(l.promised, w)
	}
	l.relay.NotePromise(o.hold, o.sent.Sub(l.r.epoch).Milliseconds())
}

// follow takes note of what the document says of promises.
func (l *lane) follow(d *state.Doc) {
	l.relay.NoteDoc(d, l.r.queue)
	for _, w := range slices.Clone(l.promised) {
		if d == nil || d.Promiser != l.r.queue || !slices.ContainsFunc(d.Chain, func(h state.Hold) bool { return h.Rid == w.op.Rid }) {
			l.unpromise(w) // it has ended, or its turn has come without a release here: it asks again, with the same request
			w.g.due = true
		}
	}
	l.hand()
}

func (l *lane) unpromise(w *waiter) {
	w.promised = false
	l.promised = slices.DeleteFunc(l.promised, func(o *waiter) bool { return o == w })
}

// noteRelease takes note of a release that is about to be sent, and hands the lock over.
func (l *lane) noteRelease(k *task) {
	h, ok := l.relay.Release(k.op.Owner, k.op.Token)
	if !ok {
		return
	}
	now := l.r.now()
	l.quick = now-l.since <= quick.Milliseconds()
	k.follow = now + h.TTL
	l.hand()
}

// hand gives the lock to the next one who was promised it.
func (l *lane) hand() {
	for {
		now := l.r.now()
		h, ok := l.relay.Next(now)
		if !ok {
			return
		}
		i := slices.IndexFunc(l.promised, func(w *waiter) bool { return w.op.Rid == h.Rid })
		if i < 0 || l.promised[i].gone {
			l.relay.Release(h.Owner, h.Token) // it has left, and gives its seat back when the call with it is settled
			continue
		}
		w := l.promised[i]
		l.remove(w)
		w.handed = true
		l.since = now
		w.done <- w.seat
	}
}

// withdraw takes promises back if the holder keeps the lock for long. No call may be out.
func (l *lane) withdraw(now int64) {
	if len(l.promised) == 0 || now-l.since < slow.Milliseconds() {
		return
	}
	for _, w := range l.promised {
		l.tasks = append(l.tasks, l.r.abandonment(&w.op))
		w.op.Rid = l.r.rid() // what is done to the old request, however late, isn't done to the new one
		w.promised, w.g.due = false, true
	}
	l.promised, l.quick = nil, false
	l.relay.Withdraw()
}

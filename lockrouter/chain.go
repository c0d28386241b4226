package lockrouter

import (
	"slices"
	"time"

	"optimist/lockrouter/state"
)

// Promises are for locks that many want, and that each holder keeps for a short time only. The lock's document promises the lease to the
// next few waiters of this proxy. At a release, this proxy hands the lock to the next of them at once, and writes the document afterwards.
// So a lock is handed on faster than documents can be written. state.Relay says why that is safe.

const (
	// quick bounds how long the last holder may have kept the lock, for promises to be made. A promised lease already runs while its waiter
	// waits, so that waiters behind slow holders would get leases that are nearly over.
	quick = 100 * time.Millisecond
	// slow is how long a holder may keep the lock before promises are taken back. Promises keep waiters of other proxies from the lock, and
	// keep its owner from re-entering it through another proxy.
	slow = 500 * time.Millisecond
)

// chaining reports whether the document may promise waiters of this lane their leases.
func (l *lane) chaining() bool {
	return l.quick && l.r.o.Chain > 0 && l.kind != state.Tree && l.r.o.Store.Timed()
}

// chainable reports whether a waiter may be promised its lease. The lease must not be longer than the default, because promises of a dead
// proxy last for their whole length. It must not be shorter than slow and two looks, because it runs from the promise on, and must not end
// before this proxy sees that its turn has come.
func (l *lane) chainable(w *waiter) bool {
	return w.op.TTL <= l.r.o.TTL.Milliseconds() && w.op.TTL >= (slow+2*lastTick).Milliseconds()
}

// seats is how many promises the document may hold after a waiter's operation.
func (l *lane) seats(w *waiter) int64 {
	if !l.chaining() || !l.chainable(w) {
		return 0
	}
	return int64(l.r.o.Chain)
}

// heads returns the waiters of a group that ask with the next call. That is the first one. For a shared lock, or if leases are promised, it
// is the first few.
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
			continue // the next release gives it the lock
		}
		heads = append(heads, w)
		if len(heads) == n || !l.chainable(w) {
			break
		}
	}
	return heads
}

// noteGrant notes that a waiter or a task of this lane got the lease h.
func (l *lane) noteGrant(h state.Hold) {
	l.relay.NoteGrant(h)
	l.since = l.r.now()
}

// promise notes that the document has promised a waiter its lease.
func (l *lane) promise(w *waiter, o outcome) {
	i := slices.IndexFunc(o.doc.Chain, func(h state.Hold) bool { return h.Token == o.result.Token })
	if i < 0 {
		return // the promised lease has ended already
	}
	o.hold, o.result.Verdict = o.doc.Chain[i], state.Acquired
	w.seat = o
	if !w.promised {
		w.promised = true
		l.promised = append(l.promised, w)
	}
	l.relay.NotePromise(o.hold, o.sent.Sub(l.r.epoch).Milliseconds())
}

// follow compares the promises with the document as it is now. A waiter whose promise is gone asks again.
func (l *lane) follow(d *state.Doc) {
	l.relay.NoteDoc(d, l.r.queue)
	for _, w := range slices.Clone(l.promised) {
		if d == nil || d.Promiser != l.r.queue || !slices.ContainsFunc(d.Chain, func(h state.Hold) bool { return h.Rid == w.op.Rid }) {
			l.unpromise(w) // it ended, or its turn came without a release here. The waiter asks again, with the same request id
			w.g.due = true
		}
	}
	l.hand()
}

func (l *lane) unpromise(w *waiter) {
	w.promised = false
	l.promised = slices.DeleteFunc(l.promised, func(o *waiter) bool { return o == w })
}

// noteRelease notes a release that is about to be sent, and hands the lock to the next waiter with a promise.
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

// hand gives the lock to the next waiter with a promise, if the lock is free.
func (l *lane) hand() {
	for {
		now := l.r.now()
		h, ok := l.relay.Next(now)
		if !ok {
			return
		}
		i := slices.IndexFunc(l.promised, func(w *waiter) bool { return w.op.Rid == h.Rid })
		if i < 0 || l.promised[i].gone {
			l.relay.Release(h.Owner, h.Token) // the waiter's client has left; its lease is released when the call with it is settled
			continue
		}
		w := l.promised[i]
		l.remove(w)
		w.handed = true
		l.since = now
		w.done <- w.seat
	}
}

// withdraw takes the promises back if the holder has kept the lock for too long. Call it only while no call is out.
func (l *lane) withdraw(now int64) {
	if len(l.promised) == 0 || now-l.since < slow.Milliseconds() {
		return
	}
	for _, w := range l.promised {
		l.tasks = append(l.tasks, l.r.abandonment(&w.op))
		w.op.Rid = l.r.Rid() // a late operation on the old request id must not hit the new request
		w.promised, w.g.due = false, true
	}
	l.promised, l.quick = nil, false
	l.relay.Withdraw()
}

package lockrouter

import (
	"crypto/rand"
	"encoding/binary"
	"iter"
	"slices"

	"optimist/lockrouter/state"
)

// One call of a lane: which operations go into it, and who gets their results.

// The bounds of one call. They are small because the engine runs the call as one script.
const (
	maxTasks   = 64
	maxGroups  = 48 // groups of the foreground that this proxy has in a document's queue
	maxBehind  = 16 // groups of the background there: these have places of their own, because the queue owes them a turn
	maxReaders = 32 // waiters of a group that ask at once: for a shared lock, or for one that their owner has already
)

// parcel is one call, with the tasks and waiters whose operations are in it, in their order.
type parcel struct {
	call   *state.Call
	before []*task // releases and renewals
	asking []*waiter
	tries  []*task // acquisitions that only try once
}

// call makes a call for a lock's document. proxy is this proxy's name: it has one for the calls of its lanes, which queue, and another one
// for all other calls. Each acquisition gets a random salt, so that no owner can guess another owner's token from its own.
func (r *Router) call(lock string, kind state.Kind, proxy string, ops []state.Op) *state.Call {
	complete(ops)
	most := int64(r.o.MostHeld)
	return &state.Call{Lock: lock, Kind: kind, Proxy: proxy, Bound: int64(r.o.Bound), Grace: r.grace(), Most: most, Bytes: state.Bytes(most),
		Ops: ops}
}

// complete fills in the fields of operations that no request sets.
func complete(ops []state.Op) {
	for i := range ops {
		switch op := &ops[i]; op.Do {
		case state.Acquire:
			op.Salt = salt()
			op.Measure()
		case state.Renew:
			op.Measure()
		}
	}
}

// salt is a random number from 0 on.
func salt() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, says its documentation
	return int64(binary.BigEndian.Uint64(b[:]) >> 2)
}

// change makes a call with one operation. The call bypasses the lanes.
func (r *Router) change(t *target, op state.Op) Change {
	return Change{t.id, r.call(t.root, t.kind, r.name, []state.Op{op})}
}

// assemble makes the next call. Releases and renewals come first, then the acquisitions of waiters, then those of requests that only try
// once. A release and the waiters that want its lock go into the same call, so that one call hands a lock over.
//
// If there are more releases than one call takes, no waiter asks until all of them are carried out. One of these releases may be of a lock
// that was handed over already. If its old holder asked now, it would get the lock back as the lock's present holder.
func (l *lane) assemble() *parcel {
	r, now := l.r, l.r.now()
	first := func(a, b *task) int { return rank(a) - rank(b) }
	if !slices.IsSortedFunc(l.tasks, first) {
		slices.SortStableFunc(l.tasks, first)
	}
	n := min(len(l.tasks), maxTasks)
	more := n < len(l.tasks) && rank(l.tasks[n]) == 0
	tasks := slices.Clone(l.tasks[:n])
	l.tasks = slices.Delete(l.tasks, 0, n)
	freeing := slices.ContainsFunc(tasks, func(k *task) bool { return k.op.Do == state.Release || k.op.Do == state.Abandon })
	var asking, early []*waiter
	for g, stands := range l.standing() {
		if more {
			g.due = g.due || freeing
			continue
		}
		var heads []*waiter
		if stands && (g.due || freeing) {
			heads = l.heads(g)
		}
		if g.due {
			asks := func(w *waiter) bool { return slices.Contains(heads, w) }
			early = append(early, slices.DeleteFunc(l.reentering(g), asks)...)
		}
		asking = append(asking, heads...)
		g.due = false
	}
	ops := make([]state.Op, 0, len(tasks)+len(asking))
	var before, tries []*task
	for _, k := range tasks {
		if rank(k) > 0 {
			tries = append(tries, k)
			continue
		}
		before, ops = append(before, k), append(ops, k.op)
	}
	for _, w := range asking {
		w.inCall = true
		op := w.ask(now)
		op.Chain = l.seats(w)
		ops = append(ops, op)
	}
	for _, w := range early {
		w.inCall = true
		ops = append(ops, w.op) // without a place in the queue: if its owner hasn't the lock any more, it goes on waiting
	}
	asking = append(asking, early...)
	for _, k := range tries {
		ops = append(ops, k.op)
	}
	return &parcel{r.call(l.lock, l.kind, r.queue, ops), before, asking, tries}
}

// standing yields the groups, each with whether it has a place in the document's queue. In each class, the groups whose first waiter has
// waited for longest have the places.
func (l *lane) standing() iter.Seq2[*group, bool] {
	return func(yield func(*group, bool) bool) {
		var n [2]int
		for _, g := range l.groups {
			class := classIndex(g.class)
			if n[class]++; !yield(g, n[class] <= [2]int{maxGroups, maxBehind}[class]) {
				return
			}
		}
	}
}

// rank is a task's place in a call: 0 for releases and renewals, 1 for requests that only try once.
func rank(k *task) int {
	if k.op.Do == state.Acquire {
		return 1
	}
	return 0
}

// ask returns the operation by which a waiter asks for its lock. The operation also says which waiters of the group come after this one.
// Those with a promise aren't in the queue.
func (w *waiter) ask(now int64) state.Op {
	op := w.op
	op.Wait, op.Age, op.Left = true, now-w.came, max(w.until-now, 1)
	i := slices.Index(w.g.waiters, w)
	b := &op.Behind
	for _, o := range w.g.waiters[i+1:] {
		if o.promised {
			continue
		}
		if b.Count++; b.Count == 1 {
			b.Owner, b.Rid, b.Age = o.op.Owner, o.op.Rid, now-o.came
		}
		b.Left = max(b.Left, o.until-now)
	}
	return op
}

// settle gives each task and waiter in a call its outcome.
func (l *lane) settle(p *parcel, o *outcome, results []state.Result) {
	l.failed = 0
	l.r.storeUp()
	l.lapses(o.doc, results)
	next := 0
	take := func() outcome {
		got := *o
		got.result = results[next]
		got.hold, _ = got.doc.Holding(got.result.Token)
		next++
		return got
	}
	for _, k := range p.before {
		k.deliver(l, take())
	}
	for _, w := range p.asking {
		w.answer(l, take())
	}
	for _, k := range p.tries {
		k.deliver(l, take())
	}
	l.observe(o.doc)
}

// deliver gives a task its outcome. If the task's client has left, its lease is released.
func (k *task) deliver(l *lane, o outcome) {
	switch {
	case k.gone && o.result.Verdict == state.Acquired:
		l.abandon(&k.op)
	case k.done != nil:
		if o.result.Verdict.Grants() {
			l.noteGrant(o.hold)
		}
		k.done <- o
	}
}

// answer gives a waiter its lock, or leaves it waiting.
func (w *waiter) answer(l *lane, o outcome) {
	w.inCall, w.unsure = false, false
	got := o.result.Verdict.Grants()
	promised := o.result.Verdict == state.Promised
	if promised || o.result.Verdict == state.Queued {
		w.countContention(l)
	}
	switch {
	case w.handed: // a release has given it the lock while the call was out
	case w.gone, w.expired && promised:
		l.remove(w)
		if got || promised {
			l.abandon(&w.op)
		}
		if !w.gone {
			w.done <- o
		}
	case promised:
		l.promise(w, o)
	case got, o.result.Verdict != state.Queued && o.result.Verdict != state.Held, w.expired:
		if o.result.Verdict == state.Held {
			o.result.Verdict = state.Queued
		}
		if !got {
			o.nth = l.nth(w, o.doc)
		}
		l.remove(w)
		if got {
			l.noteGrant(o.hold)
		}
		w.done <- o
	}
}

// fault is called after a call without an answer. The store may have carried the call out, or not. Waiters go on waiting. Tasks are tried
// again for a while: every operation can be repeated.
func (l *lane) fault(p *parcel, err error) {
	now := l.r.now()
	if l.failed == 0 {
		l.failed = now
	}
	l.r.storeDown(l.lock, err)
	var again []*task
	defer func() { l.tasks = append(again, l.tasks...) }()
	for _, k := range slices.Concat(p.before, p.tries) {
		k.unsure = k.unsure || uncertain(err)
		switch {
		case k.op.Do == state.Abandon:
			l.doubt(k)
			continue
		case now < k.until && (!k.gone || k.op.Do != state.Acquire) && l.r.ctx.Err() == nil:
			again = append(again, k)
			continue
		case k.done != nil:
			k.done <- outcome{err: err}
		}
		if now < k.follow {
			again = append(again, &task{op: k.op, came: now, until: k.follow})
		}
		if k.op.Do == state.Acquire && k.unsure {
			l.doubt(l.r.abandonment(&k.op))
		}
	}
	for _, w := range p.asking {
		if w.handed {
			continue
		}
		w.inCall, w.unsure = false, w.unsure || uncertain(err) // the next call asks again, with the same request
		w.g.due = true
		switch {
		case w.gone:
			l.drop(w)
		case w.expired:
			l.drop(w)
			w.done <- outcome{err: err}
		}
	}
}

package lockrouter

import (
	"iter"
	"slices"

	"optimist/lockrouter/state"
)

// One call of a lane: what goes into it, and what becomes of it.

// The bounds of one call: the script that carries it out is one step of the engine.
const (
	maxTasks   = 64
	maxGroups  = 48 // of the foreground that stand in a document's queue at once
	maxBehind  = 16 // of the background: it is owed its turn, which the queue counts, and so has places of its own
	maxReaders = 32 // of a group that ask at once
)

// parcel is one call, and who waits for it.
type parcel struct {
	call   *state.Call
	tasks  []*task
	asking []*waiter
}

// call is one of this proxy for a lock's document. In the queue a proxy has another name than where nobody waits.
func (r *Router) call(lock string, kind state.Kind, proxy string, ops []state.Op) *state.Call {
	return &state.Call{Lock: lock, Kind: kind, Proxy: proxy, Bound: int64(r.o.Bound), Grace: r.grace(), Most: int64(r.o.MostHeld), Ops: ops}
}

// change is a call of one operation, past those who wait.
func (r *Router) change(t *target, op state.Op) Change {
	return Change{t.id, r.call(t.root, t.kind, r.name, []state.Op{op})}
}

// split tells those who only try from those before, who go first in a call.
func split(tasks []*task) (first, tries []*task) {
	i := slices.IndexFunc(tasks, func(k *task) bool { return k.op.Do == state.Acquire })
	if i < 0 {
		i = len(tasks)
	}
	return tasks[:i], tasks[i:]
}

// assemble makes a call of what there is: releases and renewals first, then those who wait, then those who only try. A release asks
// for those who wait for what it frees: the hand-over is one call. Where there are more releases than go into one, nobody asks before all
// were carried out: a lock may have been handed on by one of them, and its old holder would re-enter it.
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
	var asking []*waiter
	for g, stands := range l.standing() {
		if more {
			g.due = g.due || freeing
			continue
		}
		if stands && (g.due || freeing) {
			asking = append(asking, l.heads(g)...)
		}
		g.due = false
	}
	c := r.call(l.lock, l.kind, r.queue, make([]state.Op, 0, len(tasks)+len(asking)))
	before, tries := split(tasks)
	for _, k := range before {
		c.Ops = append(c.Ops, k.op)
	}
	for _, w := range asking {
		w.inCall = true
		op := w.ask(now)
		op.Chain = l.seats(w)
		c.Ops = append(c.Ops, op)
	}
	for _, k := range tries {
		c.Ops = append(c.Ops, k.op)
	}
	return &parcel{c, tasks, asking}
}

// standing are the groups, and whether there is room for them in the document's queue: in a class, for those whose first has waited for
// longest.
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

// rank is a task's place in a call: those who only try come last.
func rank(k *task) int {
	if k.op.Do == state.Acquire {
		return 1
	}
	return 0
}

// ask is the operation of somebody who waits, with those behind.
func (w *waiter) ask(now int64) state.Op {
	op := w.op
	op.Wait, op.Age, op.Left = true, now-w.came, max(w.until-now, 1)
	i := slices.Index(w.g.waiters, w)
	if rest := w.g.waiters[i+1:]; len(rest) > 0 {
		op.Behind = state.Behind{Count: int64(len(rest)), Owner: rest[0].op.Owner, Rid: rest[0].op.Rid, Age: now - rest[0].came}
		for _, b := range rest {
			op.Behind.Left = max(op.Behind.Left, b.until-now)
		}
	}
	return op
}

// settle tells everybody what became of a call.
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
	before, tries := split(p.tasks)
	for _, k := range before {
		k.tell(l, take())
	}
	for _, w := range p.asking {
		w.answer(l, take())
	}
	for _, k := range tries {
		k.tell(l, take())
	}
	l.observe(o.doc)
}

// tell hands a task its outcome. A lease that nobody waits for any more is given back: its client has left.
func (k *task) tell(l *lane, o outcome) {
	switch {
	case k.gone && o.result.Verdict == state.Acquired:
		l.abandon(k.op.Rid, k.op.TTL)
	case k.done != nil:
		if o.result.Verdict.Grants() {
			l.noteGrant(o.hold)
		}
		k.done <- o
	}
}

// answer hands a waiter its lock, or leaves it waiting.
func (w *waiter) answer(l *lane, o outcome) {
	w.inCall, w.doubt = false, false
	got := o.result.Verdict.Grants()
	promised := o.result.Verdict == state.Promised
	if promised || o.result.Verdict == state.Queued {
		w.countContention(l)
	}
	switch {
	case w.handed: // meanwhile
	case w.gone, w.expired && promised:
		l.remove(w)
		if got || promised {
			l.abandon(w.op.Rid, w.op.TTL)
		}
		if !w.gone {
			w.done <- o
		}
	case promised:
		l.promise(w, o)
	case got, o.result.Verdict != state.Queued, w.expired:
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

// fault deals with a call that has failed: it may have been carried out or not. What waits goes on waiting; the rest is tried again for
// a while. All operations can be repeated.
func (l *lane) fault(p *parcel, err error) {
	now := l.r.now()
	if l.failed == 0 {
		l.failed = now
	}
	l.r.storeDown(l.lock, err)
	var again []*task
	defer func() { l.tasks = append(again, l.tasks...) }()
	for _, k := range p.tasks {
		switch {
		case now < k.until && (!k.gone || k.op.Do != state.Acquire) && l.r.ctx.Err() == nil:
			again = append(again, k)
			continue
		case k.done != nil:
			k.done <- outcome{err: err}
		}
		if now < k.follow {
			again = append(again, &task{op: k.op, came: now, until: k.follow})
		}
		if k.op.Do == state.Acquire {
			again = append(again, &task{op: state.Op{Do: state.Abandon, Rid: k.op.Rid}, came: now, until: now + k.op.TTL})
		}
	}
	for _, w := range p.asking {
		if w.handed {
			continue
		}
		w.inCall, w.doubt = false, true // the next call asks again, with the same request
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

package lockrouter

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"optimist/lockrouter/state"
)

// lane is what goes to one lock document from this proxy: one call at a time, and with it whatever has come meanwhile. A lane exists while
// there is something to send or somebody waits. All of it is guarded by Router.mu.
type lane struct {
	r    *Router
	id   string
	lock string
	kind state.Kind

	tasks   []*task
	groups  []*group // of those who wait; foreground first, then by who came first
	running bool     // a goroutine sends
	failed  int64    // since when calls fail, in ms of Router.now; 0 if the last one didn't

	doc     *state.Doc // as last seen; nil if it was never, or isn't there
	known   bool       // it was seen
	seenAt  int64      // when doc was first seen as it is
	version uint64     // counts what was seen, so that a look that was overtaken is known
	watch   state.Watch
	tick    int64 // ms to the next look
	lookAt  int64
	tryAt   int64 // when somebody who waits may have a chance without being told; never if none

	relay    state.Relay
	promised []*waiter // those of groups who were promised their leases
	since    int64     // when somebody here was last given a lease
	quick    bool      // the last holder here kept it for a short time
}

const never = int64(1) << 62

// task is one operation that is waited for, or, with done nil, that only has to be done.
type task struct {
	op     state.Op
	came   int64 // ms of Router.now
	until  int64 // up to when it is tried again while the store is unavailable
	follow int64 // up to when a release is tried that somebody else was handed the lock by: the document must know
	gone   bool  // nobody waits for it any more
	done   chan outcome
}

// outcome is what became of an operation.
type outcome struct {
	said state.Said
	doc  *state.Doc // as it is then; not to be changed
	hold state.Hold // the lease, of a verdict that has one
	sent time.Time  // when the call that decided it was sent
	nth  int64      // the place in the queue of who has stopped to wait; 0 where that isn't known
	err  error
}

// waiter is a request that waits for a lock.
type waiter struct {
	task
	g       *group
	asked   bool // it is in the call that is out
	gone    bool // its client has left while it was
	expired bool // its time was up while it was
	doubt   bool // a call with it had no answer: it may have got its lock
	met     bool // somebody else had it, or came first: counted

	promised bool    // its lease is in the document's chain
	seat     outcome // that lease
	handed   bool    // it has got it
}

// group is those who wait for the same in the same class, in the order in which they came. They share one entry of the document's queue.
type group struct {
	class   state.Class
	path    string
	mode    state.Mode
	waiters []*waiter
	due     bool // to be asked for with the next call
}

// The bounds of one call: the script that carries it out is one step of the engine.
const (
	maxTasks   = 64
	maxGroups  = 48 // of the foreground that stand in a document's queue at once
	maxBehind  = 16 // of the background: it is owed its turn, which the queue counts, and so has places of its own
	maxReaders = 32 // of a group that ask at once
)

// lane is the lane of a lock, made if need be.
func (r *Router) lane(t *target) *lane {
	l := r.lanes[t.id]
	if l == nil {
		l = &lane{r: r, id: t.id, lock: t.root, kind: t.kind, tryAt: never, tick: r.o.FirstTick.Milliseconds()}
		r.lanes[t.id] = l
	}
	return l
}

// submit has an operation carried out that isn't waited for in a queue.
func (r *Router) submit(ctx context.Context, t *target, op state.Op) outcome {
	now := r.now()
	k := &task{op: op, came: now, until: now + r.o.Patience.Milliseconds(), done: make(chan outcome, 1)}
	r.mu.Lock()
	l := r.lane(t)
	l.tasks = append(l.tasks, k)
	if op.Do == state.Release {
		l.freed(k)
	}
	l.run()
	r.mu.Unlock()
	select {
	case o := <-k.done:
		return o
	case <-ctx.Done():
	case <-r.ctx.Done():
	}
	return r.forsake(l, k, r.why(ctx))
}

// forsake gives up a task whose client has left. What was sent counts, but for a lease that nobody would know of.
func (r *Router) forsake(l *lane, k *task, why error) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.gone = true
	select {
	case o := <-k.done:
		if k.op.Do == state.Acquire && o.err == nil && o.said.Verdict == state.Acquired {
			l.again().abandon(k.op.Rid, k.op.TTL)
		}
		return outcome{err: why}
	default:
	}
	if k.op.Do == state.Acquire {
		l.tasks = slices.DeleteFunc(l.tasks, func(o *task) bool { return o == k })
	}
	return outcome{err: why}
}

func (r *Router) why(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errClosed
}

var errClosed = fmt.Errorf("%w: the proxy is shutting down", ErrStore)

// abandon releases whatever a request has got or will get. It is tried until the lease would have ended.
func (l *lane) abandon(rid string, ttl int64) {
	now := l.r.now()
	l.tasks = append(l.tasks, &task{op: state.Op{Do: state.Abandon, Rid: rid}, came: now, until: now + ttl})
	l.run()
}

// run has the lane send what there is, if it isn't sending already.
func (l *lane) run() {
	if l.running || l.r.closed || !l.ready() {
		return
	}
	l.running = true
	l.r.wg.Go(l.send)
}

// ready reports whether there is something to send.
func (l *lane) ready() bool {
	return len(l.tasks) > 0 || slices.ContainsFunc(l.groups, func(g *group) bool { return g.due && len(g.waiters) > 0 })
}

// send makes calls until there is nothing to send.
func (l *lane) send() {
	r := l.r
	for {
		r.mu.Lock()
		if !l.ready() || r.ctx.Err() != nil {
			l.running = false
			l.rest()
			r.mu.Unlock()
			return
		}
		c, tasks, asking := l.assemble()
		r.mu.Unlock()
		sent := time.Now()
		done := r.o.Store.Do(r.ctx, []Change{{l.id, c}})[0]
		r.mu.Lock()
		if done.Err != nil {
			l.fault(tasks, asking, done.Err)
			pause := min(max(time.Duration(r.now()-l.failed)*time.Millisecond/2, shortPause), longPause)
			r.mu.Unlock()
			r.pause(pause)
			continue
		}
		l.settle(tasks, asking, &outcome{doc: done.Doc, sent: sent}, done.Said)
		r.mu.Unlock()
	}
}

// The waits after a call that failed: longer, the longer calls have failed.
const (
	shortPause = 50 * time.Millisecond
	longPause  = time.Second
)

func (r *Router) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.ctx.Done():
	}
}

// rest gives up a lane that has nothing to do, or has it watched.
func (l *lane) rest() {
	if len(l.groups) == 0 && len(l.tasks) == 0 {
		delete(l.r.lanes, l.id)
		return
	}
	l.r.alert()
}

// assemble makes a call of what there is: releases and renewals first, then those who wait, then those who only try. A release asks
// for those who wait for what it frees: the hand-over is one call.
func (l *lane) assemble() (c *state.Call, tasks []*task, asking []*waiter) {
	r, now := l.r, l.r.now()
	n := min(len(l.tasks), maxTasks)
	tasks = slices.Clone(l.tasks[:n])
	l.tasks = slices.Delete(l.tasks, 0, n)
	slices.SortStableFunc(tasks, func(a, b *task) int { return rank(a) - rank(b) })
	freeing := slices.ContainsFunc(tasks, func(k *task) bool { return k.op.Do == state.Release || k.op.Do == state.Abandon })
	for g, stands := range l.standing() {
		if stands && (g.due || freeing) {
			asking = append(asking, l.heads(g)...)
		}
		g.due = false
	}
	c = &state.Call{Lock: l.lock, Kind: l.kind, Proxy: r.queue, Bound: int64(r.o.Bound), Grace: r.grace(), Most: int64(r.o.MostHeld),
		Ops: make([]state.Op, 0, len(tasks)+len(asking))}
	tries := slices.IndexFunc(tasks, func(k *task) bool { return k.op.Do == state.Acquire })
	if tries < 0 {
		tries = len(tasks)
	}
	for _, k := range tasks[:tries] {
		c.Ops = append(c.Ops, k.op)
	}
	for _, w := range asking {
		w.asked = true
		op := w.ask(now)
		op.Chain = l.seats(w)
		c.Ops = append(c.Ops, op)
	}
	for _, k := range tasks[tries:] {
		c.Ops = append(c.Ops, k.op)
	}
	return c, tasks, asking
}

// standing are the groups, and whether there is room for them in the document's queue. Whoever has a place keeps it: in a class, those who
// come later stand behind.
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
func (l *lane) settle(tasks []*task, asking []*waiter, o *outcome, said []state.Said) {
	l.failed = 0
	l.r.storeUp()
	l.lapses(o.doc, said)
	tries := len(tasks)
	if i := slices.IndexFunc(tasks, func(k *task) bool { return k.op.Do == state.Acquire }); i >= 0 {
		tries = i
	}
	next := 0
	take := func() outcome {
		got := *o
		got.said = said[next]
		got.hold, _ = got.doc.Holding(got.said.Token)
		next++
		return got
	}
	for _, k := range tasks[:tries] {
		k.tell(l, take())
	}
	for _, w := range asking {
		w.answer(l, take())
	}
	for _, k := range tasks[tries:] {
		k.tell(l, take())
	}
	l.saw(o.doc)
}

// tell hands a task its outcome. A lease that nobody waits for any more is given back: its client has left.
func (k *task) tell(l *lane, o outcome) {
	switch {
	case k.gone && o.said.Verdict == state.Acquired:
		l.abandon(k.op.Rid, k.op.TTL)
	case k.done != nil:
		if o.said.Verdict == state.Acquired || o.said.Verdict == state.Reentered {
			l.granted(o.hold)
		}
		k.done <- o
	}
}

// answer hands a waiter its lock, or leaves it waiting.
func (w *waiter) answer(l *lane, o outcome) {
	w.asked, w.doubt = false, false
	got := o.said.Verdict == state.Acquired || o.said.Verdict == state.Reentered
	promised := o.said.Verdict == state.Promised
	if promised || o.said.Verdict == state.Queued {
		w.meet(l)
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
	case got, o.said.Verdict != state.Queued, w.expired:
		if !got {
			o.nth = l.nth(w, o.doc)
		}
		l.remove(w)
		if got {
			l.granted(o.hold)
		}
		w.done <- o
	}
}

// fault deals with a call that has failed: it may have been carried out or not. What waits goes on waiting; the rest is tried again for
// a while. All operations can be repeated.
func (l *lane) fault(tasks []*task, asking []*waiter, err error) {
	now := l.r.now()
	if l.failed == 0 {
		l.failed = now
	}
	l.r.storeDown(l.lock, err)
	for _, k := range tasks {
		switch {
		case now < k.until && (!k.gone || k.op.Do != state.Acquire) && l.r.ctx.Err() == nil:
			l.tasks = append(l.tasks, k)
			continue
		case k.done != nil:
			k.done <- outcome{err: err}
		}
		if now < k.follow {
			l.tasks = append(l.tasks, &task{op: k.op, came: now, until: k.follow})
		}
		if k.op.Do == state.Acquire {
			l.tasks = append(l.tasks, &task{op: state.Op{Do: state.Abandon, Rid: k.op.Rid}, came: now, until: now + k.op.TTL})
		}
	}
	for _, w := range asking {
		if w.handed {
			continue
		}
		w.asked, w.doubt = false, true // the next call asks again, with the same request
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

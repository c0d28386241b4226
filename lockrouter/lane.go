package lockrouter

import (
	"context"
	"fmt"
	"slices"
	"time"

	"optimist/internal/timer"
	"optimist/lockrouter/state"
)

// lane is what goes to one lock document from this proxy: one call at a time, and with it whatever has come meanwhile. A lane
// exists while there is something to send or somebody waits. All of it is guarded by Router.mu.
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
	result state.Result
	doc    *state.Doc // as it is then; not to be changed
	hold   state.Hold // the lease, of a verdict that has one
	sent   time.Time  // when the call that decided it was sent
	nth    int64      // the place in the queue of who has stopped to wait; 0 where that isn't known
	tried  bool       // it was tried once only, because too many wait
	err    error
}

// waiter is a request that waits for a lock.
type waiter struct {
	task
	g         *group
	inCall    bool // it is in the call that is out
	gone      bool // its client has left while it was
	expired   bool // its time was up while it was
	doubt     bool // a call with it had no answer: it may have got its lock
	contended bool // somebody else had it, or came first: counted

	promised bool    // its lease is in the document's chain
	seat     outcome // that lease
	handed   bool    // it has got it
}

// group is those who wait for the same in the same class, in the order in which they came. They share one entry of the document's
// queue.
type group struct {
	class   state.Class
	path    string
	mode    state.Mode
	waiters []*waiter
	due     bool // to be asked for with the next call
}

// lane is the lane of a lock, made if need be.
func (r *Router) lane(t *target) *lane {
	l := r.lanes[t.id]
	if l == nil {
		l = &lane{r: r, id: t.id, lock: t.root, kind: t.kind, tryAt: never, tick: firstTick.Milliseconds()}
		r.lanes[t.id] = l
	}
	return l
}

// submit carries out an operation that doesn't wait in the queue.
func (r *Router) submit(ctx context.Context, t *target, op state.Op) outcome {
	now := r.now()
	k := &task{op: op, came: now, until: now + r.o.Patience.Milliseconds(), done: make(chan outcome, 1)}
	r.mu.Lock()
	l := r.lane(t)
	l.tasks = append(l.tasks, k)
	if op.Do == state.Release {
		l.noteRelease(k)
	}
	l.runHere()
	select {
	case o := <-k.done:
		if gone(ctx) == nil {
			return o
		}
		k.done <- o
	case <-ctx.Done():
	case <-r.ctx.Done():
	}
	return r.forsake(l, k, r.why(ctx))
}

// forsake gives up a task whose client has left. An operation that was sent counts all the same, but a lease that nobody knows of
// is released.
func (r *Router) forsake(l *lane, k *task, why error) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.gone = true
	select {
	case o := <-k.done:
		if k.op.Do == state.Acquire && o.err == nil && o.result.Verdict == state.Acquired {
			l.again().abandon(&k.op)
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
	if why := gone(ctx); why != nil {
		return why
	}
	return errClosed
}

var errClosed = fmt.Errorf("%w: the proxy is shutting down", ErrStore)

// abandon releases whatever a request has got or will get.
func (l *lane) abandon(op *state.Op) {
	l.tasks = append(l.tasks, l.r.abandonment(op))
	l.run()
}

// abandonment is the task that releases whatever an acquisition has got or will get. It is tried until the lease would have ended.
func (r *Router) abandonment(op *state.Op) *task {
	now := r.now()
	return &task{op: state.Op{Do: state.Abandon, Rid: op.Rid}, came: now, until: now + op.TTL}
}

// run has the lane send what there is, if it isn't sending already.
func (l *lane) run() {
	if l.start() {
		l.r.wg.Go(func() {
			l.r.mu.Lock()
			l.send()
		})
	}
}

// runHere is run for a goroutine that waits for the outcome. It makes the first call itself, which saves waking another
// goroutine. It unlocks Router.mu.
func (l *lane) runHere() {
	r := l.r
	if !l.start() {
		r.mu.Unlock()
		return
	}
	r.wg.Add(1)
	defer r.wg.Done()
	pause := l.carry(l.assemble())
	switch {
	case pause > 0:
		r.wg.Go(func() {
			r.pause(pause)
			r.mu.Lock()
			l.send()
		})
	case !l.stop():
		next := l.assemble() // before anybody is told what has become of the first: nobody gets into it for having made the call
		r.wg.Go(func() {
			r.mu.Lock()
			l.sendAfter(l.carry(next))
		})
	}
	r.mu.Unlock()
}

// start reports whether there is something to send that no goroutine sends yet. The caller then has to send it.
func (l *lane) start() bool {
	if l.running || l.r.closed || !l.ready() {
		return false
	}
	l.running = true
	return true
}

// ready reports whether there is something to send.
func (l *lane) ready() bool {
	return len(l.tasks) > 0 || slices.ContainsFunc(l.groups, func(g *group) bool { return g.due && len(g.waiters) > 0 })
}

// send makes calls until there is nothing to send. It unlocks Router.mu.
func (l *lane) send() { l.sendAfter(0) }

// sendAfter is send after a pause.
func (l *lane) sendAfter(pause time.Duration) {
	r := l.r
	for {
		if pause > 0 {
			r.mu.Unlock()
			r.pause(pause)
			r.mu.Lock()
		}
		if l.stop() {
			r.mu.Unlock()
			return
		}
		pause = l.carry(l.assemble())
	}
}

// stop ends the sending, if there is nothing to send.
func (l *lane) stop() bool {
	if l.ready() && l.r.ctx.Err() == nil {
		return false
	}
	l.running = false
	l.rest()
	return true
}

// carry makes a call and hands everybody in it the outcome. After a call that failed, pause is how long the next one has to wait.
// Router.mu is unlocked while the call is out.
func (l *lane) carry(p *parcel) (pause time.Duration) {
	r := l.r
	r.mu.Unlock()
	sent := time.Now()
	done := r.o.Store.Do(r.ctx, []Change{{l.id, p.call}})[0]
	r.mu.Lock()
	if done.Err != nil {
		l.fault(p, done.Err)
		return min(max(time.Duration(r.now()-l.failed)*time.Millisecond/2, shortPause), longPause)
	}
	l.settle(p, &outcome{doc: done.Doc, sent: sent}, done.Results)
	return 0
}

// The waits after a call that failed: longer, the longer calls have failed. That is no retry: the next call carries what is asked
// by then.
const (
	shortPause = 50 * time.Millisecond
	longPause  = time.Second
)

func (r *Router) pause(d time.Duration) { _ = timer.Sleep(r.ctx, d) }

// rest removes a lane that has nothing to do, or wakes the watcher for it.
func (l *lane) rest() {
	switch {
	case l.running:
	case len(l.groups) > 0 || len(l.tasks) > 0:
		l.r.alert()
	case l.r.lanes[l.id] == l:
		delete(l.r.lanes, l.id)
	}
}

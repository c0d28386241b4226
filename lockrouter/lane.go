package lockrouter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"optimist/internal/timer"
	"optimist/lockrouter/state"
)

// lane sends this proxy's operations on one lock document. Only one call is out at a time; the next call carries all operations that have
// come meanwhile. A lane exists while it has something to send, or requests wait in it. Router.mu guards all of it.
type lane struct {
	r    *Router
	id   string
	lock string
	kind state.Kind

	tasks   []*task
	groups  []*group // the waiters; the foreground's groups first, in each class the one that came first
	running bool     // a goroutine is sending
	failed  int64    // since when calls fail, in ms of Router.now; 0: the last one succeeded

	doc     *state.Doc // the document as last seen; nil: it wasn't seen yet, or there is none
	known   bool       // the document was seen, or was seen to be missing
	seenAt  int64      // when doc was first seen in its present state
	version uint64     // is counted up whenever the document is seen, so that a look can tell that a call has seen it later
	watch   state.Watch
	tick    int64 // ms to the next look
	lookAt  int64
	tryAt   int64 // when a waiter may get the lock although no look or call says so; never: no waiter may

	relay    state.Relay
	promised []*waiter // the waiters with promised leases
	since    int64     // when a lease was last given to a request of this proxy
	quick    bool      // the last holder of this proxy kept the lock for a short time
}

const never = int64(1) << 62

// task is one operation that doesn't wait in the queue.
type task struct {
	op     state.Op
	came   int64        // ms of Router.now
	until  int64        // while the store is unavailable, the operation is tried again until then
	follow int64        // a release that has handed the lock over is tried until then, because the document must know of it
	gone   bool         // nobody waits for the outcome any more
	unsure bool         // a call that failed may have carried it out
	done   chan outcome // gets the outcome; nil: nobody waits for it
}

// outcome is the result of an operation.
type outcome struct {
	result state.Result
	doc    *state.Doc // the document after it; not to be changed
	hold   state.Hold // the lease, if the verdict grants one
	sent   time.Time  // when the call that decided it was sent
	nth    int64      // the place in the queue of a waiter whose time was up; 0: not known
	tried  bool       // the request tried once only, because too many requests wait
	err    error
}

// waiter is a request that waits for a lock.
type waiter struct {
	task
	g         *group
	inCall    bool // its operation is in the call that is out
	expired   bool // its time was up during that call
	contended bool // another owner had the lock, or others came first; that was counted

	promised bool    // its lease is in the document's chain
	seat     outcome // the outcome with the promised lease
	handed   bool    // a release has given it the promised lease
}

// group holds the waiters of one class that want the same lock in the same mode, in the order in which they came. They share one entry of
// the document's queue.
type group struct {
	class   state.Class
	path    string
	mode    state.Mode
	waiters []*waiter
	due     bool // it asks with the next call
}

// lane returns the lane of a lock, and makes it if there is none.
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
	return r.forsake(l, k, cmp.Or(gone(ctx), errClosed))
}

// forsake gives up a task whose client has left. An operation that was sent is carried out all the same. If it acquires a lease, that is
// released.
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
	if n := len(l.tasks); k.op.Do == state.Acquire {
		l.tasks = slices.DeleteFunc(l.tasks, func(o *task) bool { return o == k })
		if len(l.tasks) < n && k.unsure {
			l.doubt(r.abandonment(&k.op))
		}
	}
	return outcome{err: why}
}

var errClosed = fmt.Errorf("%w: optimist is shutting down", ErrStore)

// abandon releases the lease that a request has acquired, or will still acquire.
func (l *lane) abandon(op *state.Op) {
	l.tasks = append(l.tasks, l.r.abandonment(op))
	l.run()
}

// doubt gives up a task of abandon whose call has failed: the lease is given back with others', until it would have ended.
func (l *lane) doubt(k *task) { l.r.doubts.add(doubt{l.id, l.lock, l.kind, k.op.Rid, k.until}) }

// abandonment is the task of abandon.
func (r *Router) abandonment(op *state.Op) *task {
	now := r.now()
	return &task{op: state.Op{Do: state.Abandon, Rid: op.Rid}, came: now, until: now + op.TTL}
}

// run makes the lane send its operations, if it isn't sending already.
func (l *lane) run() {
	if l.start() {
		l.r.wg.Go(func() {
			l.r.mu.Lock()
			l.send(0)
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
			r.mu.Lock()
			l.send(pause)
		})
	case !l.stop():
		next := l.assemble() // before Router.mu is unlocked: the client that made the first call mustn't get into the next one for that
		r.wg.Go(func() {
			r.mu.Lock()
			l.send(l.carry(next))
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

// send makes calls, the first one after a pause, until there is nothing to send. It unlocks Router.mu.
func (l *lane) send(pause time.Duration) {
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

// carry makes a call, and gives each task and waiter in it its outcome. After a failed call, pause is how long the next one has to wait.
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

// The pauses after a failed call. They grow while calls fail. This is no retry: the next call carries what the lane has to send by then.
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

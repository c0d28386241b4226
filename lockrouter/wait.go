package lockrouter

import (
	"context"
	"slices"
	"time"

	"optimist/internal/share"
	"optimist/internal/wire"
	"optimist/lockrouter/state"
)

// mayWait reports whether a client may have one more request wait. Client "" is optimist's own.
func (r *Router) mayWait(client string) bool {
	taken := r.waiting[0] + r.waiting[1]
	if client == "" || !share.Crowded(r.o.MostWaiting, taken) {
		return taken < r.o.MostWaiting
	}
	n := r.clients[client]
	return share.Fits(r.o.MostWaiting, taken, n, n)
}

// countWaiting notes that a request of a client has begun (1) or ended (-1) to wait.
func (r *Router) countWaiting(op *state.Op, by int) {
	r.waiting[classIndex(op.Class)] += by
	if r.clients[op.Client] += by; r.clients[op.Client] == 0 {
		delete(r.clients, op.Client)
	}
}

// wait waits for a lock, up to limit. A request that may not wait tries once: see Options.MostWaiting.
func (r *Router) wait(ctx context.Context, t *target, op state.Op, limit time.Duration) outcome {
	now := r.now()
	w := &waiter{task: task{op: op, came: now, until: now + max(limit.Milliseconds(), 1), done: make(chan outcome, 1)}}
	r.mu.Lock()
	if !r.mayWait(op.Client) {
		r.mu.Unlock()
		o := r.submit(ctx, t, op)
		o.tried = true
		return o
	}
	l := r.lane(t)
	l.join(w)
	timer := time.NewTimer(limit) // before the call: its time counts, too
	defer timer.Stop()
	l.runHere()
	if why := gone(ctx); why != nil { // the client may have left while the call was out
		return l.leave(w, why)
	}
	select {
	case o := <-w.done: // taken first, even if this proxy is about to end
		return o
	default:
	}
	for {
		select {
		case o := <-w.done:
			why := gone(ctx)
			if why == nil {
				return o
			}
			w.done <- o
			return l.leave(w, why)
		case <-timer.C:
			if o, ended := l.expire(w); ended {
				return o
			}
		case <-ctx.Done():
			return l.leave(w, context.Cause(ctx))
		case <-r.open.Done():
			return l.leave(w, errClosed)
		}
	}
}

// join adds a waiter to the group that waits for the same lock in the same mode and class.
func (l *lane) join(w *waiter) {
	l.r.countWaiting(&w.op, 1)
	i := slices.IndexFunc(l.groups, func(g *group) bool {
		return g.class == w.op.Class && g.path == w.op.Path && g.mode == w.op.Mode
	})
	if i < 0 {
		g := &group{class: w.op.Class, path: w.op.Path, mode: w.op.Mode, due: true}
		// The foreground before the background; in a class, who came first. This one came last.
		i = len(l.groups)
		if w.op.Class == state.Foreground {
			i = slices.IndexFunc(l.groups, func(g *group) bool { return g.class == state.Background })
			if i < 0 {
				i = len(l.groups)
			}
		}
		l.groups = slices.Insert(l.groups, i, g)
		l.tick = firstTick.Milliseconds()
		l.lookAt = l.r.now() + l.tick
	}
	g := l.groups[i]
	w.g = g
	if g.mode == state.Shared || g.first() == nil {
		g.due = true // the waiter needn't wait for those before it, or they are no longer in the queue
	}
	if len(g.waiters) > 0 && g.mode != state.Shared {
		w.countContention(l)
	}
	g.waiters = append(g.waiters, w)
	g.due = g.due || l.owners(g)[w.op.Owner]
}

// countContention counts, once, that a request didn't get its lock at once.
func (w *waiter) countContention(l *lane) {
	if !w.contended {
		w.contended = true
		l.r.o.Events.Contended.Call(w.op.Class)
	}
}

// remove removes a waiter from the lane.
func (l *lane) remove(w *waiter) {
	g := w.g
	l.unpromise(w)
	i := slices.Index(g.waiters, w)
	if i < 0 {
		return
	}
	l.r.countWaiting(&w.op, -1)
	g.waiters = slices.Delete(g.waiters, i, i+1)
	if len(g.waiters) == 0 {
		l.groups = slices.DeleteFunc(l.groups, func(o *group) bool { return o == g })
	} else if i == 0 {
		l.yield(g)
	}
}

// yield is called when the first waiter of a group has gone. It moves the group behind those of its class whose first waiter has waited for
// longer than the group's new first one. Otherwise a group that is joined again and again would keep its place in the document's queue for
// ever, and there may be more groups than places.
func (l *lane) yield(g *group) {
	at := slices.Index(l.groups, g)
	to := at
	for to+1 < len(l.groups) && l.groups[to+1].class == g.class && l.groups[to+1].waiters[0].came < g.waiters[0].came {
		to++
	}
	copy(l.groups[at:to], l.groups[at+1:to+1])
	l.groups[to] = g
}

// drop removes a waiter that hasn't got the lock, from the lane and from the document's queue: others must not wait behind it.
func (l *lane) drop(w *waiter) {
	promised := w.promised
	l.remove(w)
	if w.unsure || promised {
		l.relay.Leave(w.op.Rid)
		l.tasks = append(l.tasks, l.r.abandonment(&w.op))
	}
	if len(w.g.waiters) == 0 && (!l.known || l.failed != 0) {
		l.resign(w.g.class, w.g.path, w.g.mode) // a call without an answer may have put it into the document's queue
	}
	l.tidy()
}

// tidy removes entries of this proxy from the document's queue: those without a waiter, and those of groups that have lost their place.
func (l *lane) tidy() {
	if l.doc == nil {
		return
	}
	for i := range l.doc.Queue {
		if e := &l.doc.Queue[i]; e.Proxy == l.r.queue && !l.stands(e) {
			l.resign(e.Class, e.Path, e.Mode)
		}
	}
}

// stands reports whether an entry of this proxy belongs to a group that has a place.
func (l *lane) stands(e *state.Entry) bool {
	for g, stands := range l.standing() {
		if g.class == e.Class && g.path == e.Path && g.mode == e.Mode {
			return stands
		}
	}
	return false
}

func (l *lane) resign(class state.Class, path string, mode state.Mode) {
	op := state.Op{Do: state.Leave, Class: class, Path: path, Mode: mode}
	if slices.ContainsFunc(l.tasks, func(k *task) bool { return k.op == op }) {
		return
	}
	now := l.r.now()
	l.tasks = append(l.tasks, &task{op: op, came: now, until: now + l.r.o.Patience.Milliseconds()})
}

// expire ends the wait of a waiter whose time is up. If a call with the waiter is out, the wait ends with that call, because the waiter may
// get its lock by it.
func (l *lane) expire(w *waiter) (outcome, bool) {
	r := l.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.done) > 0 || w.inCall {
		w.expired = true
		return outcome{}, false
	}
	o := outcome{result: state.Result{Verdict: state.Queued}, doc: l.doc, nth: l.nth(w, l.doc)}
	if l.failed != 0 {
		o.err = ErrStore
	}
	l.drop(w)
	l.run()
	l.rest()
	return o, true
}

// nth is a waiter's place in the queue: 1 is next.
func (l *lane) nth(w *waiter, d *state.Doc) int64 {
	n := int64(slices.Index(w.g.waiters, w)) + 1
	if d != nil {
		n += d.Ahead(l.r.queue, w.g.class, w.g.path, w.g.mode, int64(l.r.o.Bound))
	}
	return n
}

// gone returns why the client doesn't wait for its answer any more; nil: it still waits. gone also asks the connection, because ctx may
// learn late that the client has left. Such a client would never hear of a lease that it gets now.
func gone(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wire.PeerClosed(ctx):
		return context.Canceled
	}
	return nil
}

// leave ends the wait of a waiter whose client has left.
func (l *lane) leave(w *waiter, why error) outcome {
	r := l.r
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case o := <-w.done:
		if o.err == nil && o.result.Verdict.Grants() {
			l.again().abandon(&w.op)
		}
		return outcome{err: why}
	default:
	}
	if w.inCall {
		w.gone = true
	} else {
		l.drop(w)
		l.run()
		l.rest()
	}
	return outcome{err: why}
}

// again returns the lock's current lane. l itself may have been removed meanwhile.
func (l *lane) again() *lane {
	if now := l.r.lanes[l.id]; now != nil {
		return now
	}
	l.r.lanes[l.id] = l
	return l
}

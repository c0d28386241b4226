package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-zookeeper/zk"

	"optimist/internal/timer"
	"optimist/lockrouter"
)

// waiter is a request for a lock on its way.
type waiter struct {
	k     *Keeper
	c     *lockrouter.Claim
	began time.Time
	name  string // of its node, up to the sequence

	sent chan struct{} // closed when ZooKeeper has answered the request for its node; nil if there was none
}

// acquire gets the lease, or says why not. What the waiter has left behind then, leave takes away.
func (w *waiter) acquire(ctx context.Context) (l *lockrouter.Lease, err error) {
	k := w.k
	ctx, cancel := k.within(ctx, w.c.Wait+time.Second)
	defer cancel()
	late := time.NewTimer(w.c.Wait)
	defer late.Stop()
	err = k.attempt(ctx, func(ctx context.Context) error {
		v, err := k.look(ctx, w.c.Lock)
		if err != nil {
			return err
		}
		l, err = w.enter(ctx, v)
		return err
	})
	for l == nil && err == nil {
		var before <-chan zk.Event
		var v *view
		err = k.attempt(ctx, func(ctx context.Context) (err error) {
			l, v, before, err = w.turn(ctx)
			return err
		})
		if l != nil || err != nil {
			break
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, w.tooLate(v)
		}
	}
	return l, err
}

// enter makes the waiter's node, unless the owner has the lock already, or the claim doesn't wait and the lock isn't free.
func (w *waiter) enter(ctx context.Context, v *view) (*lockrouter.Lease, error) {
	h := v.holder()
	switch {
	case w.pending():
		select {
		case <-w.sent:
			return nil, errAgain
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: ZooKeeper doesn't answer", lockrouter.ErrStore)
		}
	case h != nil && h.Owner == w.c.Owner:
		again, waited := *w.c, w.waited(time.Now())
		again.TTL = max(again.TTL, time.Duration(h.TTL)*time.Millisecond) // never shorter: the first request relies on the time in its answer
		l, err := w.k.extend(ctx, &again, v)
		if l != nil {
			l.Reentered, l.Waited = true, waited
		}
		return l, err
	case w.c.Wait <= 0 && (h != nil || len(v.ahead(w.name)) > 0):
		return nil, w.tooLate(v)
	case v.find(w.name) != "": // a try without an answer has made it
		return nil, nil
	}
	if v.version < 0 {
		if err := w.k.session.makeLock(ctx, v.parent); err != nil {
			return nil, err
		}
	}
	w.sent = make(chan struct{})
	return nil, w.k.session.queue(ctx, v.parent+"/"+w.name, (&holder{Owner: w.c.Owner, Note: w.c.Note}).bytes(), w.sent)
}

// pending reports whether the waiter's node may still be made by a request without an answer.
func (w *waiter) pending() bool {
	if w.sent == nil {
		return false
	}
	select {
	case <-w.sent:
		return false
	default:
		return true
	}
}

func (w *waiter) waited(until time.Time) *int64 {
	ms := max(until.Sub(w.began).Milliseconds(), 0)
	return &ms
}

// turn takes the lock if it is the waiter's turn; else it gives what is told when the node before is gone.
func (w *waiter) turn(ctx context.Context) (*lockrouter.Lease, *view, <-chan zk.Event, error) {
	v, err := w.k.look(ctx, w.c.Lock)
	if err != nil {
		return nil, nil, nil, err
	}
	me := v.find(w.name)
	if h := v.holder(); h != nil && me != "" && h.Node == me { // a try without an answer
		w.k.kept(v.parent+"/"+me, w.c.Lock, h.Until)
		l := w.k.lease(h)
		l.Waited = w.waited(time.UnixMilli(h.Until - h.TTL))
		return l, v, nil, nil
	}
	if me == "" {
		return nil, nil, nil, &lockrouter.Failure{Status: http.StatusGone, Type: lockrouter.TypeExpired,
			Reason: "the session with ZooKeeper has expired while the request waited for " + w.c.Lock.Name}
	}
	before := v.before(w.name)
	if before == "" {
		l, err := w.take(ctx, v, me)
		return l, v, nil, err
	}
	if w.c.Wait <= 0 {
		return nil, nil, nil, w.tooLate(v)
	}
	there, gone, err := w.k.session.watch(ctx, v.parent+"/"+before)
	if err == nil && !there {
		err = errAgain
	}
	return nil, v, gone, err
}

// take makes the waiter the holder. The token is the last zxid that is known of the lock, or one more than the last token: a zxid is given
// to each write in the ensemble, so that the tokens of a lock grow also if its node was removed meanwhile.
func (w *waiter) take(ctx context.Context, v *view, me string) (*lockrouter.Lease, error) {
	sent := time.Now()
	h := &holder{Node: me, Owner: w.c.Owner, Note: w.c.Note, Token: max(v.top.Last+1, v.zxid), Since: sent.UnixMilli(),
		TTL: w.c.TTL.Milliseconds()}
	if h.Token >= 1<<53 {
		return nil, fmt.Errorf("%w: zxids have become too large for JSON", lockrouter.ErrStore)
	}
	path := v.parent + "/" + me
	h.Until = w.k.keep(path, w.c.Lock, h)
	next := v.top
	next.Lock, next.Holder, next.Last = w.c.Lock.Name, h, h.Token
	err := w.k.session.multi(ctx, &zk.SetDataRequest{Path: v.parent, Data: next.bytes(), Version: v.version},
		&zk.SetDataRequest{Path: path, Data: h.bytes(), Version: -1})
	if err != nil {
		return nil, err
	}
	w.k.kept(path, w.c.Lock, h.Until)
	l := w.k.lease(h)
	l.Waited = w.waited(sent)
	return l, nil
}

// tooLate says who has the lock.
func (w *waiter) tooLate(v *view) error {
	var theirs *lockrouter.Lease
	if h := v.holder(); h != nil {
		theirs = lockrouter.NewLease(h.Owner, h.Note, 0, time.UnixMilli(h.Since), time.Until(time.UnixMilli(h.Until)))
	}
	return lockrouter.HeldFailure(w.c.Lock, theirs, w.c.Wait > 0, int64(len(v.ahead(w.name)))+1)
}

// leave takes the waiter's node away, whatever became of the request that made it, in the background if ZooKeeper is away: nobody may
// wait behind a waiter that has gone.
func (w *waiter) leave(away bool) {
	k := w.k
	if w.sent == nil || !away && !w.pending() && w.remove() == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return // with the session
	}
	k.wg.Go(func() {
		for w.remove() != nil && timer.Sleep(k.over, k.o.RetryDelay) == nil {
		}
	})
}

// remove removes the waiter's node. The error is nil if it is gone.
func (w *waiter) remove() error {
	k := w.k
	select {
	case <-w.sent:
	case <-k.over.Done():
		return lockrouter.ErrStore
	}
	v, err := k.look(k.over, w.c.Lock)
	if err != nil {
		return err
	}
	me := v.find(w.name)
	if me == "" {
		return nil
	}
	k.forget(v.parent + "/" + me)
	if err = k.session.remove(k.over, v.parent+"/"+me); errors.Is(err, errAgain) {
		return nil
	}
	return err
}

// Acquire queues, and waits until the lock is free and nobody comes before.
func (k *Keeper) Acquire(ctx context.Context, c *lockrouter.Claim) (*lockrouter.Lease, error) {
	w := &waiter{k: k, c: c, began: time.Now(), name: k.newName(c.Class)}
	l, err := w.acquire(ctx)
	if l == nil || l.Reentered {
		w.leave(errors.Is(err, lockrouter.ErrStore))
	}
	return l, err
}

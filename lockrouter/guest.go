package lockrouter

import (
	"context"
	"errors"
	"time"

	"optimist/lockrouter/state"
)

// guest wraps a Keeper from outside. The Router bounds how many requests wait, and notices clients that have left.
type guest struct {
	r *Router
	Keeper
}

// Acquire acquires a lease. If there is no place to wait, it tries once. If the client has left meanwhile, it gives the lease back.
func (g guest) Acquire(ctx context.Context, c *Claim) (*Lease, error) {
	r, mine, began := g.r, *c, time.Now()
	mine.TTL = c.ttl(r)
	if mine.Wait > 0 {
		if op := (&state.Op{Class: c.Class, Client: c.client}); r.enter(op) {
			defer r.exit(op)
		} else {
			mine.Wait = 0
		}
	}
	waits, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	end := r.ctx
	if mine.Wait > 0 {
		end = r.open
	}
	defer context.AfterFunc(end, func() { stop(errClosed) })()
	l, err := g.Keeper.Acquire(waits, &mine)
	if why := gone(ctx); why != nil && err == nil && !l.Reentered {
		mine.Token = l.Token
		r.giveBack(ctx, g, &mine)
		return nil, why
	}
	if waits.Err() != nil && err != nil && !errors.As(err, new(*Failure)) {
		err = context.Cause(waits)
	}
	if err == nil {
		r.held.add(c.Lock.t.root, l.Token, began.Add(l.remaining()))
	}
	return l, err
}

// Renew counts the lease from now.
func (g guest) Renew(ctx context.Context, c *Claim) (*Lease, error) {
	began := time.Now()
	l, err := g.Keeper.Renew(ctx, c)
	if err == nil {
		g.r.held.add(c.Lock.t.root, l.Token, began.Add(l.remaining()))
	}
	return l, err
}

// Release notes that the lease is over.
func (g guest) Release(ctx context.Context, c *Claim) error {
	err := g.Keeper.Release(ctx, c)
	if err == nil {
		g.r.held.remove(c.Lock.t.root, c.Token)
	}
	return err
}

// enter takes a place for a request that waits, if there is one.
func (r *Router) enter(op *state.Op) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mayWait(op.Client) {
		return false
	}
	r.countWaiting(op, 1)
	return true
}

func (r *Router) exit(op *state.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countWaiting(op, -1)
}

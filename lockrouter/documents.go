package lockrouter

import (
	"context"
	"time"

	"optimist/lockrouter/state"
)

// documents is the Router's own leaser. Its leases are in lock documents, which a Store keeps.
type documents struct{ r *Router }

// Acquire gets a lease through the lock's lane.
func (k documents) Acquire(ctx context.Context, c *Claim) (*Lease, error) {
	r, began := k.r, time.Now()
	op := state.Op{Do: state.Acquire, Owner: c.Owner, Rid: r.Rid(), Path: c.Lock.t.path, Mode: c.mode, Class: c.Class, Note: c.Note,
		TTL: c.ttl(r).Milliseconds(), Client: c.client}
	if err := r.prepare(ctx, c.Lock.t.gate); err != nil {
		return nil, err
	}
	var o outcome
	if c.Wait <= 0 {
		o = r.submit(ctx, c.Lock.t, op)
	} else {
		o = r.wait(ctx, c.Lock.t, op, c.Wait)
	}
	o = r.confirmed(ctx, c.Lock.t, op, o)
	return r.acquisition(c.Lock.t, &op, o, c.Wait > 0, began)
}

// confirmed shuts the lock's gate after the acquisition o. If that took a while, confirmed renews the lease, or acquires it again. It
// returns the outcome that holds then.
func (r *Router) confirmed(ctx context.Context, t *target, op state.Op, o outcome) outcome {
	for o.err == nil && o.result.Verdict.Grants() {
		waited, err := r.confirm(ctx, t.gate)
		switch {
		case err != nil:
			if o.result.Verdict == state.Acquired {
				r.doubt(t, &op)
			}
			return outcome{err: err}
		case !waited:
			return o
		}
		o = r.submit(ctx, t, op)
	}
	return o
}

// acquisition turns the outcome of an acquisition into a lease, or into the error that the client gets.
func (r *Router) acquisition(t *target, op *state.Op, o outcome, waited bool, began time.Time) (*Lease, error) {
	if o.err != nil {
		return nil, o.err
	}
	switch v := o.result.Verdict; v {
	case state.Acquired, state.Reentered:
		l := leaseOf(o.doc, &o.hold, o.doc.Seen, true)
		// The lease begins Waited after the client sent its request, or later. A client that counts from there never trusts it for too long.
		ms := max(o.sent.Sub(began).Milliseconds(), 0)
		l.Waited, l.Reentered = &ms, v == state.Reentered
		r.held.add(t.root, l.Token, o.sent.Add(time.Duration(o.hold.TTL)*time.Millisecond))
		return &l, nil
	case state.Full, state.Large, state.Share:
		return nil, r.fullFailure(v)
	}
	return nil, r.heldFailure(t, op, o.doc, waited && !o.tried, o.nth)
}

// Renew makes a lease longer.
func (k documents) Renew(ctx context.Context, c *Claim) (*Lease, error) {
	r, t := k.r, c.Lock.t
	o := r.submit(ctx, t, state.Op{Do: state.Renew, Owner: c.Owner, Token: c.Token, Note: c.Note, TTL: c.TTL.Milliseconds(), Path: t.path,
		Class: state.Foreground, Mode: state.Exclusive, Client: c.client})
	if o.err != nil {
		return nil, o.err
	}
	if o.result.Verdict != state.Renewed {
		return nil, Refuse(t.asLock(), o.result.Verdict)
	}
	if _, err := r.confirm(ctx, t.gate); err != nil {
		return nil, err
	}
	r.held.add(t.root, c.Token, o.sent.Add(time.Duration(o.hold.TTL)*time.Millisecond))
	l := leaseOf(o.doc, &o.hold, o.doc.Seen, true)
	return &l, nil
}

// Release gives a lock back.
func (k documents) Release(ctx context.Context, c *Claim) error {
	switch verdict, err := k.r.end(ctx, c.Lock.t, c.Owner, c.Token); {
	case err != nil:
		return err
	case verdict != state.Released:
		return Refuse(c.Lock, verdict)
	}
	return nil
}

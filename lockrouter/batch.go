package lockrouter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"optimist/lockrouter/state"
)

// The calls that acquire, renew and release the locks of several documents. They go on after the client has left. If a call were cut off,
// the store might still carry it out, and later than the release that is to give its locks back.

// acquire takes the locks in their order, many with one call. If another owner has one of them, acquire gives back the locks after that
// one, and waits for it. So a waiting request only holds locks that come before the one it waits for. All requests use the same order, so
// that no two wait for each other.
func (b *batch) acquire(ctx context.Context) error {
	deadline := b.began.Add(b.r.patience(b.a))
	for next := 0; next < len(b.items); {
		part := b.items[next:min(next+chunk, len(b.items))]
		taken, err := b.try(part)
		switch {
		case err != nil:
			return err
		case gone(ctx) != nil:
			return gone(ctx)
		}
		if taken < 0 {
			next += len(part)
		} else {
			b.release(part[taken+1:])
			forget(part[taken+1:])
			next += taken
			if err := b.wait(ctx, next, deadline); err != nil {
				return err
			}
			next++
		}
		if err := b.refresh(b.items[:next], 3); err != nil {
			return err
		}
	}
	return b.refresh(b.items, 10)
}

// forget drops what the last call has found.
func forget(part []*item) {
	for _, it := range part {
		it.doc = nil
	}
}

func (b *batch) op(it *item) state.Op {
	return state.Op{Do: state.Acquire, Owner: b.a.Owner, Rid: it.rid, Mode: state.Exclusive, Class: b.a.class, Note: b.a.Note,
		TTL: b.r.ttl(b.a).Milliseconds(), Client: b.client}
}

// try tries to acquire some locks with one call. taken is the index of the first that isn't free; -1: all were acquired.
func (b *batch) try(part []*item) (taken int, err error) {
	taken = -1
	b.do(part, b.op, func(i int, it *item, d *Changed) {
		switch {
		case d.Err != nil:
			err = d.Err
			it.mine = false
			if uncertain(d.Err) {
				it.rid = b.doubt(it)
			}
		case d.Results[0].Verdict.Grants():
			it.token, it.mine = d.Results[0].Token, d.Results[0].Verdict == state.Acquired
		case taken < 0:
			taken = i
		}
	})
	return taken, err
}

// doubt releases the lock that a call without an answer may have acquired. It returns a new request id for the item, so that the release,
// which names the old id, can't hit a later acquisition.
func (b *batch) doubt(it *item) string {
	b.r.doubt(it.t, &state.Op{Rid: it.rid, TTL: b.r.ttl(b.a).Milliseconds()})
	return b.r.Rid()
}

// do has the store carry out one operation on each item.
func (b *batch) do(part []*item, op func(*item) state.Op, each func(i int, it *item, d *Changed)) {
	b.r.carryOut(part, func(i int) state.Op { return op(part[i]) }, each)
}

// carryOut has the store carry out one operation on each item. The operations don't queue behind waiters. carryOut goes on if the client
// leaves.
func (r *Router) carryOut(part []*item, op func(i int) state.Op, each func(i int, it *item, d *Changed)) {
	if len(part) == 0 {
		return
	}
	changes := make([]Change, len(part))
	for i, it := range part {
		changes[i] = r.change(it.t, op(i))
	}
	sent := time.Now()
	for i, d := range r.o.Store.Do(r.ctx, changes) {
		it := part[i]
		if d.Err == nil {
			it.doc = d.Doc
			if v := d.Results[0].Verdict; v.Grants() || v == state.Renewed {
				it.doc = nil // documents are large, and a request may have acquired thousands while it waits for one more
				h, _ := d.Doc.Holding(d.Results[0].Token)
				it.sent, it.seen, it.ttl = sent, d.Doc.Seen, time.Duration(h.TTL)*time.Millisecond
			}
			if d.Results[0].Verdict.Positive() {
				r.lapses(d.Doc)
			}
		}
		each(i, it, &d)
	}
}

// wait waits for the n-th lock. Meanwhile it renews the leases of the locks before it.
func (b *batch) wait(ctx context.Context, n int, deadline time.Time) error {
	it, op := b.items[n], b.op(b.items[n])
	left := time.Until(deadline)
	if left <= 0 {
		return b.r.heldFailure(it.t, &op, it.doc, b.r.patience(b.a) > 0, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var alive sync.WaitGroup
	alive.Go(func() { b.keep(ctx, cancel, b.items[:n]) })
	o := b.r.wait(ctx, it.t, op, left)
	cancel(nil)
	alive.Wait()
	if _, err := b.r.acquisition(it.t, &op, o, true, b.began); err != nil {
		return err
	}
	// The request's id may have changed while it waited. It is empty if the owner has acquired the same lock by another request meanwhile.
	it.rid, it.mine = o.hold.Rid, o.result.Verdict == state.Acquired && o.hold.Rid != ""
	it.token, it.sent, it.seen, it.doc = o.result.Token, o.sent, o.doc.Seen, nil
	it.ttl = time.Duration(o.hold.TTL) * time.Millisecond
	return nil
}

// keep renews leases until ctx ends. It doesn't give up if the store is away for a while: the next call shows whether the leases are still
// there.
func (b *batch) keep(ctx context.Context, cancel context.CancelCauseFunc, part []*item) {
	every := time.NewTicker(max(b.r.ttl(b.a)/3, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			if err := b.renew(part, 0); err != nil && !errors.Is(err, ErrStore) {
				cancel(err)
				return
			}
		}
	}
}

// refresh renews the leases of a part if a fraction of one of them is over.
func (b *batch) refresh(part []*item, fraction time.Duration) error {
	if !slices.ContainsFunc(part, func(it *item) bool { return time.Since(it.sent) >= it.ttl/fraction }) {
		return nil
	}
	return b.renew(part, 0)
}

// renew renews leases for ttl; 0: each for its own length. (A lease may be older than this request, and longer.) If one lease has ended,
// and the store didn't answer for another, the error says that the lease has ended.
func (b *batch) renew(part []*item, ttl time.Duration) (err error) {
	b.do(part, func(it *item) state.Op {
		return state.Op{Do: state.Renew, Owner: b.a.Owner, Token: it.token, Mode: state.Exclusive, Class: b.a.class,
			TTL: ttl.Milliseconds()}
	}, func(_ int, it *item, d *Changed) {
		switch {
		case d.Err != nil && err == nil:
			err = d.Err
		case d.Err == nil && d.Results[0].Verdict != state.Renewed:
			it.mine = false
			err = Refuse(it.t.asLock(), d.Results[0].Verdict)
		}
	})
	return err
}

// release gives back the locks that this request has acquired. It leaves those that the owner has acquired again by another request. It
// doesn't wait, because the client may have left; releases that fail are repeated.
func (b *batch) release(part []*item) {
	part = slices.DeleteFunc(slices.Clone(part), func(it *item) bool { return !it.mine })
	b.do(part, func(it *item) state.Op { return state.Op{Do: state.Abandon, Rid: it.rid} }, func(_ int, it *item, d *Changed) {
		b.r.held.remove(it.t.root, it.token)
		if d.Err != nil {
			it.rid = b.doubt(it)
		}
		it.mine, it.token = false, 0
	})
	b.r.runLanes(part)
}

// runLanes wakes the lanes of these locks, so that the next waiters get them: the locks were released by calls that bypass the lanes.
func (r *Router) runLanes(part []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range part {
		r.runLane(it.t.id, it.doc)
		it.doc = nil
	}
}

package lockrouter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"optimist/internal/undo"
	"optimist/lockrouter/state"
)

// Undo for the locks of several documents: they have one journal.

// acquireSettled acquires the locks, and settles what was left. If the owner still has leases whose journal has ended, it ends them, and
// begins again: see undoer.acquire.
func (b *batch) acquireSettled(ctx context.Context) error {
	for {
		err := b.acquire(ctx)
		if err == nil {
			err = b.settleAll(ctx)
		}
		if err != nil {
			return err
		}
		over, err := b.over(ctx)
		if err != nil || len(over) == 0 {
			return err
		}
		b.release(b.items) // the others, too: a request that waits holds only locks that come before
		ended := &batch{r: b.r, a: b.a, client: b.client, items: over}
		if _, err := ended.end(state.Verdict.Ended); err != nil {
			return err
		}
		for _, it := range b.items {
			it.rid = b.r.Rid()
		}
	}
}

// over are the locks that the owner had before, by leases whose journal has ended.
func (b *batch) over(ctx context.Context) ([]*item, error) {
	had := slices.DeleteFunc(slices.Clone(b.items), func(it *item) bool { return it.mine })
	if b.r.o.Undo == nil || len(had) == 0 {
		return nil, nil
	}
	over, err := b.r.over(ctx, b.leases(had))
	if err != nil {
		return nil, err
	}
	ended := map[string]bool{}
	for _, id := range over {
		ended[id] = true
	}
	return slices.DeleteFunc(had, func(it *item) bool { return !ended[it.t.id] }), nil
}

// settleAll settles what was left by leases on the locks of several documents.
func (b *batch) settleAll(ctx context.Context) error {
	if b.r.o.Undo == nil {
		return nil
	}
	left, err := b.r.o.Undo.Registered(ctx, b.leases(b.items))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	if len(left) == 0 {
		return nil
	}
	mine := map[string]*item{}
	for _, it := range b.items {
		mine[it.t.id] = it
	}
	return b.kept(ctx, func(ctx context.Context) error {
		for i := range left {
			it := mine[left[i].Doc]
			settling, stop := context.WithTimeout(ctx, max(b.r.patience(b.a), b.r.o.Patience))
			err := b.r.o.Undo.Settle(settling, &left[i], func(token int64, _ string) (bool, error) { return token != it.token, nil })
			stop()
			if err != nil {
				return undoFailure(ctx, it.t, err)
			}
		}
		return nil
	})
}

// openJournal begins the journal of all these leases.
func (b *batch) openJournal(ctx context.Context) error {
	return b.kept(ctx, func(ctx context.Context) error {
		if err := b.r.o.Undo.Open(ctx, b.leases(b.items)); err != nil {
			return undoFailure(ctx, b.items[0].t, err)
		}
		return nil
	})
}

// kept calls a function, and renews the leases meanwhile.
func (b *batch) kept(ctx context.Context, f func(ctx context.Context) error) error {
	working, cancel := context.WithCancelCause(ctx)
	var alive sync.WaitGroup
	alive.Go(func() { b.keep(working, cancel, b.items) })
	err := f(working)
	lost := context.Cause(working)
	cancel(nil)
	alive.Wait()
	switch {
	case lost != nil && gone(ctx) == nil:
		return lost // a lease has ended
	case err != nil:
		return err
	}
	return b.refresh(b.items, 10)
}

// leases are those of some items, as journals name them.
func (b *batch) leases(items []*item) []undo.Lock {
	all := make([]undo.Lock, len(items))
	for i, it := range items {
		all[i] = it.t.asLock().journal(b.a.Owner, it.token)
	}
	return all
}

// commit commits what was written under the leases: see Router.commit.
func (b *batch) commit(ctx context.Context) (had bool, err error) {
	if b.r.o.Undo == nil {
		return false, nil
	}
	return b.r.commit(ctx, b.leases(b.items), b.held)
}

// held reports, by an error, that one of the leases has ended.
func (b *batch) held() error { return b.renew(b.items, 0) }

// rollback undoes what was written under the leases, and then ends them.
func (b *batch) rollback(ctx context.Context) (*Answer, error) {
	left := 0
	undoAll := func(ctx context.Context) (err error) {
		left, err = b.r.rollback(ctx, b.r.patience(b.a), b.leases(b.items), b.held)
		return err
	}
	err := b.kept(ctx, undoAll)
	if isOver(err) { // there is nothing to be kept
		err = undoAll(ctx)
	}
	if err != nil {
		return nil, undoFailure(ctx, b.items[0].t, err)
	}
	released, err := b.end(state.Verdict.Ended)
	if err != nil {
		return nil, err
	}
	return reply(http.StatusOK, map[string]any{"released": true, "undone": true, "left": left, "count": released}), nil
}

// commitFound commits what was written under leases that a list has shown, where some of them have one journal together. Others are
// committed one by one.
func (r *Router) commitFound(ctx context.Context, list []foundLease) error {
	if len(list) == 0 {
		return nil
	}
	leases := make([]undo.Lock, len(list))
	for i, l := range list {
		leases[i] = l.Lock.journal(l.Owner, l.Token)
	}
	journals, err := r.journals(ctx, leases)
	if err == nil && slices.ContainsFunc(journals, func(j undo.Begun) bool { return j.Of > 1 }) {
		_, err = r.commit(ctx, leases, func() error {
			for _, l := range list {
				if err := r.lasts(ctx, l.Claim); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil && !errors.Is(err, undo.ErrEnded) { // what is undone is refused one by one
		return undoFailure(ctx, list[0].Lock.t, err)
	}
	return nil
}

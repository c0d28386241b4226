package write

import (
	"context"

	"optimist/internal/outbound"
	"optimist/internal/wire"
)

// share reports whether m may go in the same write as first: both can be merged, and route, parameters, media type and rule
// are the same, and both are patches or neither is. It is asked with the lane locked.
func share(first, m *change) bool {
	return first.shares && m.shares && first.req.Rule == m.req.Rule && (first.patch == nil) == (m.patch == nil) &&
		first.policy().MaxAttempts == m.policy().MaxAttempts &&
		first.req.realm() == m.req.realm() && first.req.Route == m.req.Route &&
		outbound.Alike(&first.out, &m.out)
}

// outlive is ctx without its client: the leader's may leave, and the others' changes are still to be written. The time that the
// client gives stays, because changes that share a write have the same.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	stay := wire.WithoutPeer(context.WithoutCancel(ctx))
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadlineCause(stay, end, ErrTimeout)
	}
	return stay, func() {}
}

// split gives every open change an attempt of its own. Of those of which a try may have been applied the outcome stays unknown.
func (a *attempt) split(ctx context.Context) {
	for _, c := range a.open {
		if c.maybeApplied {
			c.err = ErrUnknownOutcome
			continue
		}
		a.single(ctx, c)
	}
	a.open = nil
}

// single gives a change of the batch an attempt of its own.
func (a *attempt) single(ctx context.Context, c *change) {
	a.batch.Forget() // what it couldn't go with is no place to start from
	one := &attempt{s: a.s, batch: a.batch, open: []*change{c}, doubt: a.doubt.inherited()}
	one.do(ctx)
}

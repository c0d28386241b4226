package write

import (
	"context"
	"fmt"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// maxMoves is how often a write begins again because its name stands for another index.
const maxMoves = 3

// beginAgain makes the change what it was before it was located. The count of its tries stays.
func (s *Service) beginAgain(c *change) error {
	c.Base.Release()
	before := *c
	before.req.Found = nil // the name stands for another index now
	err := c.read(before.req, s)
	c.ctx, c.cancel, c.Room, c.Began, c.Deadline = before.ctx, before.cancel, before.Room, before.Began, before.Deadline
	c.attempts, c.moves = before.attempts, before.moves+1
	if c.attempts > 0 {
		c.Outcome.Kind = outcome.Guarded // until now: the engine has refused the guarded tries
	}
	return err
}

// acked reads the acknowledgement of the change's write. It names another index if the name was moved: then the change is of that index
// from here on. If nothing explains why the acknowledgement names another document, it is that of another write, and the outcome of this
// one is unknown.
func (s *Service) acked(ctx context.Context, c *change, res *upstream.Response, item *es.Item) (ack.Ack, error) {
	got := ack.Of(res, item, c.Target())
	if got.Missed && s.bases.Follow(ctx, &c.Search, got.Index) {
		c.Outcome.Reason = session.ReasonIndex.String()
		got = ack.Of(res, item, c.Target())
	}
	if !got.Missed || got.Dropped() {
		return got, nil
	}
	if c.Name != c.Index.Name && !ack.Of(res, item, doc.Ref{ID: c.Doc.ID}).Missed {
		return got, nil // the name may have been moved twice, and a gateway may call the index by the client's name
	}
	if !s.bases.MayGoElsewhere(ctx, &c.Search) {
		return got, errAnothers
	}
	return got, nil
}

// ackedUnder is acked for a write under a guard, which must be newer than that.
func (s *Service) ackedUnder(
	ctx context.Context, c *change, guard doc.Numbers, res *upstream.Response, item *es.Item,
) (ack.Ack, error) {
	got, err := s.acked(ctx, c, res, item)
	if err == nil && got.IsOfEarlier(guard, c.Op.Kind == api.Update) {
		err = errAnothers
	}
	return got, err
}

// concerns reports whether the engine's refusal of a write is of the change's.
func (s *Service) concerns(ctx context.Context, c *change, why *ack.Refusal) bool {
	return why.IsOf(c.Doc.ID) || s.bases.MayGoElsewhere(ctx, &c.Search)
}

// errAnothers reports an answer to a write that is about another document, or about an earlier write.
var errAnothers = fmt.Errorf("%w: %w", ErrUnknownOutcome, es.ErrAnothers)

package write

import (
	"context"

	"optimist/internal/ack"
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
// from here on.
func (s *Service) acked(ctx context.Context, c *change, res *upstream.Response, item *es.Item) ack.Ack {
	got := ack.Of(res, item, c.Target())
	if got.Missed && s.bases.Follow(ctx, &c.Search, got.Index) {
		c.Outcome.Reason = session.ReasonIndex.String()
		got = ack.Of(res, item, c.Target())
	}
	return got
}

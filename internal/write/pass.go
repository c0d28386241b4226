package write

import (
	"context"
	"errors"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/journal"
	"optimist/internal/mark"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
)

// pass sends the write as it is. What the session learns from it depends on its base: a write without one leaves no view.
func (s *Service) pass(ctx context.Context, c *change, reason string) error {
	if c.req.Journal != nil {
		return journal.Passed(c.Op, reason)
	}
	c.Outcome.Kind, c.Outcome.Reason = outcome.Passed, reason
	if c.Outcome.Base == outcome.BaseExplicit || c.Outcome.Base == outcome.BaseAbsent && c.Op.Kind != api.Delete {
		c.Outcome.Kind = outcome.Guarded // by the client, or by the engine, which makes no document twice
	}
	body, unfit := s.outgoing(c)
	if unfit != nil {
		c.Outcome.Kind, c.answer = outcome.Refused, c.unapplied(unfit)
		return nil
	}
	if done, err := s.admitPassed(ctx, c, body); done || err != nil {
		return err
	}
	c.unmark()
	create, coded := c.OnlyNew && c.Op.Kind == api.Index, c.Outcome.Kind == outcome.Passed
	res, err := s.sendDirect(ctx, c, c.out.AsSent(c.req.Method, c.markPassed(body), create, coded))
	if err != nil {
		return s.findPassed(ctx, c, err)
	}
	c.setAnswer(c.room.FromEngine(res))
	if c.Outcome.Base == outcome.BaseExplicit {
		s.reportCollision(c)
	}
	if c.left != nil {
		body, _ = mark.Take(body, c.field())
	}
	s.settlePassed(ctx, c, res, body)
	return nil
}

// sendDirect sends a request of the change's that no lane is for.
func (s *Service) sendDirect(ctx context.Context, c *change, r *upstream.Request) (*upstream.Response, error) {
	res, err := s.direct.send(ctx, c, r)
	if err == nil || errors.Is(err, ErrUnknownOutcome) {
		c.attempts++
	}
	return res, err
}

// outgoing is the body of a write that goes without a merge: as it was sent, or what the rule's transform makes of that.
func (s *Service) outgoing(c *change) ([]byte, *intent.ApplyError) {
	t := c.intents.Transformer()
	switch {
	case c.Rule.Transform == nil:
		return c.req.Body, nil
	case t == nil, !c.JSON, t.ReadsCurrent() && c.Op.Kind == api.Index && !c.OnlyNew:
		c.Outcome.Untransformed = c.Op.Kind != api.Delete
		return c.req.Body, nil
	}
	d, err := c.intents.New(c.req.Body).Next(doc.Revision{})
	var unfit *intent.ApplyError
	if errors.As(err, &unfit) {
		return nil, unfit
	}
	c.Outcome.Untransformed = d.Untransformed
	return d.Body, nil
}

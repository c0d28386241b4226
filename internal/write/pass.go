package write

import (
	"context"
	"errors"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/journal"
	"optimist/internal/mark"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
)

// pass sends the write as it is. What the session learns from it depends on the base: a write without a base leaves no view.
func (s *Service) pass(ctx context.Context, c *change, reason string) error {
	if c.req.Journal != nil {
		return journal.Passed(c.Op, reason)
	}
	c.Outcome.Kind, c.Outcome.Reason = outcome.Passed, reason
	if c.Outcome.Base == outcome.BaseExplicit || c.Outcome.Base == outcome.BaseAbsent && c.Op.Kind != api.Delete {
		c.Outcome.Kind = outcome.Guarded // by the client's own guard, or because the engine creates no document twice
	}
	body, failed := c.intents.Outgoing(c.req.Body)
	if failed != nil {
		c.Outcome.Kind, c.answer = outcome.Refused, c.unapplied(failed)
		return nil
	}
	if done, err := s.admitPassed(ctx, c, body); done || err != nil {
		return err
	}
	c.unmark()
	create := c.OnlyNew && c.Op.Kind == api.Index
	guard, _ := api.ReadGuard(c.Op.Query) // the client's own
	res, got, err := s.sendDirect(ctx, c, guard, c.out.AsSent(c.req.Method, c.markPassed(body), create))
	if err != nil {
		return s.findPassed(ctx, c, err)
	}
	c.setAnswer(c.answerRoom.FromEngine(res))
	if c.Outcome.Base == outcome.BaseExplicit {
		s.reportCollision(c)
	}
	if c.trailLeft != nil {
		body, _ = mark.Take(body, c.field())
	}
	s.settlePassed(ctx, c, res, &got, body)
	return nil
}

// sendDirect sends a request of the change that goes without a lane, under a guard, if it has one. If the answer is a success, sendDirect
// also reads it.
func (s *Service) sendDirect(
	ctx context.Context, c *change, guard doc.Numbers, r *upstream.Request,
) (res *upstream.Response, got ack.Ack, err error) {
	res, err = s.direct.send(ctx, c, r)
	if err == nil || errors.Is(err, ErrUnknownOutcome) {
		c.attempts++
	}
	switch {
	case err != nil:
		return nil, got, err
	case res.Status < 300:
		got, err = s.ackedUnder(ctx, c, guard, res, nil)
	case res.Status == http.StatusConflict:
		if why := ack.Why(res.Fields, res.Payload); !s.concerns(ctx, c, &why) {
			err = errAnothers
		}
	}
	if err != nil {
		res.Release()
	}
	return res, got, err
}

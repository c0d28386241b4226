package write

import (
	"context"
	"errors"

	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/undeliverable"
)

// keep makes a dead letter of a write that can't be placed, if the rule asks for that, and returns the error that remains. The client
// gets a 202 once the letter is stored. Otherwise it gets the error that it would get without a letter.
func (s *Service) keep(ctx context.Context, c *change, err error) error {
	if c.Preset != nil || c.req.OnlyInBulk {
		return err
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), intake.ErrTimeout) {
		return err // the client has left: nobody would be told of the letter
	}
	w := c.undelivered(err)
	reason := w.Why()
	if reason == "" {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if c.Doc.Index == "" {
		c.Doc.Index = c.Name // the engine couldn't be asked what it stands for
	}
	if c.attempts == 0 {
		s.bases.TakeLate(ctx, &c.Search)
	}
	id, failed := s.letters.Keep(ctx, w.Letter(reason))
	if failed != nil {
		return err
	}
	c.answer.Release()
	c.answer = respond.Kept(s.documentOf(c), id, reason)
	c.Outcome.Kind, c.Outcome.Reason = outcome.DeadLetter, reason
	// The client's copy has a change that isn't stored. The numbers alone guard its next write from the same revision: a merge would make
	// this change a second time.
	c.Base.Doubt()
	return nil
}

// undelivered describes the change for a dead letter. It ended with err, or with its answer.
func (c *change) undelivered(err error) *undeliverable.Write {
	return &undeliverable.Write{Search: &c.Search, Method: c.req.Method, Body: c.req.Body, Client: c.req.Client, Attempts: c.attempts,
		Answer: c.answer, Err: err, Final: c.barred || c.maybeApplied, Wanted: c.unfit || c.guard.Known()}
}

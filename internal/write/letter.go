package write

import (
	"context"
	"errors"

	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/undeliverable"
)

// keep makes a dead letter of a write that can't be placed, if the rule asks for dead letters. Once the letter is stored, the client gets a
// 202, and keep returns nil. Otherwise keep returns the error that the client gets.
func (s *Service) keep(ctx context.Context, c *change, err error) error {
	if c.Preset != nil || c.req.OnlyInBulk {
		return err
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), intake.ErrTimeout) {
		return err // the client has left: nobody would learn of the letter
	}
	w := c.undelivered(err)
	reason := w.Why()
	if reason == "" {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if c.Doc.Index == "" {
		c.Doc.Index = c.Name // the engine hasn't said which index the name stands for
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
	// The client's copy has a change that isn't stored. A merge of its next write from the same base would make this change, and the replay
	// of the letter would make it again. So the base's numbers only guard that write.
	c.Base.Doubt()
	return nil
}

// undelivered describes the change for a dead letter. It ended with err, or with its answer.
func (c *change) undelivered(err error) *undeliverable.Failure {
	return &undeliverable.Failure{Search: &c.Search, Method: c.req.Method, Body: c.req.Body, Client: c.req.Client, Attempts: c.attempts,
		Answer: c.answer, Err: err, Final: c.obstacle == locked || c.maybeApplied, Wanted: c.obstacle == unfit || c.guard.Known()}
}

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/upstream"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
)

// refuse answers a change whose intent can't be applied to the revision just read.
func (a *attempt) refuse(ctx context.Context, c *change, err error) {
	if c.maybeApplied {
		c.err = ErrUnknownOutcome // an earlier try may have been applied, and the refusal is of a later one
		return
	}
	c.Outcome.Kind = c.kindRefused()
	switch {
	case errors.Is(err, intent.ErrGone):
		c.Outcome.Kind = outcome.Merged
		c.answer = a.s.notFound(c, c.revision())
		c.Base.Delete()
	case errors.Is(err, doc.ErrMissing):
		c.answer = a.s.noops.Missing(ctx, c.noop(), a.noIndex)
	case errors.Is(err, base.ErrAmbiguous):
		c.Outcome.Ambiguous, c.err = true, err
	default:
		c.answer = a.refusal(c, err)
	}
}

// kindRefused is the outcome of a change that optimist itself refuses in its lane: perhaps the engine has refused guarded tries before.
func (c *change) kindRefused() outcome.Kind {
	if c.attempts > 0 {
		return outcome.Guarded
	}
	return outcome.Refused
}

// refusal is the answer to a change that can't be made: the engine's own conflict, if there was one and a conflict is the reason.
func (a *attempt) refusal(c *change, err error) *respond.Answer {
	var unreplayed *noReplayError
	var both *merge.ConflictError
	var moved *intent.MovedError
	var failed *intent.ApplyError
	switch {
	case errors.As(err, &unreplayed):
		c.notReplayed(unreplayed.reason)
	case errors.Is(err, intent.ErrExists):
		return respond.Exists(c.Doc.Index, c.Doc.ID, a.cur.Version)
	case errors.Is(err, intent.ErrDeleted):
		return c.conflict(err.Error())
	case errors.Is(err, intent.ErrUnmergeable):
	case errors.As(err, &moved):
		return c.conflict(moved.Error())
	case errors.As(err, &both):
		return c.conflict("rule [" + c.Rule.Name + "] refuses to merge: both the client and another client changed [" +
			strings.Join(both.Paths, ", ") + "]")
	case errors.As(err, &failed):
		return c.unapplied(failed)
	default:
		// The engine may take a body that the merge can't read: optimist only guards such a write, and the conflict is the answer.
		c.Outcome.Reason = outcome.ReasonFormat
		err = fmt.Errorf("and it can't be merged: %w", err)
	}
	if a.conflict != nil {
		return a.conflict.Clone()
	}
	return c.conflict(err.Error())
}

// answerAll gives all open changes the same answer.
func (a *attempt) answerAll(answer *respond.Answer) {
	for _, c := range a.open {
		c.answer = answer.Clone()
	}
	a.open = nil
}

// handleError gives the engine's answer, which is neither an acknowledgement nor a conflict, to all open changes. See also verdict.
func (a *attempt) handleError(res *upstream.Response) {
	a.batch.Forget()
	for i, c := range a.open {
		c.setAnswer(a.answerOf(res, i))
	}
	a.open = nil
}

// answerOf is the engine's answer for the open change i. The last change gets the answer itself, and the others get copies.
func (a *attempt) answerOf(res *upstream.Response, i int) *respond.Answer {
	if i == len(a.open)-1 {
		return a.open[i].answerRoom.FromEngine(res)
	}
	return respond.CopyEngine(res)
}

// unapplied is the answer to a write whose patch, or whose rule's transform, can't be applied to the document.
func (c *change) unapplied(e *intent.ApplyError) *respond.Answer {
	c.obstacle = unfit
	if c.patch != nil && intent.Unreadable(e.Err) {
		c.obstacle = unpatchable
	}
	if errors.As(e, new(*edit.TestError)) {
		return c.conflict(e.Error())
	}
	reason := "[" + c.Doc.ID + "]: " + e.What + " can't be applied: " + e.Err.Error()
	if errors.Is(e, budget.ErrTooMuch) { // the answer is that to a body that is too large to be held
		return respond.ErrorIn(c.Doc.Index, http.StatusRequestEntityTooLarge, "request_too_large", reason)
	}
	return respond.ErrorIn(c.Doc.Index, 400, "illegal_argument_exception", reason)
}

// setAnswer makes an answer of the engine the change's answer. A status above 499 leaves the outcome unknown: the primary may have written
// before, or a balancer may have lost the engine's own answer.
func (c *change) setAnswer(a *respond.Answer) {
	c.answer = a
	if a.Status >= 500 {
		c.Outcome.Kind = outcome.Unknown
	}
}

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// How a 409 becomes a 200, function by function:
//
//	handleConflict             keeps the engine's 409, and the retry loop calls try (attempt.go) again
//	compose → fetch            reads the newer revision
//	compose → fold → nextDraft merges the client's change into that
//	send (attempt.go)          writes the result, under the newer revision's guard
//	handleSuccess (settle.go)  gives the client the engine's 200

// handleConflict remembers the engine's conflict, and ends here for changes that are never merged.
func (a *attempt) handleConflict(ctx context.Context, res *upstream.Response) error {
	first := a.open[0]
	a.s.events.Conflict.Call(first.Rule.Name)
	a.batch.Forget()
	a.batch.Progress()
	exists := res.Status != http.StatusConflict // an _update that only creates has found a document
	if exists {
		a.conflict = respond.Exists(first.Doc.Index, first.Doc.ID, ack.Read(res, doc.Ref{}).Version)
	} else {
		a.conflict = respond.CopyEngine(res)
	}
	res.Release()
	if !exists && !a.anyMaybeApplied() && a.s.noops.Reroutes(ctx, first.noop(), a.load.guard, a.conflict) {
		if len(a.open) > 1 {
			a.split(ctx)
			return nil
		}
		a.endUnguarded(outcome.ReasonPipeline)
		return nil
	}
	if len(a.open) > 1 || first.maybeApplied {
		return doc.ErrConflict
	}
	reason := a.s.whyNotReplayed(ctx, first)
	if reason == "" || !a.judgeConflicts(ctx) {
		return doc.ErrConflict
	}
	first.notReplayed(reason)
	first.Outcome.Kind = outcome.Guarded
	a.answerAll(a.conflict)
	return nil
}

// fetch reads the current revision as the client, and then judges the changes that an earlier try may have applied.
func (a *attempt) fetch(ctx context.Context) error {
	first := a.open[0]
	a.s.events.Fetch.Call(first.Rule.Name)
	a.batch.Forget()
	if a.anyMaybeApplied() {
		ctx = context.WithoutCancel(ctx) // the client may have left, but its next write builds on the result
	}
	rev, err := a.s.bases.Current(ctx, &first.Search)
	a.batch.Progress()
	a.noIndex = errors.Is(err, base.ErrNoIndex)
	switch {
	case errors.Is(err, base.ErrMoved) && a.anyMaybeApplied(): // to ask again would find the same
		return ErrUnknownOutcome
	case errors.Is(err, base.ErrMoved):
		return base.ErrMoved
	case err == nil, errors.Is(err, doc.ErrMissing):
		a.cur, a.trail = first.unmarked(rev)
		if err == nil {
			a.locateAgain(ctx)
		}
		a.source = read
		if len(a.open) > 0 {
			a.judgeDoubt(ctx)
		}
		return nil
	case delivery.MayAskAgain(err):
		return fmt.Errorf("%w: %w", doc.ErrConflict, err)
	case a.anyMaybeApplied(), a.conflict != nil && !a.judgeConflicts(ctx):
		return delivery.Unknown(err)
	case a.conflict != nil:
		// Nothing was written: the engine's conflict says so, and the client knows what to do about it.
		a.answerAll(a.conflict)
		return nil
	}
	return err
}

// locateAgain asks what the index is, if it was made after the changes came: perhaps its documents can't be patched.
func (a *attempt) locateAgain(ctx context.Context) {
	left := a.open[:0:len(a.open)]
	for _, c := range a.open {
		barred := a.s.bases.LocateNew(ctx, &c.Search) && c.patch != nil && !c.maybeApplied && a.s.barPatch(c)
		if !barred {
			left = append(left, c)
		}
	}
	a.open = left
}

// compose makes the document to write from the current revision. A guarded write may start from a guess. Only a fresh read decides that a
// change is refused, or needs no write: the guess may be of a document that isn't stored.
func (a *attempt) compose(ctx context.Context) (body []byte, err error) {
	for {
		if a.source == unread {
			if err := a.fetch(ctx); err != nil || len(a.open) == 0 {
				return nil, err
			}
		}
		if !a.cur.Known() && len(a.open) > 1 {
			// Creates share no write: the answer would have no numbers that tell a client that it hasn't seen the whole document.
			a.split(ctx)
			return nil, nil
		}
		body, refusal := a.fold(ctx)
		switch {
		case len(a.open) == 0:
			return nil, nil
		case errors.Is(refusal, budget.ErrOverloaded):
			return nil, refusal
		case refusal == nil && (a.changes > 0 || a.source == based):
			return body, nil
		case a.source == early:
			a.fromBases() // the engine says first whether the client may write there at all
		case a.source == read:
			a.answerUnwritten(ctx, refusal)
			return nil, nil
		default:
			a.source = unread
		}
	}
}

// fold asks the changes' intents one after the other. Each gets the draft of the intent before it, and returns a new draft. A refused
// change goes alone after the others: the engine may still refuse those, and the change may be right without them.
func (a *attempt) fold(ctx context.Context) (body []byte, refusal error) {
	cur, left := a.cur, a.open[:0:len(a.open)]
	a.changes = 0
	for _, c := range a.open {
		a.batch.Progress()
		d, err := a.nextDraft(ctx, c, cur)
		if err != nil && len(a.open) > 1 {
			a.separate = append(a.separate, c)
			continue
		}
		if err == nil && !d.Unchanged {
			a.changes, cur = a.changes+1, doc.Revision{Source: d.Body}
		}
		c.draft, refusal = d, err
		left = append(left, c)
	}
	a.open = left
	return cur.Source, refusal
}

// nextDraft is the change's draft for cur. cur has no numbers if it is the draft of an earlier change in the batch.
func (a *attempt) nextDraft(ctx context.Context, c *change, cur doc.Revision) (intent.Draft, error) {
	if c.intent.Merges(cur) && cur.Source != nil {
		if reason := a.s.whyNotReplayed(ctx, c); reason != "" {
			return intent.Draft{}, &noReplayError{reason}
		}
	}
	d, err := c.intent.Next(cur)
	if d.Echo && c.Rule.FailAmbiguous {
		return intent.Draft{}, base.ErrAmbiguous
	}
	return d, err
}

// whyNotReplayed tells why a conflict is the change's answer, or "" where the change can be applied to a newer revision.
func (s *Service) whyNotReplayed(ctx context.Context, c *change) string {
	return s.bases.WhyNotReplayed(ctx, &c.Search, c.guard.Known(), c.fromBase)
}

// notReplayed puts the reason why the change isn't replayed into its outcome, unless the base has a reason of its own.
func (c *change) notReplayed(reason string) {
	if reason != base.ReasonRule && c.Base.Reason == session.ReasonNone {
		c.Outcome.Reason = reason
	}
}

// conflict is a version conflict in the engine's shape, which optimist has found on a fresh read.
func (c *change) conflict(reason string) *respond.Answer {
	return respond.Conflict(c.Doc.Index, c.Doc.ID, reason)
}

// noReplayError reports that a change must not be replayed on a newer revision, and why.
type noReplayError struct{ reason string }

func (e *noReplayError) Error() string { return intent.ErrUnmergeable.Error() }

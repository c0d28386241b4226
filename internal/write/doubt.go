package write

import (
	"context"
	"errors"
	"slices"

	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/doubt"
)

// What can have become of a write that has no answer: see package delivery.
var (
	ErrUnknownOutcome = delivery.ErrUnknownOutcome
	ErrNotWritten     = delivery.ErrNotWritten
)

// handleNoAnswer deals with a write without an answer. Changes that stay open may go again: a guard protects them, or twice does no harm.
func (a *attempt) handleNoAnswer(ctx context.Context, err error) error {
	if !errors.Is(err, ErrUnknownOutcome) {
		for _, c := range a.open {
			c.attempts-- // nothing was sent
		}
		return err
	}
	for _, c := range a.open {
		c.maybeApplied = true
	}
	a.batch.Forget()
	if err := a.fetch(ctx); err != nil || len(a.open) == 0 {
		return err
	}
	return doc.ErrConflict
}

func (a *attempt) anyMaybeApplied() bool {
	return slices.ContainsFunc(a.open, func(c *change) bool { return c.maybeApplied })
}

// judgeDoubt sorts the changes of which a try may have been applied, on the revision just read. The order is that of safety: marks
// prove; a revision that is still the guard's shows that no try was applied, and the same guard keeps a late one from counting twice; a
// change that is as good twice as once, with every path it touches as it was, is replayed; of the rest the outcome is unknown.
//
// An equal body proves nothing: somebody else may have written it. Nor does it prove anything that there is no document, as there
// was none: it may have been made and deleted since, and absence has no numbers that would tell.
func (a *attempt) judgeDoubt(ctx context.Context) {
	still := a.doubt.StillAt(&a.cur)
	if still || a.othersWrote() {
		a.doubt.Last = doubt.Try{}
	}
	left := a.open[:0:len(a.open)]
	for _, c := range a.open {
		switch decided := a.judgeMarks(c); {
		case decided && c.answer != nil:
		case decided, !c.maybeApplied && !a.doubt.Open(), still, a.mayRepeat(c), !c.maybeApplied && a.samePrimary(ctx):
			left = append(left, c)
		default:
			c.err = ErrUnknownOutcome
		}
	}
	a.open = left
}

// mayRepeat reports whether the change is as good twice as once, and every path that it touches is as it was. It mayn't be repeated in a
// document that was perhaps made anew since a try that may have been applied: the client wrote to the one before. If there was none before,
// the document that is there now may be the second since.
func (a *attempt) mayRepeat(c *change) bool {
	if c.maybeApplied && a.doubt.MayBeAnew(&a.cur) {
		return false
	}
	return c.intent.Repeatable(&c.draft, a.cur)
}

// othersWrote reports whether the revision just read shows by itself that the last try wasn't applied: one write has been made
// since the guard, and it left something else.
func (a *attempt) othersWrote() bool {
	first := a.open[0]
	// The engine stores what it makes of a part in its own spelling.
	return !first.goesAsPart() && a.doubt.OthersWrote(&a.cur, !first.MayBeRewritten())
}

// samePrimary reports whether all conflicts so far were conflicts with other clients: the shard has kept its primary. Otherwise a try may
// have conflicted with itself, and all open changes may have been applied.
func (a *attempt) samePrimary(ctx context.Context) bool {
	pending := a.doubt.Merged()
	if pending.Answered.IsZero() {
		return true
	}
	first := a.open[0]
	pending.Index, pending.Term = first.Doc.Index, first.Base.TermBefore()
	same := a.s.primaries.SamePrimary(ctx, first.Asker(), &pending, a.cur.PrimaryTerm)
	for _, changes := range [2][]*change{a.open, a.separate} {
		for _, c := range changes {
			c.maybeApplied = c.maybeApplied || !same
		}
	}
	a.doubt.Dispel()
	return same
}

// settleDoubt is for when a change is refused, or trying ends: a conflict is the answer only if it was one with others.
func (a *attempt) settleDoubt(ctx context.Context) {
	if len(a.open) > 0 && a.doubt.Open() {
		a.samePrimary(ctx)
	}
}

package write

import (
	"context"
	"errors"
	"slices"

	"optimist/internal/catalog"
	"optimist/internal/delivery"
	"optimist/internal/doc"
)

// ErrUnknownOutcome is that of package delivery.
var ErrUnknownOutcome = delivery.ErrUnknownOutcome

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

// judgeDoubt judges the changes that a try may have applied, by the revision just read, safest evidence first. Marks prove. If the guard's
// revision is still there, no try was applied, and the guard stops a late one. A change that does no harm if it is applied twice is
// replayed, if every path that it touches is as it was. The outcome of all other changes is unknown.
//
// An equal body proves nothing: another client may have written it. If the guard was that there is no document, and there is none now, this
// proves nothing, either: somebody may have made and deleted it meanwhile, and absence has no numbers.
func (a *attempt) judgeDoubt(ctx context.Context) {
	still := a.doubt.StillAt(&a.cur)
	if still || a.othersWrote() {
		a.doubt.Dispel()
	}
	left := a.open[:0:len(a.open)]
	for _, c := range a.open {
		switch found := a.judgeMarks(c); {
		case found == applied: // it has its answer
		case found == notApplied, !c.maybeApplied && !a.doubt.Open(), still, a.mayRepeat(c),
			!c.maybeApplied && a.judgeConflicts(ctx):
			left = append(left, c)
		default:
			c.err = ErrUnknownOutcome
		}
	}
	a.open = left
}

// mayRepeat reports whether the change does no harm if it is applied twice, and every path that it touches is as it was. After a try that
// may have been applied, the document may have been made anew: the client hasn't written to that one. If there was no document before, the
// present one may be the second since.
func (a *attempt) mayRepeat(c *change) bool {
	if c.maybeApplied && a.doubt.MayBeAnew(&a.cur) {
		return false
	}
	return c.intent.Repeatable(&c.draft, a.cur)
}

// othersWrote reports whether the revision just read shows that the last try wasn't applied: there was one write since the guard's
// revision, and it has left another document than the try would have.
func (a *attempt) othersWrote() bool {
	first := a.open[0]
	// The engine stores a document that it has merged a part into in its own spelling.
	return !first.goesAsPart() && a.doubt.OthersWrote(&a.cur, !first.MayBeRewritten())
}

// judgeConflicts reports whether all conflicts so far were with other clients: the shard has kept its primary. Otherwise a try may have
// conflicted with itself. Then judgeConflicts notes that all open changes may have been applied. It is also called when a change is
// refused, or the tries end: a conflict is the answer only if other clients' writes caused it.
func (a *attempt) judgeConflicts(ctx context.Context) (withOthers bool) {
	if len(a.open) == 0 || !a.doubt.Open() {
		return true
	}
	withOthers = a.s.metOthers(ctx, a.open[0], a.doubt.Conflict(), a.cur.PrimaryTerm)
	for _, changes := range [2][]*change{a.open, a.separate} {
		for _, c := range changes {
			c.maybeApplied = c.maybeApplied || !withOthers
		}
	}
	a.doubt.Dispel()
	return withOthers
}

// metOthers reports whether a conflict of the change was with another client, because the shard has kept its primary. current is the
// document's term now; 0: it isn't known.
func (s *Service) metOthers(ctx context.Context, c *change, met catalog.Conflict, current int64) bool {
	if s.primaries == nil {
		return true
	}
	met.Index, met.Term = c.Doc.Index, c.Base.TermBefore()
	return s.primaries.SamePrimary(ctx, c.Asker(), &met, current)
}

package write

import (
	"context"
	"errors"

	"optimist/internal/journal"
	"optimist/internal/upstream"
)

// updateJournalled performs an _update, if optimist can apply it itself.
func (s *Service) updateJournalled(ctx context.Context, c *change) error {
	taken, err := s.updateHere(ctx, c)
	if err == nil && !taken {
		return journal.ForEngine()
	}
	return err
}

// createJournalled makes a document, only where there is none.
func (s *Service) createJournalled(ctx context.Context, c *change) error {
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return err
	}
	c.fromBase, c.intent = true, c.intents.New(c.req.Body)
	return s.inLane(ctx, c)
}

// noteInJournal notes the load in the journal of its client's lock. The error is doc.ErrConflict if the document has changed already.
func (a *attempt) noteInJournal(ctx context.Context) error {
	l, c := &a.load, a.load.change
	a.noted = &journal.Entry{Journal: c.req.Journal, Bases: a.s.bases, Search: &c.Search, Guard: l.guard, Cur: a.cur, After: l.body,
		Remove: l.remove, AsPart: c.goesAsPart()}
	err := a.noted.Note(ctx)
	var moved *journal.MovedError
	if errors.As(err, &moved) {
		a.conflict = c.conflict(moved.Reason)
	}
	return err
}

// tellJournal tells the journal what became of a write that it has noted.
func (a *attempt) tellJournal(ctx context.Context, res *upstream.Response, err error) {
	certain := !a.anyMaybeApplied()
	if certain && a.doubt.Open() {
		met := a.doubt.Conflict()
		certain = met.Quick() || a.s.metOthers(ctx, a.open[0], met, 0)
	}
	a.noted.Answered(ctx, res, err, certain)
	a.noted = nil
}

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// Journal notes writes before they are sent, so that they can be undone. It is safe for concurrent use.
type Journal interface {
	// Note notes a write; only then may it be sent. The error is the client's answer. ctx ends the wait.
	Note(ctx context.Context, w *undo.Write) (at undo.Place, err error)
	// Outcome says what became of a write that was noted: it is applied, or never will be.
	Outcome(at undo.Place, applied bool)
	// Failed says that a write that was noted never will be applied. It returns when that is stored.
	Failed(ctx context.Context, at undo.Place) error
}

// notJournalled is the refusal of a write that could only be passed.
func (c *change) notJournalled(reason string) *undo.RefusedError {
	if c.Op.Kind == api.IndexAuto && reason == "" {
		return &undo.RefusedError{Why: "this one names no document; give it an id"}
	}
	return &undo.RefusedError{Why: "this one can't be guarded (" + reason + ")"}
}

// updateJournalled performs an _update, if it can be made here.
func (s *Service) updateJournalled(ctx context.Context, c *change) error {
	taken, err := s.updateHere(ctx, c)
	if err == nil && !taken {
		err = &undo.RefusedError{
			Why: "this _update has a script, or something else that only the engine can carry out; send the document, or a `doc`"}
	}
	return err
}

// createJournalled makes a document, only where there is none.
func (s *Service) createJournalled(ctx context.Context, c *change) error {
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return err
	}
	c.stales = true
	c.document = intent.Document{Base: intent.Base{Absent: true}, Sent: c.req.Body, Merger: c.merger(s.observer)}
	c.intent = s.underRule(c, &c.document)
	return s.inLane(ctx, c)
}

// whyNotUndone is why a write of the change couldn't be undone, as far as its index and its form say.
func (c *change) whyNotUndone() string {
	switch {
	case c.Pipeline || c.Index.Pipeline:
		return "an ingest pipeline changes the document, so that nobody knows what is stored"
	case c.Index.DataStream != "":
		return "it is of a data stream"
	case c.Index.Unknown != "":
		return "these credentials may not ask what the index is"
	case c.Index.Partial:
		return "the index doesn't keep or serve _source whole"
	case !c.JSON && c.Op.Kind != api.Delete:
		return "its body isn't JSON"
	case c.Op.Typed && string(c.Op.Type) != "_doc":
		return "its path has a type"
	}
	return ""
}

// enter notes the load in the journal of its client's lock. The error is doc.ErrConflict where the document has changed already.
func (a *attempt) enter(ctx context.Context) (err error) {
	l, c := &a.load, a.load.change
	why := c.whyNotUndone()
	if why == "" && (l.goesAsPart() || l.remove && !l.guard.Known()) {
		why = "it can't be guarded"
	}
	if why != "" {
		return &undo.RefusedError{Why: why}
	}
	w := undo.Write{Ref: c.Doc.Ref, Rule: c.Rule.Name, Guard: l.guard}
	if !l.remove {
		w.After = l.body
	}
	switch {
	case !l.guard.Known():
	case a.cur.Source != nil && a.cur.Numbers == l.guard && c.Index.KnownWhole && c.field() == "":
		w.Before = a.cur.Source
	default:
		if w.Before, err = a.before(ctx, c, l.guard); err != nil {
			return err
		}
	}
	a.noted, err = c.req.Journal.Note(ctx, &w)
	return err
}

// before reads the revision that the write is to replace.
func (a *attempt) before(ctx context.Context, c *change, guard doc.Numbers) ([]byte, error) {
	whole, err := a.s.bases.SeesWhole(ctx, &c.Search)
	switch {
	case err != nil:
		return nil, cantAsk(err)
	case !whole:
		return nil, &undo.RefusedError{Why: "these credentials don't show all of the document"}
	}
	rev, err := a.s.bases.Current(ctx, &c.Search)
	switch {
	case errors.Is(err, es.ErrNoSource):
		return nil, &undo.RefusedError{Why: "the document can't be read whole"}
	case err != nil && !errors.Is(err, doc.ErrMissing):
		return nil, err
	case rev.Numbers != guard: // or a copy lags behind: it isn't sent either way
		a.conflict = c.conflict(fmt.Sprintf("[%s]: %s", c.Doc.ID, (&intent.MovedError{Guard: guard, Current: rev.Numbers}).Error()))
		return nil, doc.ErrConflict
	}
	return rev.Source, nil
}

// leave tells the journal what became of a write that it has noted. Of an unknown outcome there is nothing to tell.
func (a *attempt) leave(ctx context.Context, res *upstream.Response, err error) {
	j, at := a.load.req.Journal, a.noted
	a.noted = undo.Place{}
	if j == nil || at == (undo.Place{}) {
		return
	}
	switch {
	case err != nil && !errors.Is(err, ErrUnknownOutcome):
		j.Outcome(at, false)
	case err != nil:
	case res.Status == http.StatusOK || res.Status == http.StatusCreated:
		j.Outcome(at, true)
	case res.Status == http.StatusConflict && (!a.doubt.last.Quick() || a.anyMaybeApplied()):
	case res.Status == http.StatusConflict && !a.load.guard.Known():
		// What is there is another client's: if it is the same, it mustn't be taken for this client's.
		_ = j.Failed(context.WithoutCancel(ctx), at)
	case res.Status < http.StatusInternalServerError:
		j.Outcome(at, false)
	}
}

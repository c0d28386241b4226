// Package journal notes a write in the journal of its client's lock before the write is sent, so that it can be undone. Then it
// notes the result.
//
// It undoes nothing: internal/undo says what a journal is, and what happens if the lock isn't released.
package journal

import (
	"context"
	"errors"
	"fmt"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/undo"
)

// Journal notes writes before they are sent. It is safe for concurrent use.
type Journal interface {
	// Note notes a write; only then may it be sent. The error is the client's answer. ctx ends the wait.
	Note(ctx context.Context, w *undo.Write) (at undo.Place, err error)
	// Applied says that a write that was noted is applied, and which revision it made; zero: it isn't known which.
	Applied(at undo.Place, made doc.Revision)
	// Wrote says who has written a document, and which revision that has left; zero: it isn't known which.
	Wrote(by any, ref doc.Ref, n doc.Numbers)
	// Failed says that a write that was noted never will be applied. It returns when that is stored.
	Failed(ctx context.Context, at undo.Place) error
}

// The types of the errors by which a journal refuses a write. Nothing was sent.
const (
	TypeEnded = "lease_expired"            // 410: the lock was released, or its writes are undone
	TypeFull  = "undo_journal_full"        // 413: it holds as much as it may
	TypeStore = "undo_journal_unavailable" // 503: it can't be reached
)

// MovedError reports that the document has changed already: the write isn't noted, and must not be sent. It is a doc.ErrConflict.
type MovedError struct{ Reason string }

// Error is the reason of the conflict, for the client.
func (e *MovedError) Error() string { return e.Reason }

// Unwrap gives doc.ErrConflict.
func (e *MovedError) Unwrap() error { return doc.ErrConflict }

// Passed is the refusal of a write that could only be passed.
func Passed(op *api.Op, reason string) *undo.RefusedError {
	if op.Kind == api.IndexAuto && reason == "" {
		return &undo.RefusedError{Why: "this one names no document; give it an id"}
	}
	return &undo.RefusedError{Why: "this one can't be guarded (" + reason + ")"}
}

// ForEngine is the refusal of an _update that only the engine can carry out.
func ForEngine() *undo.RefusedError {
	return &undo.RefusedError{
		Why: "this _update has a script, or something else that only the engine can carry out; send the document, or a `doc`"}
}

// Entry is a write that is to be noted. One goroutine uses it at a time.
type Entry struct {
	Journal Journal
	Bases   *base.Finder
	*base.Search
	Guard  doc.Numbers  // the revision whose place the write may take; zero: none
	Cur    doc.Revision // of the document, as far as the write's maker knows it
	After  []byte       // what shall be stored
	Remove bool         // the document shall not be there
	AsPart bool         // it goes as an _update, of which the engine makes the document

	at undo.Place // where the journal has it; zero: nowhere
}

// Note notes the write. The error is a *MovedError where the document has changed already.
func (e *Entry) Note(ctx context.Context) (err error) {
	why := whyNotUndone(e.Search)
	if why == "" && (e.AsPart || e.Remove && !e.Guard.Known()) {
		why = "it can't be guarded"
	}
	if why != "" {
		return &undo.RefusedError{Why: why}
	}
	w := undo.Write{Ref: e.Doc.Ref, UUID: e.Index.UUID, Rule: e.Rule.Name, Guard: e.Guard, Fields: e.Fields, Params: e.Caller.Params}
	if !e.Remove {
		w.After = e.After
	}
	switch {
	case e.Guard.Known() && e.Cur.Source != nil && e.Cur.Numbers == e.Guard && e.Rule.WriteID == "" &&
		e.Bases.Catalog.KnownWhole(e.Asker(), e.Name):
		w.Before = e.Cur.Source
	default:
		if w.Before, err = e.before(ctx); err != nil {
			return err
		}
	}
	at, err := e.Journal.Note(ctx, &w)
	if err == nil {
		e.at = at
	}
	return err
}

// before reads the revision that the write is to replace; for a create, that there is none. A client that may not write there is refused:
// it could have a rollback, which has credentials of its own, delete or change documents in its place. A create is noted only if there is
// no document: a document that is as the create would make it then is younger than the note, and so can't be an old one of another client.
func (e *Entry) before(ctx context.Context) ([]byte, error) {
	whole, err := e.Bases.SeesWhole(ctx, e.Search)
	switch {
	case err != nil:
		return nil, delivery.CantAsk(err)
	case !whole:
		return nil, &undo.RefusedError{Why: "these credentials may not write it, or don't show all of it"}
	}
	rev, err := e.Bases.Current(ctx, e.Search)
	switch {
	case errors.Is(err, es.ErrNoSource):
		return nil, &undo.RefusedError{Why: "the document can't be read whole"}
	case err != nil && !errors.Is(err, doc.ErrMissing):
		return nil, err
	case rev.Numbers != e.Guard: // or a copy lags behind: it isn't sent either way
		return nil, &MovedError{fmt.Sprintf("[%s]: %s", e.Doc.ID, (&intent.MovedError{Guard: e.Guard, Current: rev.Numbers}).Error())}
	}
	return rev.Source, nil
}

// whyNotUndone is why a write couldn't be undone, as far as its index and its form say.
func whyNotUndone(w *base.Search) string {
	switch {
	case w.Pipeline || w.Index.Pipeline:
		return "an ingest pipeline changes the document, so the stored document isn't known"
	case w.Index.DataStream != "":
		return "it is of a data stream"
	case w.Index.Unknown != "":
		return "these credentials may not ask what the index is"
	case w.Index.Partial:
		return "the index doesn't keep or serve _source whole"
	case !w.JSON && w.Op.Kind != api.Delete:
		return "its body isn't JSON"
	case w.Op.Typed && string(w.Op.Type) != "_doc":
		return "its path has a type"
	}
	return ""
}

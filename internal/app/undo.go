package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"optimist/internal/budget"
	"optimist/internal/config"
	"optimist/internal/deadletter"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intercept"
	"optimist/internal/journal"
	"optimist/internal/session"
	"optimist/internal/share"
	"optimist/internal/undo"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/proxy"
	"optimist/rewrite/merge"
)

// sweepUndoEvery is how often optimist looks for journals whose leases have ended, if nobody waits for the lock.
const sweepUndoEvery = 5 * time.Second

// openUndo makes what undoes the writes of dead holders, if there are credentials for it.
func (a *App) openUndo(c *config.Config) error {
	if c.Undo.Auth == (config.Auth{}) || c.Locks.Path == "" || c.Locks.Store != config.StoreEngine {
		return nil
	}
	auth, err := undoAuthorization(&c.Undo)
	if err != nil {
		return err
	}
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		return err
	}
	identity := readIdentity(&c.Sessions, &c.Identity)
	a.undo = undo.New(undo.Options{
		Upstream: detached{a.nodes}, Index: c.Undo.Index, Authorization: auth,
		MaxDocuments: c.Undo.MaxDocuments, MaxBytes: c.Undo.MaxBytes.Bytes(),
		Grace: c.Undo.Grace.Std(), Log: a.log, Left: a.undoLeft,
		Tenant: identity.Tenant,
		Merger: func(name string) undo.Merger {
			for _, ru := range a.rules.Rules().All() {
				if ru.Name == name {
					return ru.Merger
				}
			}
			return plain
		},
		Undone: func(by any, ref doc.Ref, n doc.Numbers) {
			if s, ok := by.(session.Session); ok {
				a.sessions.WriteUndone(s, ref, n)
			}
		},
		Events: undo.Events{
			Noted: func(n int) { a.metrics.UndoNoted.Add(int64(n)) },
			Ended: func(how string) { a.metrics.UndoEnded.Inc(how) },
			Undid: func(how string, n int) { a.metrics.Undone.Add(int64(n), how) },
		},
	})
	return nil
}

func undoAuthorization(u *config.Undo) (string, error) {
	return u.Auth.AuthorizationOf(func(key string) string { return "undo.auth." + key })
}

// reasonUndo is the reason of a letter about a change that can't be undone.
const reasonUndo = "undo"

// undoLeft makes a dead letter of a change that can't be undone. A replay takes the holder's change out of the then current document.
func (a *App) undoLeft(ctx context.Context, l *undo.Left) error {
	target := append([]byte("/"), uri.AppendSegment(nil, l.Index)...)
	target = uri.AppendSegment(append(target, "/_doc/"...), l.ID)
	if l.Routing != "" {
		target = uri.AppendSegment(append(target, "?routing="...), l.Routing)
	}
	target = uri.WithParams(target, l.Tenant.Params)
	letter := &deadletter.Letter{
		ID: deadletter.IDOf(l.Began, l.Name), Rule: l.Rule, Reason: reasonUndo,
		Detail: "the holder " + l.Owner + " of " + l.Lock + " has ended without a release, and its write can't be undone: " + l.Why,
		Status: http.StatusConflict, Index: l.Index, Document: l.ID, Routing: l.Routing, Checked: true,
		Request: deadletter.Request{Method: http.MethodDelete, Target: string(target), Body: l.Before},
	}
	for _, f := range l.Tenant.Fields {
		letter.Request.Fields = append(letter.Request.Fields, [2]string{string(f[0]), string(f[1])})
	}
	if l.Before != nil {
		letter.Request.Method = http.MethodPut
		letter.Request.Fields = append(letter.Request.Fields, [2]string{"Content-Type", "application/json"})
	}
	if l.After != nil && l.Current.Known() {
		letter.Base = &deadletter.Base{Kind: "view", SeqNo: l.Current.SeqNo, PrimaryTerm: l.Current.PrimaryTerm, Version: l.Current.Version,
			View: l.After, Stored: deadletter.Bytes(l.Current.Source)}
	}
	_, err := a.letters.Keep(ctx, letter)
	if errors.Is(err, deadletter.ErrTooLarge) {
		letter.Base, letter.Request.Body = nil, nil
		_, err = a.letters.Keep(ctx, letter)
	}
	return err
}

// journals finds the journals of locks under which writes are made.
func (a *App) journals(ctx context.Context, by share.Client, tokens []int64) (intercept.Journals, error) {
	all, err := a.undo.Journals(ctx, by, tokens)
	if len(all) == 0 || err != nil {
		return nil, journalFailure(err)
	}
	return clientJournals{all}, nil
}

// clientJournals are journals whose errors are answers to clients.
type clientJournals struct{ undo.Journals }

// Of implements intercept.Journals.
func (all clientJournals) Of(tokens []int64) (journal.Journal, error) {
	j, err := all.Journals.Of(tokens)
	if j == nil || err != nil {
		return nil, journalFailure(err)
	}
	return clientJournal{j}, nil
}

// clientJournal is a journal whose errors are answers to clients.
type clientJournal struct{ *undo.Journal }

// Note implements journal.Journal.
func (j clientJournal) Note(ctx context.Context, w *undo.Write) (undo.Place, error) {
	at, err := j.Journal.Note(ctx, w)
	return at, journalFailure(err)
}

// journalFailure is an error of the journal's as clients are told of it.
func journalFailure(err error) error {
	f := &proxy.Failure{}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, undo.ErrEnded):
		f.Status, f.Type = http.StatusGone, journal.TypeEnded
	case errors.Is(err, undo.ErrFull):
		f.Status, f.Type = http.StatusRequestEntityTooLarge, journal.TypeFull
	case errors.Is(err, undo.ErrTwo):
		f.Status, f.Type = http.StatusBadRequest, "illegal_argument_exception"
	case errors.Is(err, undo.ErrStore):
		f.Status, f.Type = http.StatusServiceUnavailable, journal.TypeStore
	default:
		return err
	}
	f.Reason = err.Error()
	return f
}

// detached takes the memory for answers from no request's account: the notes of a journal are written, and read, for many requests at once,
// and may outlast the request that began it.
type detached struct{ es.Doer }

// Do implements es.Doer.
func (d detached) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	return d.Doer.Do(budget.Detached(ctx), r)
}

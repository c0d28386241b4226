package base

import (
	"context"
	"time"

	"optimist/internal/api"
	"optimist/internal/intake"
	"optimist/internal/mark"
	"optimist/internal/session"
	"optimist/internal/wire"
)

// seen is what clients have seen, for who writes what the change does.
func (f *Finder) seen(w *Search) *session.Store {
	switch {
	case w.Part == nil && w.Rule.WriteID != "" && w.JSON && w.Sent != nil:
		return f.Sessions.ForPart(w.asIfRead)
	case w.Part == nil:
		return f.Sessions
	}
	return f.Sessions.ForPart(func(view []byte) ([]byte, error) {
		defer w.Room.Cut(w.Room.Mark()) // it is done for one candidate after the other
		return w.Part.Makes(view)
	})
}

// asIfRead is what the client would have sent if it had read view: the marks that are there, it would have sent back. So they say nothing
// of what it has read.
func (w *Search) asIfRead(view []byte) ([]byte, error) {
	if view == nil {
		return w.Sent, nil
	}
	_, t := mark.Take(view, w.Rule.WriteID)
	if out, ok := mark.Put(w.Sent, w.Rule.WriteID, t); ok && t != nil {
		return out, nil
	}
	out, _ := mark.Take(w.Sent, w.Rule.WriteID)
	return out, nil
}

// TakeSeen reserves what the session has seen as the change's base.
func (f *Finder) TakeSeen(ctx context.Context, w *Search) (err error) {
	if w.Base, err = f.seen(w).Take(ctx, w.Session, w.Doc.Ref, w.Sent); err != nil {
		return err
	}
	return w.stillThere(ctx)
}

func (f *Finder) takeCopy(ctx context.Context, w *Search, held session.Copy) (err error) {
	if w.Base, err = f.seen(w).TakeCopy(ctx, w.Session, w.Doc.Ref, held, w.Sent); err != nil {
		return err
	}
	return w.stillThere(ctx)
}

// LeastWait is how long a client waits at least: whether it has left isn't asked before.
const LeastWait = time.Millisecond

// stillThere reports whether the change's client is, where it had to wait for the base that was just taken; if not, that is given
// back. A client that left may have come again and gone on since: what it has written meanwhile would be the base of what it gave
// up, which would undo that.
func (w *Search) stillThere(ctx context.Context) error {
	if time.Since(w.Began) < LeastWait || !wire.PeerLeft(ctx) {
		return nil
	}
	w.Base.Release()
	return context.Canceled
}

// TakeLate takes what the session has seen as the base of a write for which that wasn't reached: the engine couldn't be asked which
// index its name stands for. Mostly it is the index's own.
func (f *Finder) TakeLate(ctx context.Context, w *Search) {
	whole := w.Op.Kind == api.Index || w.Op.Kind == api.Delete
	if !whole || w.Base.Kind != session.KindNone || !w.Rule.Session || w.Anonymous || w.OnlyNew {
		return
	}
	if _, own := api.OwnGuard(w.Op.Query); own {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, intake.LeastPatience)
	defer cancel()
	if base, err := f.Sessions.Take(ctx, w.Session, w.Doc.Ref, w.Sent); err == nil {
		w.Base = base
		w.Outcome.Base, w.Outcome.Ambiguous = kindOf(base.Kind), base.Ambiguous
	}
}

package base

import (
	"context"

	"optimist/internal/outcome"
	"optimist/internal/session"
)

// ChooseForCreate finds the base of a write that the engine itself refuses when the document exists. Afterwards the session has seen the
// document, if it had seen that there was none, if nothing was known of it, or if it is named: then it may write its next change from
// memory. In a data stream that no rule names, no base is looked for, and the reason says so.
func (f *Finder) ChooseForCreate(ctx context.Context, w *Search) (reason string, err error) {
	inSession := w.Rule.Session && !w.Anonymous
	if inSession || w.Rule.MayMeetStreams() || w.Stamp.Known() { // the stamp is of a document that was deleted since
		if err := f.Locate(ctx, w); err != nil {
			return "", err
		}
	}
	if w.InOthersStream() {
		return outcome.ReasonDataStream, nil
	}
	err = f.besideStamped(ctx, w, func() error {
		if inSession {
			return f.takeForCreate(ctx, w)
		}
		return nil
	})
	if err == nil {
		w.Series.Begin(&w.Base)
	}
	return "", err
}

// takeForCreate takes the base of a create from the session.
func (f *Finder) takeForCreate(ctx context.Context, w *Search) error {
	if err := f.takeFromSession(ctx, w); err != nil {
		return err
	}
	w.Outcome.Base = outcome.BaseNone
	switch kind := w.Base.Kind; {
	case kind == session.KindAbsent:
		w.Outcome.Base = outcome.BaseAbsent
	case kind != session.KindNone && !w.Session.IsNamed(): // it is of other clients
		w.Base.Release()
		w.Base = session.Base{}
	}
	return nil
}

package base

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"optimist/internal/doc"
	"optimist/internal/etag"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/stamp"
)

// IfMatch reads the write's If-Match. found is false where it has none, or the rule doesn't look at it.
func (w *Search) IfMatch() (m etag.Match, found bool, err error) {
	if !w.Rule.IfMatch {
		return m, false, nil
	}
	return etag.ReadMatch(w.Fields)
}

// stampedCopy is the copy of the document that the client made its write from, by the stamp in it. ok is false without a stamp, and for the
// stamp of another document or of another incarnation of the index: the engine would take its numbers for those of the document as it is
// now.
func (w *Search) stampedCopy() (c session.Copy, ok bool) {
	st := &w.Stamp
	if !st.Known() || !w.Rule.FromStamp || w.Index.UUID == "" {
		return c, false
	}
	if st.Document != stamp.DocumentOf(w.Index.UUID, w.Ref().Routing, w.Doc.ID) {
		return c, false
	}
	c = session.Copy{Numbers: st.Numbers, Token: uint64(st.Copy), Served: true}
	if w.Rule.FailConflict {
		c.Token = 0 // a stamp from before the rule said so names the revision, and not what was sent from the copy since
	}
	return c, true
}

// takeGuard makes the revision that the client's own guard names the base. pass says that the write goes to the engine as it was sent. If
// the engine answers with a 409 then, the client gets that.
func (f *Finder) takeGuard(ctx context.Context, w *Search, n doc.Numbers) (pass bool, err error) {
	merges := w.Rule.MergeExplicit
	err = f.besideStamped(ctx, w, func() error {
		w.Outcome.Base = outcome.BaseExplicit
		switch {
		case n.Known() && !merges:
			w.Base = f.sessionStore(w).TakeAt(w.Session, w.Ref(), n, w.Sent) // without a wait: the engine decides
		case n.Known():
			return f.takeCopy(ctx, w, session.Copy{Numbers: n})
		case w.Rule.Session && w.Session.IsNamed():
			// An external version doesn't name a read. But afterwards the session has seen this document.
			return f.takeFromSession(ctx, w)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if !merges || !n.Known() {
		w.Outcome.Reason = outcome.ReasonExplicit
		return true, nil
	}
	w.Dropped = []string{"if_seq_no", "if_primary_term"}
	if w.Outcome.Ambiguous = w.Base.Ambiguous && !w.Base.OnlyGuards(); w.Outcome.Ambiguous && w.Rule.FailAmbiguous {
		return false, ErrAmbiguous
	}
	return false, nil
}

// takeMatch makes what If-Match names the base of the change.
func (f *Finder) takeMatch(ctx context.Context, w *Search, m etag.Match) (err error) {
	w.Outcome.Base = outcome.BaseIfMatch
	if m.Any || m.More != nil {
		return f.takeOneOf(ctx, w, m)
	}
	return f.takeCopy(ctx, w, m.Tag.AsCopy())
}

// takeOneOf is for an If-Match that names more than one revision: any (*), or a list. If the current revision is among them, it is the
// base. Else the base is the newest of those that the session knows, and the change is merged. If the session knows none, the newest of the
// list is the guard, and the engine refuses it.
func (f *Finder) takeOneOf(ctx context.Context, w *Search, m etag.Match) error {
	f.Fetched.Call(w.Rule.Name)
	rev, err := f.Current(ctx, w)
	switch {
	case errors.Is(err, doc.ErrMissing):
		return ErrNoMatch
	case err != nil && !rev.Known():
		return err
	}
	if m.Any || slices.ContainsFunc(m.More, func(t etag.Tag) bool { return t.Numbers == rev.Numbers && t.Copy == 0 }) {
		w.Base = f.Sessions.Witness(w.Session, w.Ref())
		b := &w.Base
		b.Kind, b.Numbers, b.Version, b.View, b.Stored = session.KindExplicit, rev.Numbers, rev.Version, rev.Source, rev.Source
		return nil
	}
	slices.SortFunc(m.More, func(a, b etag.Tag) int { return cmp.Compare(b.SeqNo, a.SeqNo) })
	for _, t := range m.More {
		if err := f.takeCopy(ctx, w, t.AsCopy()); err != nil {
			return err
		}
		if w.Base.View != nil {
			return nil
		}
		w.Base.Release()
	}
	return f.takeCopy(ctx, w, m.More[0].AsCopy())
}

// besideStamped has take take a base, and besides reserves the copy that the write's stamp names. The two end together. If the client
// writes from that copy again, its next write is then known to follow this one. besideStamped waits for the end of another write from the
// same copy. So nothing else of the session may be reserved before.
func (f *Finder) besideStamped(ctx context.Context, w *Search, take func() error) error {
	stampedCopy, ok := w.stampedCopy()
	if !ok || stampedCopy.Token == 0 {
		return take()
	}
	reserved, err := f.sessionStore(w).Hold(ctx, w.Session, w.Ref(), stampedCopy, w.Sent)
	if err != nil {
		return err
	}
	err = take()
	w.Base.Join(reserved)
	return err
}

// takeStamp makes the copy that the stamp names the base.
func (f *Finder) takeStamp(ctx context.Context, w *Search, c session.Copy) error {
	w.Outcome.Base = outcome.BaseStamp
	return f.takeCopy(ctx, w, c)
}

// GuardOfPart finds the guard for a write that the engine, or a PATCH, merges by itself: by If-Match, or by the stamp of a copy
// that is sent as a part. found is false where there is none.
func (f *Finder) GuardOfPart(ctx context.Context, w *Search) (n doc.Numbers, found bool, err error) {
	m, found, err := w.IfMatch()
	if err != nil {
		return n, true, err
	}
	if found {
		w.Outcome.Base = outcome.BaseIfMatch
		if !m.Any && m.More == nil {
			return m.Tag.Numbers, true, nil
		}
		if err = f.takeOneOf(ctx, w, m); err == nil && !w.Base.Numbers.Known() {
			return m.Tag.Numbers, true, nil
		}
		return w.Base.Numbers, true, err
	}
	if !w.Stamp.Known() {
		return n, false, nil
	}
	if err := f.Locate(ctx, w); err != nil {
		return n, true, err
	}
	c, ok := w.stampedCopy()
	if !ok {
		return n, false, nil
	}
	err = f.takeStamp(ctx, w, c)
	if n = w.Base.Numbers; w.Base.Kind == session.KindView && w.Base.AnswerNumbers != n {
		n = c.Numbers // what was stored then has more in it than the client has seen
	}
	return n, true, err
}

package base

import (
	"bytes"
	"context"

	"optimist/internal/api"
	"optimist/internal/outcome"
	"optimist/internal/session"
)

// Choose finds what the write is based on. The first of these that is there counts: a base given from before, the client's own guard,
// If-Match, a stamp, what the session has seen. pass says that the write goes to the engine as the client sent it.
func (f *Finder) Choose(ctx context.Context, w *Search) (pass bool, err error) {
	pass, err = f.choose(ctx, w)
	w.Series.Begin(&w.Base)
	return pass, err
}

func (f *Finder) choose(ctx context.Context, w *Search) (pass bool, err error) {
	if w.Preset.known() {
		w.takePreset()
		return false, nil
	}
	if n, found := api.OwnGuard(w.Op.Query); found {
		return f.takeGuard(ctx, w, n)
	}
	if _, given := api.ReadGuard(w.Op.Query); given {
		w.Dropped = api.GuardParams
	}
	m, matched, err := w.IfMatch()
	if err != nil {
		return false, err
	}
	stampedCopy, stamped := w.stampedCopy()
	switch {
	case matched:
		return false, f.besideStamped(ctx, w, func() error { return f.takeMatch(ctx, w, m) })
	case stamped:
		return false, f.takeStamp(ctx, w, stampedCopy)
	}
	if w.Rule.Session && !w.Anonymous {
		if err := f.takeFromSession(ctx, w); err != nil {
			return false, err
		}
	}
	f.Chosen.Call(w.Base.Kind, w.Base.Reason)
	w.Outcome.Base, w.Outcome.Ambiguous = kindOf(w.Base.Kind), w.Base.Ambiguous
	if w.Base.Ambiguous && w.Rule.FailAmbiguous && (w.Part == nil || !w.IsForEngine()) {
		return false, ErrAmbiguous
	}
	if kind := w.Base.Kind; kind == session.KindNone || kind == session.KindLost {
		return f.withoutBase(ctx, w)
	}
	w.Outcome.Reason = w.Base.Reason.String() // of one whose numbers alone are known
	return false, nil
}

// takePreset makes the given base the write's base.
func (w *Search) takePreset() {
	g := w.Preset
	w.Dropped = api.GuardParams
	w.Base = session.Base{Kind: g.Kind, Numbers: g.Numbers, Version: g.Version, View: g.View, Stored: g.Stored}
	w.Outcome.Base = kindOf(g.Kind)
	if g.Kind == session.KindExplicit {
		w.Outcome.Base = outcome.BaseIfMatch
	}
}

// IsForEngine reports whether the engine merges an _update with a part by itself, because the client's base adds nothing:
//
//   - The base isn't known.
//   - There was no document, and the part makes none. So its client counts on a document: it has learnt of one since, and its part may be
//     made from that. Counted from nothing, the part would add its numbers and list entries to those that it is made from.
//   - The session is inferred, and the part says the same whatever its base is. Perhaps no client has read the document for this part. If
//     the part took a read, the client that made the read would be left without a base. With on_conflict: fail this holds only if the base
//     is ambiguous, and the outcome says so.
func (w *Search) IsForEngine() bool {
	switch kind := w.Base.Kind; {
	case kind == session.KindNone, kind == session.KindLost:
		return true
	case kind == session.KindAbsent && !w.Part.Upsert:
		return true
	case w.Session.IsNamed(), !w.BaseKnown():
		return false
	}
	switch w.Outcome.Base {
	case outcome.BaseRead, outcome.BaseView, outcome.BaseAbsent:
		return w.Rule.NeedsNoBase(w.Base.View, w.Part.Incoming, w.Base.Ambiguous)
	}
	return false
}

// InOthersStream reports whether the document is in a data stream that the rule doesn't name. Its writes are the engine's alone.
func (w *Search) InOthersStream() bool { return w.Index.DataStream != "" && w.Rule.AnyIndex }

// BaseKnown reports whether the client's change can be told from its base.
func (w *Search) BaseKnown() bool { return w.Base.View != nil || w.Base.Kind == session.KindAbsent }

// ViewIsStored reports whether the client has seen exactly what the engine holds at the base. If so, what the client sends needs no merge
// in place of that revision.
func (w *Search) ViewIsStored() bool {
	switch {
	case w.Base.Kind != session.KindView:
		return true
	case w.Base.Stored == nil:
		// A pipeline may have changed the bytes that the engine holds. The numbers are guard enough in two cases: nothing is merged,
		// or nothing is known but that the client wrote the revision.
		return w.Base.View == nil && !w.Base.StoredDiffers || w.Part == nil && w.WhyUnmergeable() != ""
	}
	return bytes.Equal(w.Base.View, w.Base.Stored)
}

// kindOf is the kind of a base of the session's, as the outcome names it.
func kindOf(k session.Kind) outcome.BaseKind {
	return [...]outcome.BaseKind{session.KindRead: outcome.BaseRead, session.KindView: outcome.BaseView,
		session.KindAbsent: outcome.BaseAbsent, session.KindLost: outcome.BaseLost, session.KindExplicit: outcome.BaseNone}[k]
}

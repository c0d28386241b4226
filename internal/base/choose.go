package base

import (
	"bytes"
	"cmp"
	"context"

	"optimist/internal/api"
	"optimist/internal/outcome"
	"optimist/internal/session"
)

// Choose finds what the write is based on, strongest first: the client's own guard, If-Match, a stamp, what the session has
// seen. pass says that the write goes as it is.
func (f *Finder) Choose(ctx context.Context, w *Search) (pass bool, err error) {
	if w.Given.known() {
		w.takeGiven()
		return false, nil
	}
	if n, found := api.OwnGuard(w.Op.Query); found {
		return f.takeGuard(ctx, w, n)
	}
	if _, given := api.ReadGuard(w.Op.Query); given {
		w.Void = api.GuardParams
	}
	m, matched, err := w.IfMatch()
	if err != nil {
		return false, err
	}
	carried, stamped := w.carried()
	switch {
	case matched:
		held, err := f.HoldStamped(ctx, w)
		if err != nil {
			return false, err
		}
		err = f.takeMatch(ctx, w, m)
		w.Base.Join(held)
		return false, err
	case stamped:
		return false, f.takeStamp(ctx, w, carried)
	}
	if w.Rule.Session && !w.Anonymous {
		if err := f.TakeSeen(ctx, w); err != nil {
			return false, err
		}
	}
	f.Chosen.Call(w.Base.Kind, w.Base.Reason)
	w.Outcome.Base, w.Outcome.Ambiguous = kindOf(w.Base.Kind), w.Base.Ambiguous
	if w.Base.Ambiguous && w.Rule.FailAmbiguous && (w.Part == nil || !w.IsForEngine()) {
		return false, ErrAmbiguous
	}
	switch w.Base.Kind {
	case session.KindNone, session.KindLost:
		switch {
		case w.Part == nil:
		case w.Base.Kind == session.KindLost && w.Rule.RejectLost:
			return false, ErrLost
		default:
			return true, nil // the engine merges it, as it would any _update
		}
		return f.withoutBase(ctx, w)
	}
	w.Outcome.Reason = w.Base.Reason.String() // of one whose numbers alone are known
	return false, nil
}

// takeGiven makes what is known from before the write's base.
func (w *Search) takeGiven() {
	g := w.Given
	w.Void = api.GuardParams
	w.Base = session.Base{Kind: g.Kind, Numbers: g.Numbers, Version: g.Version, View: g.View, Stored: g.Stored}
	w.Outcome.Base = kindOf(g.Kind)
	if g.Kind == session.KindGiven {
		w.Outcome.Base = outcome.BaseIfMatch
	}
}

// IsForEngine reports whether what the client has seen is nothing to its part: it isn't known, or there was no document, and the part
// makes none. Nor is it in a session that is inferred, where the part says the same whatever its base: perhaps nobody has read the
// document for it. A read that it took would be missed by the client that made it.
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
		overrides, err := w.Rule.Merger.Overrides(w.Base.View, w.Part.Incoming)
		return overrides && err == nil
	}
	return false
}

// BaseKnown reports whether the client's change can be told from its base.
func (w *Search) BaseKnown() bool { return w.Base.View != nil || w.Base.Kind == session.KindAbsent }

// ViewIsStored reports whether the client has seen exactly what the engine holds at the base: then what it sends needs no merge
// there.
func (w *Search) ViewIsStored() bool {
	switch {
	case w.Base.Kind != session.KindView:
		return true
	case w.Base.Stored == nil:
		// The engine may hold other bytes (a pipeline): where nothing is merged, the numbers are guard enough. So they are of
		// what the client itself wrote, and of which nothing else is known.
		return w.Base.View == nil && !w.Base.StoredDiffers || w.Part == nil && w.WhyUnmergeable() != ""
	}
	return bytes.Equal(w.Base.View, w.Base.Stored)
}

// WhyUnmergeable is why the change can't be merged, from what is known of the index and the request.
func (w *Search) WhyUnmergeable() string {
	switch {
	case w.Index.Unknown != "":
		return w.Index.Unknown
	case w.Index.Partial:
		return outcome.ReasonSource
	case !w.JSON:
		return cmp.Or(w.WhyPipelineStands(), outcome.ReasonFormat)
	}
	return w.WhyPipelineStands()
}

// WhyPipelineStands is the reason where an ingest pipeline would run again over what is merged, and the rule doesn't allow that.
func (w *Search) WhyPipelineStands() string {
	if (w.Pipeline || w.Index.Pipeline) && !w.Rule.RerunPipeline {
		return outcome.ReasonPipeline
	}
	return ""
}

// kindOf is the kind of a base of the session's, as the outcome names it.
func kindOf(k session.Kind) outcome.BaseKind {
	switch k {
	case session.KindRead:
		return outcome.BaseRead
	case session.KindView:
		return outcome.BaseView
	case session.KindAbsent:
		return outcome.BaseAbsent
	case session.KindLost:
		return outcome.BaseLost
	default:
		return outcome.BaseNone
	}
}

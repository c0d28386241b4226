package base

import (
	"context"
	"errors"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
)

// withoutBase does what the rule says of writes without a base. base.lost is asked first, for a base that was known once. If it doesn't
// refuse the write, base.unknown decides, as for a base that was never known.
//
// The rule's base.unknown doesn't count for a part: the engine merges it, as it would any _update.
func (f *Finder) withoutBase(ctx context.Context, w *Search) (pass bool, err error) {
	lost := w.Base.Kind == session.KindLost
	if lost {
		w.Outcome.Reason = w.Base.Reason.String()
	}
	switch {
	case w.Part != nil && lost && w.Rule.RejectLost && w.Base.Reason != session.ReasonUnwatched: // of which no base was ever known
		return false, ErrLost
	case w.Part != nil:
		return true, nil
	case lost && w.Rule.RejectLost:
		if err := f.refuseLost(ctx, w); err != nil || w.Rule.Unknown != rule.UnknownReject {
			return false, err
		}
	}
	if w.Base.Reason == session.ReasonBlind {
		w.Outcome.Reason = outcome.ReasonBlind
	}
	switch {
	case w.Rule.Unknown == rule.UnknownReject:
		return false, ErrPreconditionRequired
	case w.Rule.Unknown == rule.UnknownFetch, w.Journalled:
		return false, f.FetchBase(ctx, w)
	default:
		return true, nil
	}
}

// refuseLost refuses a write whose base is lost, but for one case. After a restart, or after answers that nobody has read, it isn't known
// whether the client has seen the document. If there is none then, the write is let through as a create, because it overwrites nothing. In
// all other cases the client has seen a document: if it isn't there, somebody has deleted it.
func (f *Finder) refuseLost(ctx context.Context, w *Search) error {
	if w.Sent == nil || w.Base.Reason != session.ReasonRestart && w.Base.Reason != session.ReasonUnwatched {
		return ErrLost
	}
	if err := f.FetchBase(ctx, w); err != nil {
		return err
	}
	if w.Base.Kind != session.KindAbsent {
		w.Outcome.Base = outcome.BaseLost
		return ErrLost
	}
	w.Outcome.Reason = ""
	return nil
}

// FetchBase makes the current revision the base of a write that has none, as the rule says.
func (f *Finder) FetchBase(ctx context.Context, w *Search) error {
	w.Outcome.Base = outcome.BaseFetched
	f.Fetched.Call(w.Rule.Name)
	rev, err := f.Current(ctx, w)
	// The reservation stays: it is for this write, whatever its base, and must be ended.
	b := &w.Base
	switch {
	case errors.Is(err, doc.ErrMissing):
		b.Kind = session.KindAbsent
	case errors.Is(err, es.ErrNoSource) && rev.Known():
		b.Kind, b.Numbers, b.Version = session.KindExplicit, rev.Numbers, rev.Version // guarded, never merged
	case err != nil:
		return err
	default:
		b.Kind, b.Numbers, b.Version, b.View, b.Stored = session.KindRead, rev.Numbers, rev.Version, rev.Source, rev.Source
	}
	return nil
}

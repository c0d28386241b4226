package base

import (
	"cmp"
	"context"

	"optimist/internal/outcome"
	"optimist/internal/session"
)

// ReasonRule stands for a rule that refuses stale writes. The outcome doesn't name it, because it is what was asked for.
const ReasonRule = "rule"

// WhyNotReplayed tells why a conflict is the write's answer, or "" where the write can be applied to a newer revision. guarded says that
// the client has given a guard of its own. fromBase says that the client made the write from a base.
func (f *Finder) WhyNotReplayed(ctx context.Context, w *Search, guarded, fromBase bool) string {
	switch {
	case guarded:
		return ReasonRule
	case !fromBase:
		return w.WhyPipelineForbids()
	case w.Rule.FailConflict:
		return ReasonRule
	case w.Base.Use == session.UseUnclear:
		return outcome.ReasonUnclear
	case !w.BaseKnown() || w.Base.OnlyGuards():
		return outcome.ReasonNumbers
	case w.Part != nil:
		return "" // nothing is written back but the part
	}
	if reason := w.WhyUnmergeable(); reason != "" {
		return reason
	}
	switch whole, err := f.SeesWhole(ctx, w); {
	case err != nil:
		return outcome.ReasonUnasked
	case !whole:
		return outcome.ReasonFiltered
	}
	return ""
}

// WhyUnmergeable is why the change can't be merged, from what is known of the index and the request.
func (w *Search) WhyUnmergeable() string {
	switch {
	case w.Index.Unknown != "":
		return w.Index.Unknown
	case w.Index.Partial:
		return outcome.ReasonSource
	case !w.JSON:
		return cmp.Or(w.WhyPipelineForbids(), outcome.ReasonFormat)
	}
	return w.WhyPipelineForbids()
}

// WhyUnreadable is why a document of the index can't be read as it is stored, or "". The error says that the engine couldn't be asked.
func (f *Finder) WhyUnreadable(ctx context.Context, w *Search) (reason string, err error) {
	switch {
	case w.Index.Unknown != "":
		return w.Index.Unknown, nil
	case w.Index.Partial:
		return outcome.ReasonSource, nil
	case w.Index.UUID == "":
		return "", nil
	}
	whole, err := f.SeesWhole(ctx, w)
	if err == nil && !whole {
		reason = outcome.ReasonFiltered
	}
	return reason, err
}

// WhyPipelineForbids is outcome.ReasonPipeline if an ingest pipeline would run again over what is merged, and the rule forbids that. Else
// it is empty.
func (w *Search) WhyPipelineForbids() string {
	if (w.Pipeline || w.Index.Pipeline) && !w.Rule.RerunPipeline {
		return outcome.ReasonPipeline
	}
	return ""
}

package base

import (
	"context"

	"optimist/internal/outcome"
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
	case w.Base.Unclear:
		return outcome.ReasonUnclear
	case !w.BaseKnown() || w.Base.Doubtful:
		return outcome.ReasonNumbers
	}
	return f.WhyUnmergeable(ctx, w)
}

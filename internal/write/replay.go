package write

import (
	"context"

	"optimist/internal/outcome"
)

// reasonRule stands for a rule that refuses stale writes. The outcome doesn't name it, because it is what was asked for.
const reasonRule = "rule"

// whyNotReplayed tells why a conflict is this change's answer, or "" where the change can be applied to a newer revision.
func (s *Service) whyNotReplayed(ctx context.Context, c *change) string {
	switch {
	case c.guard.Known():
		return reasonRule
	case !c.stales:
		return c.WhyPipelineForbids()
	case c.Rule.FailConflict:
		return reasonRule
	case !c.BaseKnown() || c.Base.Doubtful:
		return outcome.ReasonNumbers
	}
	return s.bases.WhyUnmergeable(ctx, &c.Search)
}

package write

import (
	"bytes"
	"cmp"
	"context"

	"optimist/internal/catalog"
	"optimist/internal/outcome"
	"optimist/internal/rule"
)

// reasonRule stands for a rule that refuses stale writes. The outcome doesn't name it, because it is what was asked for.
const reasonRule = "rule"

// whyConflictStands tells why a conflict is this change's answer, or "" where the change can be applied to a newer revision.
func (s *Service) whyConflictStands(ctx context.Context, c *change) string {
	switch {
	case c.guard.Known():
		return reasonRule
	case c.patch != nil:
		return c.whyPipelineStands()
	case c.req.Rule.OnConflict == rule.ConflictFail:
		return reasonRule
	case !c.baseKnown() || c.base.Doubtful:
		return outcome.ReasonNumbers
	}
	if reason := c.whyUnmergeable(); reason != "" {
		return reason
	}
	whole, err := s.seesWhole(ctx, c)
	switch {
	case err != nil:
		return outcome.ReasonUnasked
	case !whole:
		return outcome.ReasonFiltered
	}
	return ""
}

// whyUnmergeable is why the change can't be merged, from what is known of the index and the request.
func (c *change) whyUnmergeable() string {
	switch {
	case c.index.Unknown != "":
		return c.index.Unknown
	case c.index.Partial:
		return outcome.ReasonSource
	case !c.json:
		return cmp.Or(c.whyPipelineStands(), outcome.ReasonFormat)
	}
	return c.whyPipelineStands()
}

// whyPipelineStands is the reason where an ingest pipeline would run again over what is merged, and the rule doesn't allow that.
func (c *change) whyPipelineStands() string {
	if (c.pipeline || c.index.Pipeline) && c.req.Rule.Pipeline != rule.PipelineRerun {
		return outcome.ReasonPipeline
	}
	return ""
}

// seesWhole tells whether the client's view of the index's documents is unfiltered. The error says that the engine couldn't be asked.
func (s *Service) seesWhole(ctx context.Context, c *change) (bool, error) {
	return s.catalog.SeesWhole(ctx, c.req.asker(), c.name, c.doc.Routing)
}

// asker is the request's client, for the catalog.
func (r *Request) asker() catalog.Asker {
	return catalog.Asker{Credentials: r.Session.Credentials(), Caller: r.Caller}
}

// refusesSeqNo reports whether a 400 says that the index has no sequence numbers to compare with. The engine has no error type of its own
// for it; the setting's name is part of the reason.
func refusesSeqNo(body []byte) bool { return bytes.Contains(body, []byte("disable_sequence_numbers")) }

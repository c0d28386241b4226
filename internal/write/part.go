package write

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/session"
)

// guardOfPart finds the guard for a write that the engine, or a PATCH, merges by itself: by If-Match, or by the stamp of a copy
// that is sent as a part. found is false where there is none.
func (s *Service) guardOfPart(ctx context.Context, c *change) (n doc.Numbers, found bool, err error) {
	m, found, err := c.ifMatch()
	if err != nil {
		return n, true, err
	}
	if found {
		c.outcome.Base = outcome.BaseIfMatch
		if !m.Any && m.More == nil {
			return m.Tag.Numbers, true, nil
		}
		if err = s.takeOneOf(ctx, c, m); err == nil && !c.base.Numbers.Known() {
			return m.Tag.Numbers, true, nil
		}
		return c.base.Numbers, true, err
	}
	if !c.req.Stamp.Known() {
		return n, false, nil
	}
	if err := s.locate(ctx, c); err != nil {
		return n, true, err
	}
	held, ok := c.carried()
	if !ok {
		return n, false, nil
	}
	err = s.takeStamp(ctx, c, held)
	if n = c.base.Numbers; c.base.Kind == session.KindView && c.base.Told != n {
		n = held.Numbers // what was stored then has more in it than the client has seen
	}
	return n, true, err
}

// unpatchable is the refusal of a patch that can't be done safely, as far as that is known without a look at the document.
func (s *Service) unpatchable(c *change) *respond.Answer {
	why := ""
	switch {
	case c.index.UUID != "" && c.name == c.index.Name && c.demandsAlias():
		return respond.NoSuchIndex(c.name, " and [require_alias] request flag is [true] and ["+c.name+"] is not an alias")
	case c.index.DataStream != "" && c.name == c.index.DataStream:
		return patch.Illegal("only write ops with an op_type of create are allowed in data streams")
	case !s.catalog.Guardable(c.req.asker(), c.index):
		c.outcome.Reason, why = outcome.ReasonSeqNo, "index ["+c.doc.Index+"] has no sequence numbers to guard it with"
	case c.index.Unknown != "":
		c.outcome.Reason, why = c.index.Unknown, "these credentials may not ask what index ["+c.doc.Index+"] is, so that it isn't known "+
			"whether its documents can be read as they are stored (view_index_metadata lets them, or upstream.auth of optimist's own)"
	case c.index.Partial:
		c.outcome.Reason, why = outcome.ReasonSource, "index ["+c.doc.Index+
			"] doesn't keep or serve _source whole: what isn't shown would be lost"
	default:
		return nil
	}
	return patch.Illegal("[%s]: the document can't be patched: %s", c.doc.ID, why)
}

// barPatch reports whether a patch turns out to be one that may not be made here, and answers it; an _update is left to the
// engine.
func (s *Service) barPatch(c *change) bool {
	c.answer = s.unpatchable(c)
	if c.answer == nil && c.req.Op.Kind == api.Update && !c.onlyNew {
		c.outcome.Reason = c.whyPipelineStands()
	}
	c.unpatchable = c.answer != nil || c.req.Op.Kind == api.Update && !c.onlyNew && c.outcome.Reason != ""
	return c.unpatchable
}

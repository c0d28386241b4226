package write

import (
	"context"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
)

// carried is the copy of the document that the write's stamp says it was made from. ok is false where there is no stamp, or one of
// another document, or of another life of its index: the engine would take those numbers for its own.
func (c *change) carried() (held session.Copy, ok bool) {
	st := &c.req.Stamp
	if !st.Known() || !c.req.Rule.FromStamp || c.index.UUID == "" {
		return held, false
	}
	routing := c.doc.Routing
	if routing == "" {
		routing = c.index.Routing
	}
	if st.Document != stamp.DocumentOf(c.index.UUID, routing, c.doc.ID) {
		return held, false
	}
	held = session.Copy{Numbers: st.Numbers, Token: uint64(st.Copy), Served: true}
	if c.req.Rule.OnConflict == rule.ConflictFail {
		held.Token = 0 // one from before the rule said so is held against the revision, too, and not against what was sent since
	}
	return held, true
}

// holding reserves the copy that a write was made from which has another base: whoever writes from that copy again has written this.
// It waits for a write of the same copy, so nothing else of the session may be reserved before.
func (s *Service) holding(ctx context.Context, c *change) (held session.Base, err error) {
	if carried, ok := c.carried(); ok && carried.Token != 0 {
		if held, err = s.sessions.Hold(ctx, c.req.Session, c.doc.Ref, carried, c.sent); err != nil {
			return held, err
		}
	}
	return held, nil
}

// takeStamp makes the copy that the stamp names the base.
func (s *Service) takeStamp(ctx context.Context, c *change, held session.Copy) error {
	c.outcome.Base = BaseStamp
	return s.takeCopy(ctx, c, held)
}

// guarded finds the guard for a write that the engine, or a PATCH, merges by itself: by If-Match, or by the stamp of a copy that is sent as
// a part. found is false where there is none.
func (s *Service) guarded(ctx context.Context, c *change) (n doc.Numbers, found bool, err error) {
	m, found, err := c.ifMatch()
	if err != nil {
		return n, true, err
	}
	if found {
		c.outcome.Base = BaseIfMatch
		if !m.any && m.more == nil {
			return m.tag.Numbers, true, nil
		}
		if err = s.takeOneOf(ctx, c, m); err == nil && !c.base.Numbers.Known() {
			return m.tag.Numbers, true, nil
		}
		return c.base.Numbers, true, err
	}
	if !c.req.Stamp.Known() {
		return n, false, nil
	}
	if err := s.describe(ctx, c); err != nil {
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

// updateGuarded sends an _update under a guard. The engine takes none with an upsert; whoever sends a stamp has seen the document, and
// would make it only if it were gone: that is a conflict then.
func (s *Service) updateGuarded(ctx context.Context, c *change, n doc.Numbers) error {
	upserts := false
	if c.outcome.Base == BaseStamp {
		for _, name := range [...]string{"upsert", "doc_as_upsert"} {
			if rest, t, ok := stamp.Take(c.req.Body, name); ok && t.Value != nil {
				upserts, c.req.Body = true, rest
			}
		}
		if _, said := api.Param(c.query, "doc_as_upsert"); said {
			upserts, c.query = true, api.Without(nil, c.query, "doc_as_upsert")
		}
	}
	if err := s.updateOnce(ctx, c, n, nil); err != nil || !upserts || c.answer.Status != http.StatusNotFound {
		return err
	}
	c.answer.Release()
	c.answer = conflict(c.doc, "the document was deleted since the revision that the write is based on")
	return nil
}

// partWritten ends the reservation of a write of a part that was acknowledged with these numbers. What its client has of the document since
// isn't known: its next write from the same copy is guarded by the numbers, and not merged.
func (c *change) partWritten(stored doc.Revision) {
	c.base.Commit(session.Ack{Stored: doc.Revision{Numbers: stored.Numbers, Version: stored.Version}, Told: stored.Numbers})
}

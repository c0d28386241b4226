package write

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"optimist/internal/doc"
	"optimist/internal/etag"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/uri"
)

// takeGuard makes the revision the base that the client's own guard names. pass says that the write goes as it is: its 409 is its
// answer.
func (s *Service) takeGuard(ctx context.Context, c *change, n doc.Numbers) (pass bool, err error) {
	merges := c.req.Rule.MergeExplicit
	held, err := s.holdStamped(ctx, c)
	if err != nil {
		return false, err
	}
	c.outcome.Base = outcome.BaseExplicit
	switch {
	case n.Known() && !merges:
		c.base = s.seen(c).TakeAt(c.req.Session, c.Doc.Ref, n, c.sent) // without a wait: the engine decides
	case n.Known():
		err = s.takeCopy(ctx, c, session.Copy{Numbers: n})
	case c.req.Rule.Session && c.req.Session.IsNamed():
		// An external version says nothing of what was read, but what the session has seen afterwards is this.
		err = s.takeSeen(ctx, c)
	}
	c.base.Join(held)
	if err != nil {
		return false, err
	}
	if !merges || !n.Known() {
		c.outcome.Reason = outcome.ReasonExplicit
		return true, nil
	}
	c.out.Query = uri.Without(nil, c.out.Query, "if_seq_no", "if_primary_term")
	return false, nil
}

// takeMatch makes what If-Match names the base of the change.
func (s *Service) takeMatch(ctx context.Context, c *change, m etag.Match) (err error) {
	c.outcome.Base = outcome.BaseIfMatch
	if m.Any || m.More != nil {
		return s.takeOneOf(ctx, c, m)
	}
	return s.takeCopy(ctx, c, m.Tag.Held())
}

// takeOneOf is for what names more than one revision: any at all, or one of a list. The current one is the base if it is among
// them. Otherwise it is the newest of those that the session knows, whose change is merged; or, where it knows none, the newest,
// whose guard the engine refuses.
func (s *Service) takeOneOf(ctx context.Context, c *change, m etag.Match) error {
	s.events.Fetch.Call(c.req.Rule.Name)
	rev, err := s.current(ctx, c)
	switch {
	case errors.Is(err, doc.ErrMissing):
		return ErrNoMatch
	case err != nil && !rev.Known():
		return err
	}
	if m.Any || slices.ContainsFunc(m.More, func(t etag.Tag) bool { return t.Numbers == rev.Numbers && t.Copy == 0 }) {
		c.base = s.sessions.Witness(c.req.Session, c.Doc.Ref)
		b := &c.base
		b.Kind, b.Numbers, b.Version, b.View, b.Stored = session.KindGiven, rev.Numbers, rev.Version, rev.Source, rev.Source
		return nil
	}
	slices.SortFunc(m.More, func(a, b etag.Tag) int { return cmp.Compare(b.SeqNo, a.SeqNo) })
	for _, t := range m.More {
		if err := s.takeCopy(ctx, c, t.Held()); err != nil {
			return err
		}
		if c.base.View != nil {
			return nil
		}
		c.base.Release()
	}
	return s.takeCopy(ctx, c, m.More[0].Held())
}

// holdStamped reserves the copy that the write's stamp names, of a write which has another base: a client that writes from that
// copy again has written this. It waits for a write of the same copy, so nothing else of the session may be reserved before.
func (s *Service) holdStamped(ctx context.Context, c *change) (held session.Base, err error) {
	if carried, ok := c.carried(); ok && carried.Token != 0 {
		return s.seen(c).Hold(ctx, c.req.Session, c.Doc.Ref, carried, c.sent)
	}
	return held, nil
}

// takeStamp makes the copy that the stamp names the base.
func (s *Service) takeStamp(ctx context.Context, c *change, held session.Copy) error {
	c.outcome.Base = outcome.BaseStamp
	return s.takeCopy(ctx, c, held)
}

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
	if n = c.base.Numbers; c.base.Kind == session.KindView && c.base.AnswerNumbers != n {
		n = held.Numbers // what was stored then has more in it than the client has seen
	}
	return n, true, err
}

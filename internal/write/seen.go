package write

import (
	"context"

	"optimist/internal/doc"
	"optimist/internal/etag"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
)

// settleIdlePatch answers a patch that changed nothing: the engine's noop.
func (s *Service) settleIdlePatch(ctx context.Context, c *change, rev doc.Revision) {
	if c.answer != nil { // of a write that it shared
		c.answer.Release()
	} else {
		c.outcome.Kind = outcome.Guarded
	}
	if c.answer = s.askNoop(ctx, c, rev.Numbers); c.answer == nil {
		c.answer = respond.Written(s.named(c), rev, respond.Noop)
		c.patch.Show(c.answer, rev, rev.Source)
	}
	s.sawPatched(c, rev)
}

// sawPatched tells the session what its client has seen of the revision that a patch left: see patch.
func (s *Service) sawPatched(c *change, rev doc.Revision) {
	p := c.patch
	known := rev.Known() && rev.Source != nil
	if known && p.Shows.Whole() {
		c.answer.Add(etagName, etag.Tag{Numbers: rev.Numbers}.Append)
	}
	switch {
	case !known || !c.req.Rule.Session || c.req.Anonymous:
	case p.Shows.Whole():
		s.sessions.Read(c.req.Session, c.doc.Ref, rev, c.epoch)
	default:
		s.patchView(c, rev)
	}
}

// patchView applies a patch to what its client had seen, as far as that is known: what it named by If-Match or a stamp, or, in a
// session that names itself, what it read or wrote.
func (s *Service) patchView(c *change, rev doc.Revision) {
	b, p := &c.base, c.patch
	if b.Kind == session.KindNone {
		if !c.req.Session.IsNamed() {
			return
		}
		now, cancel := context.WithCancel(context.Background())
		cancel() // what another write of the session has reserved is not waited for
		taken, err := s.sessions.Take(now, c.req.Session, c.doc.Ref, nil)
		if err != nil {
			return
		}
		b = &taken
	}
	defer b.Release()
	saw := doc.Revision{Source: b.View}
	if b.Doubtful || b.View == nil && b.Kind != session.KindAbsent {
		return
	}
	alone := p.Patch
	alone.Guard, alone.New, alone.Always = doc.Numbers{}, false, true
	d, err := alone.Next(saw)
	if err != nil {
		return
	}
	b.Commit(session.Ack{Stored: rev, Sent: d.Edited, Told: rev.Numbers})
	if intent.Equal(d.Edited, rev.Source) {
		c.answer.Add(etagName, etag.Tag{Numbers: rev.Numbers}.Append)
	}
}

package write

import (
	"context"

	"optimist/internal/ack"
	"optimist/internal/doc"
	"optimist/internal/etag"
	"optimist/internal/intent"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// noteUpdate notes in the session what the client has seen after the engine has merged an _update: the document in the answer, or that a
// script has deleted it. If the answer shows neither, a named session loses its view: a merge of the same body from it would find no
// change.
func (s *Service) noteUpdate(ctx context.Context, c *change, res *upstream.Response, got *ack.Ack) {
	r, rev := c.req, got.Revision
	rev.Source, _ = c.answerDocument(res)
	thread, named := r.Session.Thread()
	switch held := c.Base.Kind != session.KindNone; {
	case got.Missed, held && got.Unchanged && c.Base.View != nil: // finish gives the base back
	case held && got.Deleted:
		c.Base.Delete()
	case held:
		c.Base.Commit(session.Ack{Stored: got.Revision, AnswerNumbers: got.Numbers}) // nobody knows which document the client holds
	case !r.Rule.Session, r.Anonymous, rev.Source == nil && !got.Deleted && (!named || got.Unchanged):
	case s.bases.Locate(ctx, &c.Search) != nil:
	case got.Deleted:
		s.sessions.ReadAbsent(r.Session, c.Ref(), c.epoch)
	case rev.Source != nil:
		s.sessions.Read(r.Session, c.Ref(), rev, c.epoch)
	default:
		s.sessions.WroteForwarded(thread, c.Ref(), rev, got.Created, c.epoch)
	}
}

// answerDocument is the document that the answer to an _update shows, if it shows the whole document; some says that it shows less.
func (c *change) answerDocument(res *upstream.Response) (whole []byte, some bool) {
	shows, all := patch.Shows(c.Op, c.req.Body)
	if shows && all {
		whole = ack.Shown(res)
	}
	return whole, shows && whole == nil
}

// settleUnchangedPatch answers a patch that changed nothing: the engine's noop.
func (s *Service) settleUnchangedPatch(ctx context.Context, c *change, rev doc.Revision) {
	c.answer.Release() // the answer was that to a write that the patch shared
	if c.answer = s.noops.Unchanged(ctx, c.noop(), rev.Numbers); c.answer == nil {
		c.answer = respond.Written(s.documentOf(c), rev, respond.Noop)
		c.patch.Show(c.answer, rev, rev.Source)
	}
	s.rememberPatched(c, rev)
}

// rememberPatched notes in the session the view that its client has after a patch: see asPatch.
func (s *Service) rememberPatched(c *change, rev doc.Revision) {
	p := c.patch
	known := rev.Known() && rev.Source != nil
	if known && p.Shows.Whole() {
		c.answer.Add(etagName, etag.Tag{Numbers: rev.Numbers}.Append)
	}
	switch {
	case !known || !c.Rule.Session || c.Anonymous:
	case p.Shows.Whole():
		s.sessions.Read(c.Session, c.Ref(), rev, c.epoch)
	default:
		s.patchView(c, rev)
	}
}

// patchView applies a patch to the client's view, if that is known. The view is the revision that the client names by If-Match or a stamp,
// or the last read or write of its thread of work.
func (s *Service) patchView(c *change, rev doc.Revision) {
	b, p, began := &c.Base, c.patch, session.Place{}
	if b.Kind == session.KindNone {
		thread, named := c.Session.Thread()
		if !named {
			return
		}
		taken, ok := s.sessions.TakeNow(thread, c.Ref(), nil)
		if !ok {
			return
		}
		b, began = &taken, c.began
	}
	defer b.Release()
	if b.SeenSince(c.epochAt) { // the client has given the patch up, and read the document once more, without it
		return
	}
	saw, _ := c.unmarked(doc.Revision{Source: b.View})
	if b.OnlyGuards() || b.View == nil && b.Kind != session.KindAbsent {
		return
	}
	view := c.viewWithPart
	if c.Part == nil {
		unguarded := p.Patch
		unguarded.Guard, unguarded.OnlyNew, unguarded.WriteUnchanged = doc.Numbers{}, false, true
		d, err := unguarded.Next(saw)
		if err != nil {
			return
		}
		view = d.Edited
	}
	b.Commit(session.Ack{Stored: rev, Sent: c.withMarks(view), AnswerNumbers: rev.Numbers, Began: began})
	if plain, _ := c.unmarked(rev); intent.Equal(view, plain.Source, c.Room) {
		c.answer.Add(etagName, etag.Tag{Numbers: rev.Numbers}.Append)
	}
}

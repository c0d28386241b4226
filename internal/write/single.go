package write

import (
	"context"
	"errors"
	"strconv"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// guard writes or deletes a document under its base's guard.
func (s *Service) guard(ctx context.Context, c *change) error {
	c.index, c.metadata = s.gates.describe(ctx, c.req, c.name)
	c.doc.Index = c.index.Name
	switch {
	case c.index.DataStream != "" && c.req.Rule.AnyIndex:
		return s.pass(ctx, c, ReasonDataStream)
	case !s.gates.hasSeqNo(c.index):
		return s.pass(ctx, c, ReasonSeqNo)
	}
	passed, err := s.chooseBase(ctx, c)
	if err != nil {
		return err
	}
	if passed {
		return s.pass(ctx, c, c.outcome.Reason)
	}
	lead := s.run
	if c.req.Op.Kind == api.Delete {
		lead = s.delete
	} else {
		c.ready = s.mayShare(c)
	}
	if err := s.lanes.Do(ctx, c.doc.Ref, c, c.req.Background, func(b *retry.Batch[*change]) { lead(ctx, b) }); err != nil {
		return err
	}
	return c.err
}

// mayShare reports whether the change may share a write with others, as far as is known without asking.
func (s *Service) mayShare(c *change) bool {
	if c.req.Rule.OnConflict != rule.ConflictMerge || !c.plain || c.outcome.Base == BaseExplicit {
		return false
	}
	if c.base.Kind != session.KindAbsent && c.base.View == nil {
		return false
	}
	return s.gates.knownMergeable(c)
}

// pass sends the write as it is. What the session learns from it depends on its base: a write without one leaves no view.
func (s *Service) pass(ctx context.Context, c *change, reason string) error {
	c.outcome.Kind, c.outcome.Reason = Passed, reason
	if c.outcome.Base == BaseExplicit {
		c.outcome.Kind = Guarded
	}
	c.outcome.Attempts++
	r := &upstream.Request{Method: wire.MethodString(c.req.Method), Target: c.whole(), Body: c.req.Body}
	for _, f := range c.req.Fields {
		if !ours(f.Name) || c.outcome.Kind == Passed && wire.EqualFold(f.Name, "accept-encoding") {
			r.Fields = append(r.Fields, f)
		}
	}
	res, err := s.exchange(ctx, r)
	if err != nil {
		return err
	}
	c.answer = passOn(res)
	c.settle(s, res)
	return nil
}

// whole is the client's own request target.
func (c *change) whole() []byte {
	op := c.req.Op
	if len(op.Query) == 0 {
		return op.Path
	}
	t := make([]byte, 0, len(op.Path)+1+len(op.Query))
	return append(append(append(t, op.Path...), '?'), op.Query...)
}

// settle tells the session what an answer to a write that went as it was sent means.
func (c *change) settle(s *Service, res *upstream.Response) {
	if res.Status != 200 && res.Status != 201 {
		return // not acknowledged: the base is given back
	}
	a, ok := readAck(res.Payload)
	if !a.created {
		s.sessions.Wrote(c.doc.Index)
	}
	if c.req.Op.Kind == api.Delete {
		c.base.Delete()
		return
	}
	stored := a.Revision
	if ok && !c.rewritten() {
		stored.Source = c.sent
	}
	c.base.Commit(session.Ack{Stored: stored, Sent: c.sent, Told: stored.Numbers, Created: a.created})
	if ok && c.outcome.Kind == Guarded {
		c.answer.setETag(stored.Numbers)
	}
}

// create sends a write that the engine itself refuses when the document exists: it needs no guard, and its conflict is its answer. A
// session that saw no document there knows one afterwards.
func (s *Service) create(ctx context.Context, c *change) error {
	if c.req.Rule.Session && !c.req.Anonymous {
		var err error
		if c.base, err = s.sessions.Take(ctx, c.req.Session, c.doc.Ref, c.sent); err != nil {
			return err
		}
		c.outcome.Base = baseKind(c.base.Kind)
	}
	if c.base.Kind != session.KindAbsent {
		c.base.Release()
		c.base, c.outcome.Base = session.Base{}, BaseNone
	}
	err := s.pass(ctx, c, "")
	if c.outcome.Base == BaseAbsent {
		c.outcome.Kind = Guarded
	}
	return err
}

// update sends an _update. The engine merges by itself; what optimist adds is that it tries often enough.
func (s *Service) update(ctx context.Context, c *change) error {
	if _, found := explicit(c.req.Op.Query); found {
		c.outcome.Base = BaseExplicit
		return s.pass(ctx, c, ReasonExplicit)
	}
	p := policy(c.req.Rule)
	if _, said := api.Param(c.req.Op.Query, "retry_on_conflict"); said {
		return s.pass(ctx, c, "")
	}
	if c.req.Rule.RetryOnConflict == 0 {
		return s.pass(ctx, c, "")
	}
	target := c.withRetries()
	err := retry.Do(ctx, p, func(ctx context.Context, _ int) error {
		c.outcome.Attempts++
		if c.answer != nil {
			c.answer.Release()
		}
		r := c.request(c.req.Body, doc.Numbers{}, false)
		r.Target = target
		res, err := s.exchange(ctx, r)
		if err != nil {
			c.answer = nil
			return err
		}
		c.answer = passOn(res)
		if res.Status == 409 {
			s.events.Conflict(c.req.Rule.Name)
			return doc.ErrConflict
		}
		return nil
	})
	c.outcome.Kind = Guarded
	switch {
	case errors.Is(err, doc.ErrConflict):
		return nil // the engine's last answer
	case err == nil:
		s.sessions.Wrote(c.doc.Index)
	}
	return err
}

// withRetries is the request target with the rule's retry_on_conflict.
func (c *change) withRetries() []byte {
	t := c.whole()
	sep := byte('?')
	if len(c.req.Op.Query) > 0 {
		sep = '&'
	}
	t = append(append(t[:len(t):len(t)], sep), "retry_on_conflict="...)
	return strconv.AppendInt(t, int64(c.req.Rule.RetryOnConflict), 10)
}

// delete removes the document under its base's guard. Where it changed since, the rule says whether it goes all the same.
func (s *Service) delete(ctx context.Context, b *retry.Batch[*change]) {
	c := b.Members[0]
	b.Forget()
	f := &flight{s: s, b: b, open: b.Members, cur: c.revision()}
	if c.base.Kind == session.KindAbsent {
		c.err = s.pass(ctx, c, "") // the client saw nothing there: the engine says not_found, or deletes what came since
		return
	}
	err := retry.Do(ctx, policy(c.req.Rule), func(ctx context.Context, n int) error { return f.deleteOnce(ctx, c, n) })
	if c.answer == nil && c.err == nil {
		c.answer, c.err = f.last(err)
	}
}

func (f *flight) deleteOnce(ctx context.Context, c *change, n int) error {
	if n > 1 {
		if done, err := f.stillDelete(ctx, c); done || err != nil {
			return err
		}
	}
	c.outcome.Attempts++
	c.outcome.Kind = Guarded
	if n > 1 {
		c.outcome.Kind = Merged
	}
	f.guard, f.fresh = f.cur.Numbers, false
	res, err := f.s.exchange(ctx, c.request(c.req.Body, f.cur.Numbers, false))
	switch {
	case errors.Is(err, upstream.ErrNotSent):
		return err
	case err != nil:
		c.lost = true
		return doc.ErrConflict // looked at again: a delete under a guard that still holds can be sent again
	case res.Status == 409:
		return f.conflicted(ctx, res)
	}
	c.answer = passOn(res)
	f.s.sessions.Wrote(c.doc.Index)
	if res.Status == 200 {
		c.base.Delete()
	}
	return nil
}

// stillDelete looks at the document after a conflict, or after an answer that was lost, and tells whether the delete is over.
func (f *flight) stillDelete(ctx context.Context, c *change) (done bool, err error) {
	f.s.events.Fetch(c.req.Rule.Name)
	rev, err := f.s.engine.Fetch(ctx, c.req.Caller, c.doc)
	switch {
	case errors.Is(err, doc.ErrMissing) && c.lost:
		return true, ErrUnknownOutcome // gone, but by whom isn't known
	case errors.Is(err, doc.ErrMissing):
		c.outcome.Kind = Merged
		c.answer = notFound(f.s.shaped(c.doc), c.revision())
		c.base.Delete()
		return true, nil
	case err != nil && c.lost:
		return true, errors.Join(ErrUnknownOutcome, err)
	case err != nil:
		return true, err
	}
	if rev.Numbers == f.guard {
		f.cur = rev
		return false, nil
	}
	if c.lost {
		return true, ErrUnknownOutcome
	}
	if c.req.Rule.OnDeleteConflict == rule.DeleteFail {
		c.answer = f.refusal(c, "the document changed since the revision that the delete is based on")
		return true, nil
	}
	f.cur = rev
	c.outcome.Overwrote = []string{""}
	return false, nil
}

package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

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
	if err := s.describe(ctx, c); err != nil {
		return err
	}
	switch {
	case c.index.DataStream != "" && c.req.Rule.AnyIndex:
		return s.pass(ctx, c, ReasonDataStream)
	case !s.catalog.Guardable(c.index):
		return s.pass(ctx, c, ReasonSeqNo)
	}
	passed, err := s.chooseBase(ctx, c)
	if err == nil && c.req.Rule.Transform != nil {
		passed, err = s.prepare(ctx, c, passed)
	}
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
	return c.verdict()
}

// describe finds out which index the change's document is in.
func (s *Service) describe(ctx context.Context, c *change) (err error) {
	maxAge := time.Duration(0)
	if c.req.Stamp.Known() {
		maxAge = stampedAge
	}
	c.index, err = s.catalog.Describe(ctx, c.req.asker(), c.name, maxAge)
	c.doc.Index = c.index.Name
	return err
}

// stampedAge is how old what is known of an index may be where a stamp is held against it: its client may have had that for days.
const stampedAge = time.Second

// mayShare reports whether the change may share a write with others, as far as is known without asking.
func (s *Service) mayShare(c *change) bool {
	if c.req.Rule.OnConflict != rule.ConflictMerge || !c.plain || c.outcome.Base == BaseExplicit {
		return false
	}
	if c.base.Kind != session.KindAbsent && c.base.View == nil || c.base.Doubtful {
		return false
	}
	return s.knownMergeable(c)
}

// pass sends the write as it is. What the session learns from it depends on its base: a write without one leaves no view.
func (s *Service) pass(ctx context.Context, c *change, reason string) error {
	c.outcome.Kind, c.outcome.Reason = Passed, reason
	if c.outcome.Base == BaseExplicit {
		c.outcome.Kind = Guarded
	}
	c.outcome.Attempts++
	body, refusal := c.outgoing()
	if refusal != nil {
		c.outcome.Kind, c.outcome.Attempts, c.answer = Guarded, c.outcome.Attempts-1, refusal
		return nil
	}
	r := &c.up
	*r = upstream.Request{Method: wire.MethodString(c.req.Method), Target: c.whole(), Body: body, Fields: c.fields[:0]}
	for _, f := range c.req.Fields {
		if !ours(f.Name) || c.outcome.Kind == Passed && wire.EqualFold(f.Name, "accept-encoding") {
			r.Fields = append(r.Fields, f)
		}
	}
	res, err := s.exchange(ctx, r)
	if err != nil {
		return err
	}
	c.answered(passOn(res))
	if c.req.Op.Kind == api.Update {
		s.updated(ctx, c, res)
	}
	c.settle(s, res, body)
	return nil
}

// updated notes that the engine has changed a part of a document for a session that names itself. What the session sent before is another
// document by now: were its next write counted from that, saying the same once more would change nothing.
func (s *Service) updated(ctx context.Context, c *change, res *upstream.Response) {
	r := c.req
	if res.Status != 200 || !r.Rule.Session || !r.Session.IsNamed() || r.Anonymous || r.account != nil ||
		bytes.Contains(res.Payload, []byte(`"result":"noop"`)) {
		return
	}
	a, _ := readAck(res)
	if s.describe(ctx, c) == nil {
		s.store.WroteElse(r.Session, c.doc.Ref, a.Revision, false, c.epoch)
	}
}

// whole is the client's own request target; of a write that asks for a document to be new, with that.
func (c *change) whole() []byte {
	op := c.req.Op
	switch {
	case c.only && op.Kind == api.Index:
		return c.target(doc.Numbers{}, true)
	case len(op.Query) == 0:
		return op.Path
	}
	return append(append(append(c.text[:0], op.Path...), '?'), op.Query...)
}

// settle tells the session what an answer to a write that went without a merge means. body is what was written.
func (c *change) settle(s *Service, res *upstream.Response, body []byte) {
	if res.Status != 200 && res.Status != 201 {
		return // not acknowledged: the base is given back
	}
	a, ok := readAck(res)
	if !a.created {
		s.sessions.Wrote(c.doc.Index)
	}
	if c.req.Op.Kind == api.Delete {
		c.base.Delete()
		return
	}
	stored := a.Revision
	if ok && !c.rewritten() {
		stored.Source = body
	}
	told := stored.Numbers
	same := bytes.Equal(body, c.sent)
	if !same && c.base.Numbers.Known() {
		told = c.base.Numbers
		c.answer.tell(told)
	}
	t := tag{Numbers: told}
	if told != stored.Numbers {
		t = c.tagFor(told)
	}
	c.base.Commit(session.Ack{Stored: stored, Sent: c.sent, Told: told, Copy: c.handed(t), Created: a.created})
	if ok && c.outcome.Kind == Guarded && (same || told != stored.Numbers) {
		c.answer.setETag(t)
	}
}

// create sends a write that the engine itself refuses when the document exists: it needs no guard, and its conflict is its answer. A
// session that saw no document there knows one afterwards; so does one that named itself, whatever it had seen: it may write its next
// change from memory.
func (s *Service) create(ctx context.Context, c *change) error {
	var held session.Base
	if c.req.Stamp.Known() { // of a document that was deleted since
		err := s.describe(ctx, c)
		if err == nil {
			held, err = s.holding(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	defer func() { held.Release() }() // nothing once it is joined
	if c.req.Rule.Session && !c.req.Anonymous {
		if err := s.describe(ctx, c); err != nil {
			return err
		}
		if c.index.DataStream != "" && c.req.Rule.AnyIndex {
			return s.pass(ctx, c, ReasonDataStream)
		}
		if err := s.take(ctx, c); err != nil {
			return err
		}
		c.outcome.Base = BaseNone
		switch {
		case c.base.Kind == session.KindAbsent:
			c.outcome.Base = BaseAbsent
		case !c.req.Session.IsNamed():
			c.base.Release()
			c.base = session.Base{}
		}
	}
	c.base.Join(held)
	held = session.Base{}
	err := s.pass(ctx, c, "")
	if c.outcome.Base == BaseAbsent && c.outcome.Kind == Passed {
		c.outcome.Kind = Guarded
	}
	return err
}

// take reserves what the session knows as the change's base.
func (s *Service) take(ctx context.Context, c *change) (err error) {
	if c.base, err = s.sessions.Take(ctx, c.req.Session, c.doc.Ref, c.sent); err != nil {
		return err
	}
	return c.stillThere(ctx)
}

// update sends an _update. The engine merges by itself; what optimist adds is that it tries often enough, and what If-Match asks for.
func (s *Service) update(ctx context.Context, c *change) error {
	c.epoch = s.store.Epoch()
	if c.req.Rule.Transform != nil {
		if taken, err := s.transformUpdate(ctx, c); taken || err != nil {
			return err
		}
		c.outcome.Untransformed = true
	}
	if _, found := explicit(c.req.Op.Query); found {
		c.outcome.Base = BaseExplicit
		return s.pass(ctx, c, ReasonExplicit)
	}
	if n, found, err := s.guarded(ctx, c); err != nil {
		return err
	} else if found {
		return s.updateGuarded(ctx, c, n)
	}
	_, said := api.Param(c.req.Op.Query, "retry_on_conflict")
	if said || c.req.Rule.RetryOnConflict == 0 {
		return s.pass(ctx, c, c.outcome.Reason)
	}
	target := c.withRetries()
	err := retry.Do(ctx, c.policy(), func(ctx context.Context, n int) error {
		if n > 1 && ctx.Err() != nil {
			return doc.ErrConflict // the answer is here
		}
		if err := s.updateOnce(ctx, c, doc.Numbers{}, target); err != nil {
			return err
		}
		if c.answer.Status == 409 {
			s.events.Conflict(c.req.Rule.Name)
			return doc.ErrConflict
		}
		return nil
	})
	if c.answer != nil {
		return nil // if it is a conflict, the engine's last one
	}
	return err
}

// updateOnce sends an _update once, under a guard or to another target than its own; its answer, whatever it is, becomes the change's.
func (s *Service) updateOnce(ctx context.Context, c *change, n doc.Numbers, target []byte) error {
	c.outcome.Attempts++
	c.outcome.Kind = Guarded
	if c.answer != nil {
		c.answer.Release()
		c.answer = nil
	}
	r := c.request(c.req.Body, n, false)
	if target != nil {
		r.Target = target
	}
	res, err := s.exchange(ctx, r)
	if err != nil {
		return err
	}
	c.answered(passOn(res))
	if res.Status < 300 {
		s.sessions.Wrote(c.doc.Index)
		if c.base.Kind != session.KindNone {
			a, _ := readAck(res)
			c.partWritten(a.Revision)
		} else {
			s.updated(ctx, c, res)
		}
	}
	return nil
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
	err := retry.Do(ctx, c.policy(), func(ctx context.Context, n int) error { return f.deleteOnce(ctx, c, n) })
	if c.answer == nil && c.err == nil {
		f.settleDoubt(ctx)
		c.answer, c.err = f.last(c, err)
	}
}

func (f *flight) deleteOnce(ctx context.Context, c *change, n int) error {
	if n > 1 {
		if done, err := f.stillDelete(ctx, c); done || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	c.outcome.Attempts++
	c.outcome.Kind = Guarded
	if n > 1 {
		c.outcome.Kind = Merged
	}
	f.guard, f.fresh = f.cur.Numbers, false
	f.try = try{guard: f.guard, sent: time.Now()}
	res, err := f.s.exchange(ctx, c.request(c.req.Body, f.cur.Numbers, false))
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		c.lost = true
		return doc.ErrConflict // looked at again: a delete under a guard that still holds can be sent again
	case err != nil:
		return err
	case res.Status == 409:
		return f.conflicted(ctx, res)
	case res.Status == 200:
		f.s.sessions.Wrote(c.doc.Index)
		c.answer = passOn(res)
		c.base.Delete()
		return nil
	}
	f.answerFrom(res)
	return nil
}

// stillDelete looks at the document after a conflict, or after an answer that was lost, and tells whether the delete is over.
func (f *flight) stillDelete(ctx context.Context, c *change) (done bool, err error) {
	f.s.events.Fetch(c.req.Rule.Name)
	if c.lost {
		ctx = context.WithoutCancel(ctx)
	}
	rev, err := f.s.current(ctx, c)
	switch {
	case errors.Is(err, doc.ErrMissing) && (c.lost || !f.primaryStayed(ctx)):
		return true, ErrUnknownOutcome // gone, but by whom isn't known
	case errors.Is(err, doc.ErrMissing):
		c.outcome.Kind = Merged
		c.answer = c.kept(notFound(f.s.shaped(c.doc), c.revision()))
		c.base.Delete()
		return true, nil
	case err != nil && mayAskAgain(err):
		return true, fmt.Errorf("%w: %w", doc.ErrConflict, err)
	case err != nil && c.lost:
		return true, fmt.Errorf("%w; then: %w", ErrUnknownOutcome, err)
	case err != nil:
		return true, err
	}
	f.try = try{} // what is there isn't what a delete leaves
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

package write

import (
	"bytes"
	"context"
	"errors"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/retry"
)

// flight is the work on one batch of changes to a document: here a 409 becomes a 200.
//
// Every attempt is merge(original base, sent, current) for each change in its order, written under current's guard. Current is, for
// the first attempt, the base itself, or the revision that the lane's last write left (a guess: good for a write under its guard,
// never for a decision); after a conflict it is read from the engine.
type flight struct {
	s    *Service
	b    *retry.Batch[*change]
	open []*change // without an answer yet, in order

	cur    doc.Revision // what the changes are merged into; no numbers: the document is absent
	fresh  bool         // cur was read from the engine after the last write of ours
	direct bool         // cur is the only change's own base: it goes as it was sent
	guard  doc.Numbers  // the guard of the last write; zero for a create

	refused *Answer // the engine's last 409, for when trying ends
}

// run leads a batch from its first attempt to its answers.
func (s *Service) run(ctx context.Context, b *retry.Batch[*change]) {
	if len(b.Members) > 1 {
		s.events.Batch(len(b.Members))
		// The leader's client may leave; the others' changes are still to be written.
		ctx = context.WithoutCancel(ctx)
	}
	f := &flight{s: s, b: b, open: b.Members}
	f.do(ctx)
}

func (f *flight) do(ctx context.Context) {
	lead := f.open[0]
	f.start(lead)
	err := retry.Do(ctx, policy(lead.req.Rule), f.attempt)
	for _, c := range f.open {
		c.answer, c.err = f.last(err)
	}
}

func policy(r *rule.Rule) retry.Policy {
	return retry.Policy{
		MaxAttempts: r.Retry.MaxAttempts, MaxElapsed: r.Retry.MaxElapsed,
		BaseInterval: r.Retry.BaseInterval, MaxInterval: r.Retry.MaxInterval,
	}
}

// last is what a change gets that is still open when trying ends: the engine's own conflict, if that is why.
func (f *flight) last(err error) (*Answer, error) {
	switch {
	case err == nil:
		return nil, errors.New("the attempt ended without an answer")
	case errors.Is(err, doc.ErrConflict) && f.refused != nil:
		return f.refused.clone(), nil
	}
	return nil, err
}

// start chooses the revision that the first attempt merges into.
func (f *flight) start(lead *change) {
	if rev, ok := f.b.Guess(lead.scope()); ok && lead.ready {
		f.cur = rev
		return
	}
	f.cur = lead.revision()
	f.direct = len(f.open) == 1 && lead.straight()
	for _, c := range f.open[1:] {
		// The newest base of the batch is the most likely to be current.
		if r := c.revision(); r.Source != nil && r.SeqNo > f.cur.SeqNo {
			f.cur = r
		}
	}
}

// revision is what the engine holds at the change's base, as far as is known.
func (c *change) revision() doc.Revision {
	return doc.Revision{Numbers: c.base.Numbers, Version: c.base.Version, Source: c.base.Stored}
}

// straight reports whether the client has seen exactly what the engine holds at the base: then what it sends needs no merge there.
func (c *change) straight() bool {
	switch {
	case c.base.Kind != session.KindView:
		return true
	case c.base.Stored == nil:
		// The engine may hold other bytes (a pipeline): where nothing is merged, the numbers are guard enough.
		return c.staticReason() != ""
	}
	return bytes.Equal(c.base.View, c.base.Stored)
}

// attempt is one turn of the loop. It returns doc.ErrConflict to be called again.
func (f *flight) attempt(ctx context.Context, n int) error {
	unread := f.cur.Known() && f.cur.Source == nil && !f.direct
	if n > 1 && !f.fresh || unread {
		if err := f.fetch(ctx); err != nil || len(f.open) == 0 {
			return err
		}
	}
	body, create, err := f.compose(ctx)
	if err != nil || len(f.open) == 0 {
		return err
	}
	return f.send(ctx, body, create)
}

// fetch reads the current revision, with the client's own credentials, and then judges the changes of which a try may have been
// applied.
func (f *flight) fetch(ctx context.Context) error {
	lead := f.open[0]
	f.s.events.Fetch(lead.req.Rule.Name)
	f.b.Forget()
	f.direct = false
	rev, err := f.s.engine.Fetch(ctx, lead.req.Caller, lead.doc)
	switch {
	case errors.Is(err, doc.ErrMissing):
		f.cur = doc.Revision{}
	case err != nil && f.anyLost():
		return errors.Join(ErrUnknownOutcome, err)
	case err != nil && f.refused != nil:
		// Nothing was written: the engine's conflict says so, and the client knows what to do about it.
		f.answerAll(func(*change) *Answer { return f.refused.clone() })
		return nil
	case err != nil:
		return err
	default:
		f.cur = rev
	}
	f.fresh = true
	f.judgeLost()
	return nil
}

// compose merges the open changes into the current revision. Changes that can't be merged get their answer here and leave. What is
// decided, rather than written under a guard, is decided on a fresh read.
func (f *flight) compose(ctx context.Context) (body []byte, create bool, err error) {
	for {
		body, create = f.cur.Source, !f.cur.Known()
		changed, decided := false, false
		left := f.open[:0:len(f.open)]
		outcomes := make([]mergeResult, len(f.open))
		for i, c := range f.open {
			r := f.s.apply(ctx, c, f, body, i == 0)
			outcomes[i] = r
			switch {
			case r.refusal != nil:
				decided = true
			case r.changed:
				changed = true
				body = r.doc
			}
		}
		if !f.fresh && (decided || !changed) {
			if err := f.fetch(ctx); err != nil || len(f.open) == 0 {
				return nil, false, err
			}
			continue
		}
		for i, c := range f.open {
			r := &outcomes[i]
			if r.refusal != nil {
				c.answer = r.refusal
				continue
			}
			c.outcome.Overwrote, c.outcome.More = r.overwrote, r.more
			if !changed {
				f.unchanged(c)
				continue
			}
			left = append(left, c)
		}
		f.open = left
		return body, create, nil
	}
}

// unchanged answers a change that the current revision already has: the engine's noop.
func (f *flight) unchanged(c *change) {
	c.outcome.Kind = Merged
	rev := f.cur
	told := rev.Numbers
	if !bytes.Equal(rev.Source, c.sent) {
		told = c.known(rev.Numbers)
	}
	c.base.Commit(session.Ack{Stored: rev, Sent: c.sent, Told: told})
	rev.Numbers = told
	c.answer = noop(f.s.shaped(c.doc), rev)
	c.answer.setETag(told)
}

// shaped is the document as the engine's answers name it.
func (s *Service) shaped(d es.Document) es.Document {
	if d.Type == "" && s.engine.Typed() {
		d.Type = "_doc"
	}
	return d
}

// known are the numbers that the client is told where the engine holds something else than it sent: those of its base. A client that
// had seen nothing gets those of the revision that its write was merged into; a later guard with either conflicts.
func (c *change) known(merged doc.Numbers) doc.Numbers {
	if c.base.Numbers.Known() {
		return c.base.Numbers
	}
	return merged
}

// send writes once under current's guard.
func (f *flight) send(ctx context.Context, body []byte, create bool) error {
	lead := f.open[0]
	for _, c := range f.open {
		c.outcome.Attempts++
		c.outcome.Kind = f.kind(c, body)
	}
	f.guard, f.fresh = f.cur.Numbers, false
	if create {
		f.guard = doc.Numbers{}
	}
	res, err := f.s.exchange(ctx, lead.request(body, f.cur.Numbers, create))
	switch {
	case err == nil:
		return f.answered(ctx, res, body)
	case errors.Is(err, upstream.ErrNotSent):
		return err
	}
	f.b.Forget()
	for _, c := range f.open {
		c.lost = true
	}
	if err := f.fetch(ctx); err != nil {
		return err
	}
	if len(f.open) == 0 {
		return nil
	}
	return doc.ErrConflict // what is left may be sent again: by the guard, or because twice is as good as once
}

func (f *flight) kind(c *change, body []byte) Kind {
	switch {
	case len(f.b.Members) > 1 && len(f.open) > 1:
		return Combined
	case bytes.Equal(body, c.sent) && (f.cur.Numbers == c.base.Numbers):
		return Guarded
	}
	return Merged
}

// exchange sends one request of ours and waits for its answer even when the client leaves: a write that is out has an outcome, and the
// client's next one is based on it.
func (s *Service) exchange(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	return s.up.Do(ctx, r)
}

// answered deals with the engine's answer to a guarded write.
func (f *flight) answered(ctx context.Context, res *upstream.Response, body []byte) error {
	lead := f.open[0]
	switch {
	case res.Status == 200 || res.Status == 201:
		f.acknowledge(res, body)
		return nil
	case res.Status == 409:
		return f.conflicted(ctx, res)
	case res.Status == 400 && len(f.open) > 1:
		// One bad field must not fail its neighbours: each goes alone.
		res.Release()
		f.b.Forget()
		f.split(ctx)
		return nil
	case res.Status == 400 && refusesSeqNo(res.Payload):
		res.Release()
		f.s.gates.foundNoSeqNo(lead.doc.Index)
		lead.err = f.s.pass(ctx, lead, ReasonSeqNo)
		f.open = nil
		return nil
	}
	f.b.Forget()
	f.answerFrom(res)
	return nil
}

// conflicted remembers the engine's conflict, and ends here for changes that are never merged.
func (f *flight) conflicted(ctx context.Context, res *upstream.Response) error {
	lead := f.open[0]
	f.s.events.Conflict(lead.req.Rule.Name)
	f.b.Forget()
	f.refused = copyOf(res)
	res.Release()
	if len(f.open) == 1 && !lead.lost {
		if reason := f.s.neverMerged(ctx, lead); reason != "" {
			if reason != reasonRule {
				lead.outcome.Reason = reason
			}
			lead.outcome.Kind = Guarded
			f.answerAll(func(*change) *Answer { return f.refused })
			return nil
		}
	}
	return doc.ErrConflict
}

// split gives every open change a flight of its own.
func (f *flight) split(ctx context.Context) {
	for _, c := range f.open {
		one := &flight{s: f.s, b: f.b, open: []*change{c}}
		one.do(ctx)
	}
	f.open = nil
}

// acknowledge gives every open change its answer: the write counts for all of them.
func (f *flight) acknowledge(res *upstream.Response, body []byte) {
	a, numbers := readAck(res.Payload)
	stored := a.Revision
	if numbers && !f.open[0].rewritten() {
		stored.Source = body
	}
	for i, c := range f.open {
		last := i == len(f.open)-1
		if last {
			c.answer = passOn(res)
		} else {
			c.answer = copyOf(res)
		}
		c.acknowledged(stored, a.created, bytes.Equal(body, c.sent), f.cur.Numbers)
		f.s.sessions.Wrote(c.doc.Index)
	}
	if stored.Source != nil && f.b.Waited() {
		stored.Source = bytes.Clone(body) // a client's buffer doesn't live longer than its request
		f.b.Wrote(f.open[0].scope(), stored)
	}
	f.open = nil
}

// acknowledged ends the change's reservation, and tells the client the numbers that are true for what it has seen.
func (c *change) acknowledged(stored doc.Revision, created, same bool, merged doc.Numbers) {
	told := stored.Numbers
	if !same {
		told = c.known(merged)
	}
	c.base.Commit(session.Ack{Stored: stored, Sent: c.sent, Told: told, Created: created})
	if !told.Known() {
		return
	}
	if !same {
		c.answer.tell(told)
	}
	c.answer.setETag(told)
}

// rewritten reports whether the engine may hold other bytes than were written.
func (c *change) rewritten() bool {
	return c.pipeline || c.index.Pipeline || c.index.Partial || c.metadata != ""
}

func (f *flight) answerAll(answer func(*change) *Answer) {
	for _, c := range f.open {
		c.answer = answer(c)
	}
	f.open = nil
}

// answerFrom gives the engine's answer to all open changes.
func (f *flight) answerFrom(res *upstream.Response) {
	for i, c := range f.open {
		if i == len(f.open)-1 {
			c.answer = passOn(res)
		} else {
			c.answer = copyOf(res)
		}
	}
	f.open = nil
}

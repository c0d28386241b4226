package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"optimist/internal/doc"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

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
	f.try = try{guard: f.guard, version: f.cur.Version, body: body, sent: time.Now()}
	res, err := f.s.exchange(ctx, lead.request(body, f.cur.Numbers, create))
	switch {
	case err == nil:
		return f.answered(ctx, res, body)
	case !errors.Is(err, ErrUnknownOutcome):
		return err
	}
	f.b.Forget()
	for _, c := range f.open {
		c.lost = true
	}
	if err := f.fetch(ctx); err != nil || len(f.open) == 0 {
		return err
	}
	return doc.ErrConflict // what is left may be sent again: by the guard, or because twice is as good as once
}

func (f *flight) kind(c *change, body []byte) Kind {
	switch {
	case len(f.b.Members) > 1 && len(f.open) > 1:
		return Combined
	case c.patch != nil && c.outcome.Attempts == 1, c.straightened:
		return Guarded
	case c.patch == nil && bytes.Equal(body, c.sent) && f.cur.Numbers == c.base.Numbers:
		return Guarded
	}
	return Merged
}

// exchange sends one request of ours and waits for its answer even when the client leaves: a write that is out has an outcome, and the
// client's next one is based on it. Errors are ErrUnknownOutcome, but where nothing was sent.
func (s *Service) exchange(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	r.Timeout = s.timeout
	res, err := s.up.Do(context.WithoutCancel(ctx), r)
	var failed *upstream.Error
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, upstream.ErrNotSent):
		return nil, err
	case errors.As(err, &failed) && failed.Class == upstream.Cancelled && !failed.Sent:
		return nil, fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// answered deals with the engine's answer to a guarded write.
func (f *flight) answered(ctx context.Context, res *upstream.Response, body []byte) error {
	lead := f.open[0]
	switch {
	case res.Status == 200 || res.Status == 201:
		f.acknowledge(ctx, res, body)
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
		f.s.catalog.RefusedGuard(lead.doc.Index)
		if lead.patch != nil {
			lead.err, f.open = errNoGuard, nil
			return nil
		}
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
	if lead.req.account == nil { // of a dry run nothing was sent, so that there is no try to conflict with
		f.try.conflicted(res)
	}
	res.Release()
	if len(f.open) == 1 && !lead.lost {
		if reason := f.s.neverMerged(ctx, lead); reason != "" && f.primaryStayed(ctx) {
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

// split gives every open change a flight of its own. Of those of which a try may have been applied the outcome stays unknown.
func (f *flight) split(ctx context.Context) {
	for _, c := range f.open {
		if c.lost {
			c.err = ErrUnknownOutcome
			continue
		}
		f.single(ctx, c)
	}
	f.open = nil
}

// acknowledge gives every open change its answer: the write counts for all of them.
func (f *flight) acknowledge(ctx context.Context, res *upstream.Response, body []byte) {
	a, numbers := readAck(res)
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
		if c.patch != nil {
			f.patched(ctx, c, stored, body)
		} else {
			c.acknowledged(stored, a.created, bytes.Equal(body, c.sent), f.cur.Numbers)
		}
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
	t := tag{Numbers: told}
	if !same {
		told = c.known(merged)
		t = c.tagFor(told)
	}
	c.base.Commit(session.Ack{Stored: stored, Sent: c.sent, Told: told, Copy: c.handed(t), Created: created})
	if !told.Known() {
		return
	}
	if !same {
		c.answer.tell(told)
	}
	c.answer.setETag(t)
}

// rewritten reports whether the engine may hold other bytes than were written. An index that the write makes may come with a pipeline, by
// a template.
func (c *change) rewritten() bool {
	return c.pipeline || c.index.Pipeline || c.index.Partial || c.index.Unknown != "" || c.index.UUID == ""
}

func (f *flight) answerAll(answer func(*change) *Answer) {
	for _, c := range f.open {
		c.answer = answer(c)
	}
	f.open = nil
}

// answerFrom gives the engine's answer, which is neither an acknowledgement nor a conflict, to all open changes. It says nothing of a try
// before it that may have been applied.
func (f *flight) answerFrom(res *upstream.Response) {
	defer func() { f.open = nil }()
	if len(f.open) == 1 && !f.open[0].lost {
		f.open[0].answered(passOn(res))
		return
	}
	for _, c := range f.open {
		if c.lost {
			c.err = fmt.Errorf("%w; a later try was answered with %d", ErrUnknownOutcome, res.Status)
			continue
		}
		c.answered(copyOf(res))
	}
	res.Release()
}

// answered takes an answer of the engine that acknowledges nothing. One above 499 may come after the primary has written, or from a
// balancer that lost the engine's.
func (c *change) answered(a *Answer) {
	c.answer = a
	if a.Status >= 500 {
		c.outcome.Kind = Unknown
	}
}

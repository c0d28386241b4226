package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/session"
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
	guess  bool         // cur is what the lane's last write left
	guard  doc.Numbers  // the guard of the last write; zero for a create
	try    try          // the last write, for as long as it isn't judged
	doubt  try          // writes that were answered with a conflict, and may have been applied all the same

	refused *Answer   // the engine's last 409, for when trying ends
	alone   []*change // could not go with the others: each goes by itself, after them
}

// run leads a batch from its first attempt to its answers.
func (s *Service) run(ctx context.Context, b *retry.Batch[*change]) {
	if len(b.Members) > 1 {
		s.events.Batch(len(b.Members))
		var cancel context.CancelFunc
		ctx, cancel = stays(ctx)
		defer cancel()
	}
	f := &b.Members[0].flight
	*f = flight{s: s, b: b, open: b.Members}
	f.do(ctx)
}

func (f *flight) do(ctx context.Context) {
	lead := f.open[0]
	f.start(lead)
	err := retry.Do(ctx, lead.policy(), f.attempt)
	f.settleDoubt(ctx)
	for _, c := range f.open {
		c.answer, c.err = f.last(c, err)
	}
	for _, c := range f.alone {
		f.single(ctx, c)
	}
}

// stays is ctx without its client: the leader's may leave, and the others' changes are still to be written. The time that the client
// gives stays, because who shares a write gives the same.
func stays(ctx context.Context) (context.Context, context.CancelFunc) {
	stay := context.WithoutCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		return context.WithDeadlineCause(stay, end, ErrTimeout)
	}
	return stay, func() {}
}

// single gives a change of the batch a flight of its own.
func (f *flight) single(ctx context.Context, c *change) {
	f.b.Forget() // what it couldn't go with is no place to start from
	one := &flight{s: f.s, b: f.b, open: []*change{c}, doubt: f.doubt}
	one.do(ctx)
}

// policy is the rule's, within what is left of the client's own time.
func (c *change) policy() retry.Policy {
	r := &c.req.Rule.Retry
	p := retry.Policy{
		MaxAttempts: r.MaxAttempts, MaxElapsed: r.MaxElapsed,
		BaseInterval: r.BaseInterval, MaxInterval: r.MaxInterval,
	}
	if c.patch != nil && c.patch.retries >= 0 {
		p.MaxAttempts = c.patch.retries + 1
	}
	if !c.deadline.IsZero() {
		left := max(time.Until(c.deadline), 1)
		if p.MaxElapsed == 0 || left < p.MaxElapsed {
			p.MaxElapsed = left
		}
	}
	return p
}

// last is what a change gets that is still open when trying ends: the engine's own conflict, if that is the last that was heard.
func (f *flight) last(c *change, err error) (*Answer, error) {
	switch {
	case c.lost && !errors.Is(err, ErrUnknownOutcome):
		return nil, fmt.Errorf("%w; then: %w", ErrUnknownOutcome, err)
	case err == nil:
		return nil, errors.New("the attempt ended without an answer")
	case f.refused != nil && (errors.Is(err, doc.ErrConflict) || errors.Is(err, ErrTimeout)):
		return f.refused.clone(), nil
	}
	return nil, err
}

// start chooses the revision that the first attempt merges into.
func (f *flight) start(lead *change) {
	if rev, ok := f.b.Guess(lead.scope()); ok && lead.ready {
		f.cur, f.guess = rev, true
		return
	}
	f.startFromBase(lead)
}

func (f *flight) startFromBase(lead *change) {
	f.cur, f.guess = lead.revision(), false
	f.direct = len(f.open) == 1 && lead.patch == nil && lead.straight() && !lead.blind(f.cur)
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
		// The engine may hold other bytes (a pipeline): where nothing is merged, the numbers are guard enough. So they are of what the
		// client itself wrote, and of which nothing else is known.
		return c.base.View == nil && !c.base.Apart || c.staticReason() != ""
	}
	return bytes.Equal(c.base.View, c.base.Stored)
}

// attempt is one turn of the loop. It returns doc.ErrConflict to be called again.
func (f *flight) attempt(ctx context.Context, n int) error {
	if !f.fresh && (n > 1 || f.unread()) {
		if err := f.fetch(ctx); err != nil || len(f.open) == 0 {
			return err
		}
	}
	body, create, err := f.compose(ctx)
	switch {
	case err != nil || len(f.open) == 0:
		return err
	case (n > 1 || f.fresh) && ctx.Err() != nil:
		return context.Cause(ctx) // what isn't sent by the time that the client leaves never is
	}
	return f.send(ctx, body, create)
}

// unread reports whether there is nothing yet that the changes could be merged into.
func (f *flight) unread() bool {
	if f.direct || f.guess {
		return false
	}
	return f.open[0].patch != nil || f.cur.Known() && f.cur.Source == nil
}

// fetch reads the current revision, with the client's own credentials, and then judges the changes of which a try may have been
// applied.
func (f *flight) fetch(ctx context.Context) error {
	lead := f.open[0]
	f.s.events.Fetch(lead.req.Rule.Name)
	f.b.Forget()
	f.direct = false
	if f.anyLost() {
		ctx = context.WithoutCancel(ctx) // what became of a write is worth knowing though its client left: the next one builds on it
	}
	rev, err := f.s.current(ctx, lead)
	switch {
	case errors.Is(err, doc.ErrMissing):
		f.cur = doc.Revision{}
	case err != nil && mayAskAgain(err):
		return fmt.Errorf("%w: %w", doc.ErrConflict, err)
	case err != nil && f.anyLost():
		return fmt.Errorf("%w; then: %w", ErrUnknownOutcome, err)
	case err != nil && f.refused != nil && !f.primaryStayed(ctx):
		return fmt.Errorf("%w; then: %w", ErrUnknownOutcome, err)
	case err != nil && f.refused != nil:
		// Nothing was written: the engine's conflict says so, and the client knows what to do about it.
		f.answerAll(func(*change) *Answer { return f.refused.clone() })
		return nil
	case err != nil:
		return err
	default:
		f.cur = rev
		f.learn(ctx)
	}
	if f.fresh = true; len(f.open) > 0 {
		f.judgeLost(ctx)
	}
	return nil
}

// learn asks what the index is of changes that were here before it. Whoever made it may have given it a pipeline, or a _source that isn't
// kept whole, so that they can't be merged into a document of it, nor patches be applied. What can't be told counts as that.
func (f *flight) learn(ctx context.Context) {
	left := f.open[:0:len(f.open)]
	for _, c := range f.open {
		if c.index.UUID != "" || c.index.Unknown != "" {
			left = append(left, c)
			continue
		}
		var err error
		if c.index, err = f.s.catalog.Describe(ctx, c.req.asker(), c.name, 0); err != nil {
			c.index.Unknown = ReasonMetadata
		}
		if c.patch != nil && !c.lost && f.s.barred(c) {
			continue
		}
		left = append(left, c)
	}
	f.open = left
}

// compose merges the open changes into the current revision. What is decided, rather than written under a guard, is decided on a fresh
// read, and by the document as it is, not as others' changes may make it: a change that can't go with its neighbours, who may be
// refused themselves, goes alone after them.
func (f *flight) compose(ctx context.Context) (body []byte, create bool, err error) {
	for {
		if !f.cur.Known() && len(f.open) > 1 {
			// Creates share no write: there are no numbers that could tell the others that they haven't seen all of it.
			f.split(ctx)
			return nil, false, nil
		}
		outcomes, body, changed := f.mergeAll(ctx)
		if len(f.open) == 0 {
			return nil, false, nil
		}
		decided := len(f.open) == 1 && outcomes[0].refusal != nil
		if decided && f.fresh {
			f.settleDoubt(ctx)
		}
		if decided && outcomes[0].broken && f.guess && !f.fresh {
			f.startFromBase(f.open[0]) // the engine is to say what is wrong with it
			continue
		}
		if !f.fresh && (decided || !changed) {
			if err := f.fetch(ctx); err != nil || len(f.open) == 0 {
				return nil, false, err
			}
			continue
		}
		f.settle(ctx, outcomes, changed)
		return body, !f.cur.Known(), nil
	}
}

// mergeAll merges what can be merged, each change into what those before it have made of the current revision.
func (f *flight) mergeAll(ctx context.Context) (outcomes []mergeResult, body []byte, changed bool) {
	body = f.cur.Source
	outcomes = make([]mergeResult, 0, len(f.open))
	left := make([]*change, 0, len(f.open))
	for _, c := range f.open {
		r := f.s.apply(ctx, c, f, body, len(left) == 0)
		if r.refusal != nil && len(f.open) > 1 {
			c.outcome.Reason = ""
			f.alone = append(f.alone, c)
			continue
		}
		if r.refusal == nil && r.changed {
			changed, body = true, r.doc
		}
		left, outcomes = append(left, c), append(outcomes, r)
	}
	f.open = left
	return outcomes, body, changed
}

// settle answers the changes that are decided; those that are to be written stay open.
func (f *flight) settle(ctx context.Context, outcomes []mergeResult, changed bool) {
	left := f.open[:0:len(f.open)]
	for i, c := range f.open {
		r := &outcomes[i]
		if r.refusal != nil && c.lost {
			c.err = ErrUnknownOutcome // the refusal is of another try than the one that may have been applied
			continue
		}
		if r.refusal != nil {
			if c.answer = r.refusal; c.outcome.Attempts == 0 {
				c.outcome.Kind = Guarded
			}
			if r.missing {
				c.answer = f.s.missing(ctx, c, r.refusal)
			}
			continue
		}
		c.outcome.Overwrote, c.outcome.More = r.overwrote, r.more
		if !changed {
			f.unchanged(ctx, c)
			continue
		}
		left = append(left, c)
	}
	f.open = left
}

// unchanged answers a change that the current revision already has: the engine's noop.
func (f *flight) unchanged(ctx context.Context, c *change) {
	if c.patch != nil {
		f.unpatched(ctx, c, f.cur)
		return
	}
	c.outcome.Kind = Merged
	rev := f.cur
	told := rev.Numbers
	t := tag{Numbers: told}
	if !bytes.Equal(rev.Source, c.sent) {
		told = c.known(rev.Numbers)
		t = c.tagFor(told)
	}
	c.base.Commit(session.Ack{Stored: rev, Sent: c.sent, Told: told, Copy: c.handed(t)})
	if c.answer = f.s.rendered(ctx, c, rev.Numbers); c.answer != nil {
		c.answer.tell(told)
	} else {
		rev.Numbers = told
		c.answer = noop(f.s.shaped(c.doc), rev)
	}
	c.answer.setETag(t)
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

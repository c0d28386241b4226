package session

import (
	"bytes"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// reserve makes the base that the decision d names, and takes it out of the entry. A dry run takes nothing out.
func (t *selection) reserve(e *viewcache.Entry, d choice.Decision, b *Base) {
	if d.Action == choice.TakeNothing {
		t.reserveNothing(e, b)
		return
	}
	b.Ambiguous = d.Ambiguous || t.maybeEarlier || !d.Doubtful && t.after == nil && t.mayBeAnothers(e, d)
	b.Guessed = t.isGuess(e, d)
	c := &b.claim
	t.claim(e, d, c)
	if !c.Numbers.Known() && c.took != choice.TakeSent {
		c.kind = KindAbsent
	}
	t.fillBase(b)
	if d.Action == choice.TakeView && t.Explicit.Known() && !d.Doubtful {
		b.Use, b.StoredDiffers = c.use(false, false), c.Difference && c.Answer.Known()
	}
	if t.isUnclear(c) && t.seemsOlder(e, c) { // also if the outcome of a write before is unknown
		b.Numbers = e.Since.Older
	}
	if !t.s.dryRun {
		t.takeFrom(e, d, b)
	}
}

// seemsOlder reports whether the write seems to be made from an older revision than the base of c: a search has shown the client that older
// revision later.
func (t *selection) seemsOlder(e *viewcache.Entry, c *claim) bool {
	if t.Sent == nil || e == nil || e.Since == nil || e.Since.Newer != c.Numbers {
		return false
	}
	sent := t.Sent
	if t.On != nil {
		if c.sent == nil {
			return false
		}
		var err error
		if sent, err = t.On(c.sent); err != nil {
			return false
		}
	}
	return e.Since.IsUndoneBy(sent)
}

// isGuess reports whether the base is a guess. It is a guess if the session is inferred, and neither numbers nor a trace name one of its
// reads. It is also a guess if the engine has refused a write, the client has then found an older revision than it had written, and may now
// send its own earlier change once more.
func (t *selection) isGuess(e *viewcache.Entry, d choice.Decision) bool {
	switch {
	case d.Action == choice.TakeRead && t.Named && !t.Explicit.Known():
		return viewcache.Newer(e.View.Numbers, e.Reads[d.Read].Numbers)
	case t.Explicit.Known():
		return t.MayBeOfAnswer()
	case t.Named || t.after != nil:
		return false
	case !t.traceTells || d.Action != choice.TakeRead:
		return true
	}
	chosen := viewcache.TracedRead{Trace: t.sess.Trace(), Numbers: e.Reads[d.Read].Numbers}
	another := func(r viewcache.TracedRead) bool { return r.Trace == chosen.Trace && r != chosen }
	return !slices.Contains(e.Traced, chosen) || slices.ContainsFunc(e.Traced, another)
}

// mayBeAnothers reports whether the base may belong to another client. It may if this write, or an earlier one, is perhaps a repeat: a
// repeat that optimist doesn't recognise takes another client's base. It may if a client has perhaps written a part from this read already.
// And it may if answers have shown clients documents that optimist hasn't noted: the write may be made from one of these.
func (t *selection) mayBeAnothers(e *viewcache.Entry, d choice.Decision) bool {
	switch d.Action {
	case choice.TakeRead:
		r := &e.Reads[d.Read]
		return t.mayRepeat || t.guesses() && (r.Spent && !t.Part || e.Repeats.Missed.Or(r.Order))
	case choice.TakeView:
		return t.guesses() && (e.Repeats.Missed != repeat.Missed{} || t.wasShown())
	}
	return false
}

// claim fills in the claim of the base that d names.
func (t *selection) claim(e *viewcache.Entry, d choice.Decision, c *claim) {
	c.took = d.Action
	switch d.Action {
	case choice.TakeRead:
		r := &e.Reads[d.Read]
		c.kind, c.Sight, c.sent, c.stored = KindRead, r.Sight, r.Body.Bytes(), r.Body.Bytes()
	case choice.TakeView:
		if t.after != nil {
			t.after.claim(e, c)
			return
		}
		c.kind = KindView
		c.View, c.sent, c.stored = e.View, e.View.SentBody.Bytes(), e.View.StoredBody.Bytes()
	case choice.TakePast:
		p := &e.Past[d.Read]
		c.kind = KindRead
		if p.Written {
			c.kind = KindView
		}
		c.View, c.sent, c.stored = p.View, p.SentBody.Bytes(), p.StoredBody.Bytes()
	case choice.TakeSent: // the view is the sent document: no change counts twice; the caller reads the stored one
		c.kind, c.sent, c.sentPart = KindView, bytes.Clone(t.Sent), t.Part
		c.Numbers = t.lastSent(e)
	case choice.TakeExplicit:
		c.kind, c.Numbers = KindExplicit, t.Explicit
		c.sent = t.bodyOfExplicit(e)
		c.stored = c.sent
	}
}

// takeFrom takes the base out of the entry, and counts the write as in flight.
func (t *selection) takeFrom(e *viewcache.Entry, d choice.Decision, b *Base) {
	c := &b.claim
	c.key, c.ambiguous = t.ownKey(e), b.Ambiguous
	if c.outcomeUnknown = d.Doubtful; c.outcomeUnknown {
		e.Repeats.Drop(t.inDoubt)
	}
	if t.first != nil && !d.Doubtful { // a write has only one repeat
		t.attempt.Unfollow()
		c.first = t.first
		t.first.RepeatCame()
	}
	switch d.Action {
	case choice.TakeRead:
		r := &e.Reads[d.Read]
		if t.mayRepeat && !d.Doubtful {
			e.Repeats.Missed = repeat.Missed{Read: r.Order, Till: t.sh.Order}
		}
		c.trace, c.spent = e.Untrace(t.sess.Trace(), r.Numbers, int(r.Count)), r.Spent
		c.program = r.Take(t.sess.Program())
		if r.Count--; r.Count == 0 {
			t.sh.RetireRead(e, d.Read)
		}
	case choice.TakeView:
		if t.after == nil && t.guesses() && !d.Doubtful {
			e.Repeats.Missed = repeat.Missed{}
		}
		if c.took == choice.TakeView {
			t.sh.RetireView(e)
		}
	}
	t.sh.startPending(c)
	c.entry = e
	if e != nil {
		t.sh.Settled(e) // the history has grown, and the ranking may have made digests
	}
}

// reserveNothing makes the base of a write for which the session has none: KindLost if it has had one, else KindNone.
func (t *selection) reserveNothing(e *viewcache.Entry, b *Base) {
	c, leavesBase := &b.claim, t.Named
	if why := t.sh.Lost(t.k, e); why != ReasonNone {
		b.Kind, b.Reason, leavesBase = KindLost, why, true
	} else if t.now < t.s.sure.Load() && !t.k.Session.IsImplicit() { // the client may have read before the start; a copy can't be from before
		b.Kind, b.Reason = KindLost, ReasonRestart
	} else if t.Named && !t.k.Session.IsImplicit() && t.wasShown() {
		b.Kind, b.Reason = KindLost, ReasonUnwatched
	}
	c.kind, c.blind = b.Kind, b.Kind == KindNone && !t.Named
	if !t.k.Session.IsImplicit() {
		t.count(b.Kind)
	}
	if leavesBase && !t.s.dryRun {
		c.key.Ref = t.k.Ref.Clone()
		t.sh.startPending(c)
	}
}

// fillBase fills in the base's exported fields from its claim.
func (t *selection) fillBase(b *Base) {
	c := &b.claim
	b.Kind, b.Numbers, b.AnswerNumbers, b.Version, b.View, b.Stored = c.kind, c.Numbers, c.Answer, c.Version, c.sent, c.stored
	b.Use, b.StoredDiffers = c.use(t.isUnclear(c), t.hasChangedSince(c.At)), c.Difference
	if b.Moved = viewcache.IsCarried(c.Numbers); b.Moved {
		b.Numbers, b.Stored, b.StoredDiffers = doc.Numbers{}, nil, false
	}
	t.count(b.Kind)
}

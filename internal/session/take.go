package session

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/life"
	"optimist/internal/rank"
	"optimist/internal/repeat"
	"optimist/internal/seen"
)

// Take chooses the base of a write of sent (nil for a delete) and reserves it.
//
// If writes of the session in flight have reserved all bases, Take waits for them. So a client that repeats a write after a time-out
// gets the base that its first try has left. A repeat in an inferred session waits for its first try even if reads of other clients
// could be its base. The error is the cause of ctx's end, or context.Canceled for a client that has left. With a ctx that has ended,
// Take never waits.
//
// A caller that holds one base must not wait for another: two callers that do so in opposite order would wait for each other.
func (s *Store) Take(ctx context.Context, sess Session, ref doc.Ref, sent []byte) (Base, error) {
	t := s.taking(sess, ref, sent)
	if sess.InTrace() {
		return t.takeInTrace(ctx, sess)
	}
	return t.take(ctx)
}

// TakeAt reserves the base whose numbers the client names by its own guard. If the session has read that revision, the read is the
// base. If the session doesn't know it, the base is KindGiven; it has a body if another session with the same credentials holds it.
// TakeAt never waits.
//
// The numbers may also be those in the answer to the session's last write. In a named session the base is the view then, with the
// numbers of what was stored. In an inferred session another client may have read the revision of these numbers, and nobody can tell
// which of the two writes: the base is KindGiven without a body.
func (s *Store) TakeAt(sess Session, ref doc.Ref, n doc.Numbers, sent []byte) Base {
	t := s.taking(sess, ref, sent)
	t.Given = n
	b, _ := t.try()
	return b
}

// taking is one call of Take, TakeAt or TakeCopy.
type taking struct {
	s  *Store
	sh *shard
	ix *life.Index[Session]
	k  seen.Key
	choice.Request
	trace      Trace
	inTrace    bool    // a read of the trace is outstanding
	traced     bool    // inTrace, and traces tell pieces of work apart: the contents of earlier writes haven't shown that they mislead
	thread     Session // the thread of work that the client names, if threaded
	threaded   bool
	soleHolder bool // no other client holds the copy that has the given numbers

	patterns *rank.Patterns // of what clients of the session have changed before; nil: not known

	client  context.Context // of the request; nil: the call never waits
	attempt *repeat.Attempt // nil: nobody looks for repeats of the write, and it hasn't waited
	looked  bool            // it has looked for a base before
	now     int64

	extends seenBody // a revision that the write holds all of, if its base may be a memo; zero: none

	first, inDoubt *repeat.Attempt // the write that it certainly repeats; one of the same bytes whose outcome is unknown; nil: none
	mayRepeat      bool            // the base is a guess, and the session sends the same bytes, or has sent them
}

func (s *Store) taking(sess Session, ref doc.Ref, sent []byte) taking {
	k := seen.KeyOf(sess, ref)
	t := taking{s: s, sh: s.shard(k), k: k, trace: sess.Trace(), Request: choice.Request{Sent: sent, On: s.on, Named: sess.IsNamed()}}
	t.thread, t.threaded = sess.Thread()
	return t
}

// take does what Take says, for a write that is in no trace.
func (t *taking) take(ctx context.Context) (Base, error) {
	if ctx.Err() == nil { // a ctx that has ended only says that Take must not wait
		t.client = ctx
	}
	b, wait := t.try()
	if wait == nil {
		return b, nil
	}
	t.s.waited.Add(1)
	defer t.leave()
	for {
		select {
		case <-wait:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return Base{}, context.Cause(ctx)
		}
		if t.s.o.Left(ctx) {
			return Base{}, context.Canceled
		}
		if b, wait = t.try(); wait == nil {
			return b, nil
		}
	}
}

// leave ends the wait. If a claim was handed over to the write, and the write hasn't taken it, it is given back.
func (t *taking) leave() {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	now := t.s.clock()
	t.attempt.Disown(now)
	if c := t.sh.takeInheritance(t.attempt); c != nil {
		t.sh.release(c, t.ix.Gone(), now)
	}
	t.sh.inFlight.Leave(t.k, t.attempt)
}

// try returns a base, or a channel to wait for.
func (t *taking) try() (b Base, wait <-chan struct{}) {
	t.now = t.s.clock()
	b.claim = claim{store: t.s, key: t.k, since: t.s.Epoch()}
	t.ix = t.s.index(t.k.Ref.Index, t.k.Session.Credentials(), t.now)
	// In a named session the session's own view tells repeats. A write under the client's own guard never waits, and has no repeats.
	if t.attempt == nil && t.Sent != nil && !t.Named && (!t.Given.Known() || t.client != nil) {
		hash := repeat.Hash(t.s.seed, t.Sent, t.On != nil, t.Given)
		if t.traced { // equal bytes are an equal change in another trace
			hash = (hash ^ maphash.Comparable(t.s.seed, t.trace)) | 1
		}
		t.attempt = repeat.New(hash, t.sh.left)
	}
	if t.attempt.IsLookedFor() {
		b.claim.attempt = t.attempt
	}
	candidates, wait := t.takeOrWait(&b)
	for candidates != nil && !t.rank(candidates, &b) { // until nobody else has reserved the likeliest while it was looked for
		candidates, wait = t.takeOrWait(&b)
	}
	if t.s.dryRun {
		b.end()
	}
	return b, wait
}

// takeOrWait takes the base. If it can't yet, it returns a channel to wait for, or the candidates that have to be ranked, oldest first.
func (t *taking) takeOrWait(b *Base) (cs []*candidate, wait <-chan struct{}) {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	e, f := t.sh.Get(t.k, t.ix.Gone(), t.now), t.sh.inFlight.Of(t.k)
	b.claim.taken = t.sh.Order
	if !t.Given.Known() && !t.Named && !t.traced && t.ix.IsBlind(t.k.Session, t.now) {
		b.Reason = ReasonBlind // it stays blind for as long as it writes what it hasn't read
		b.claim.blind = (e == nil || e.Empty()) && !f.Any() && t.sh.Lost(t.k, e) == ReasonNone
		t.count(KindNone)
		return nil, nil
	}
	if inherited, wait := t.followFirst(f, b); inherited || wait != nil {
		return nil, wait
	}
	if e == nil && t.sh.Noted(&t.k, t.now) {
		e = t.sh.Put(t.k, t.ix.Gone(), b.claim.since, t.now)
	}
	k := t.known(e, f)
	if t.takesMemo(e, f) {
		t.reserveMemo(e, b)
		return nil, nil
	}
	if t.extends.Numbers.Known() {
		t.reserveExtended(e, b)
		return nil, nil
	}
	d := choice.Choose(&k, &t.Request)
	switch d.Action {
	case choice.WaitForBase:
		if t.attempt == nil {
			t.attempt = repeat.Waiting(t.Before)
		}
		return nil, f.Wait(t.attempt)
	case choice.RankAll:
		return t.candidates(e, e.Reads[:d.Read]), nil
	}
	t.reserve(e, d, b)
	return nil, nil
}

// followFirst is for a write that repeats another. It takes the base that the first try has given back, or returns a channel to wait
// for the end of the first try.
func (t *taking) followFirst(f *repeat.Flight, b *Base) (inherited bool, wait <-chan struct{}) {
	a := t.attempt
	if !t.looked {
		t.looked, t.Before = true, t.sh.Order
		if a != nil {
			a.Begin(t.client, t.now, t.Before)
		}
	}
	if a == nil || t.s.dryRun {
		return false, nil
	}
	if c := t.sh.takeInheritance(a); c != nil {
		if gone := t.ix.Gone(); c.since < gone || t.now-c.At >= int64(t.s.o.MaxAge) {
			t.sh.release(c, gone, t.now) // it is too old to be a base
		} else {
			b.claim, b.Ambiguous, b.Guessed = *c, c.guessed, true
			t.fillBase(b)
			return true, nil
		}
	}
	wait = a.Follow(f, t.now)
	t.Before = a.Before()
	return false, wait
}

// reserve makes the base that d says, and takes it out of the entry. A dry run takes nothing out.
func (t *taking) reserve(e *seen.Entry, d choice.Decision, b *Base) {
	if d.Action == choice.TakeNothing {
		t.reserveNothing(e, b)
		return
	}
	b.Ambiguous = d.Ambiguous || !d.Doubtful && t.mayBeAnothers(e, d)
	b.Guessed = t.isGuess(e, d)
	c := &b.claim
	t.claim(e, d, c)
	if !c.Numbers.Known() && !c.again {
		c.kind = KindAbsent
	}
	t.fillBase(b)
	if d.Action == choice.TakeView && t.Given.Known() && !d.Doubtful {
		b.Doubtful = c.Doubt // the client names it, and so means it, whatever else it was shown
		b.StoredDiffers = c.Difference && c.Answer.Known()
	}
	if !t.s.dryRun {
		t.takeFrom(e, d, b)
	}
}

// isGuess reports whether the base is a guess. It is one if the session is inferred, and neither numbers nor a trace name one of its
// reads.
func (t *taking) isGuess(e *seen.Entry, d choice.Decision) bool {
	switch {
	case t.Named || t.Given.Known():
		return false
	case !t.traced || d.Action != choice.TakeRead:
		return true
	}
	chosen := seen.TracedRead{Trace: t.trace, Numbers: e.Reads[d.Read].Numbers}
	another := func(r seen.TracedRead) bool { return r.Trace == chosen.Trace && r != chosen }
	return !slices.Contains(e.Traced, chosen) || slices.ContainsFunc(e.Traced, another)
}

// mayBeAnothers reports whether another client may need the base: this write, or an earlier one, may be a repeat, and may have taken
// the base of another write.
func (t *taking) mayBeAnothers(e *seen.Entry, d choice.Decision) bool {
	switch d.Action {
	case choice.TakeRead:
		return t.mayRepeat || t.guesses() && e.Repeats.Missed.Or(e.Reads[d.Read].Order)
	case choice.TakeView:
		return t.guesses() && e.Repeats.Missed != repeat.Missed{}
	}
	return false
}

// claim fills in the claim of the base that d says.
func (t *taking) claim(e *seen.Entry, d choice.Decision, c *claim) {
	switch d.Action {
	case choice.TakeRead:
		r := &e.Reads[d.Read]
		c.kind, c.Sight, c.sent, c.stored = KindRead, r.Sight, r.Body.Bytes(), r.Body.Bytes()
	case choice.TakeView:
		c.kind, c.viewed = KindView, true
		c.View, c.sent, c.stored = e.View, e.View.SentBody.Bytes(), e.View.StoredBody.Bytes()
	case choice.TakePast:
		p := &e.Past[d.Read]
		if c.kind, c.past = KindRead, true; p.Written {
			c.kind = KindView
		}
		c.View, c.sent, c.stored = p.View, p.SentBody.Bytes(), p.StoredBody.Bytes()
	case choice.TakeSent: // the view is what the write sends, so that nothing of it counts twice; the caller reads what the engine holds
		c.kind, c.sent, c.again, c.part = KindView, bytes.Clone(t.Sent), true, t.On != nil
		c.Numbers = t.lastSent(e)
	case choice.TakeGiven:
		c.kind, c.Numbers = KindGiven, t.Given
		c.sent = t.bodyOfGiven(e)
		c.stored = c.sent
	}
}

// takeFrom takes the base out of the entry, and counts the write as in flight.
func (t *taking) takeFrom(e *seen.Entry, d choice.Decision, b *Base) {
	c := &b.claim
	c.key, c.kept, c.guessed = t.ownKey(e), true, b.Ambiguous
	if c.doubted = d.Doubtful; c.doubted {
		e.Repeats.Drop(t.inDoubt)
	}
	if t.first != nil && !d.Doubtful { // a write has only one repeat
		t.attempt.Inherit()
		c.first = t.first
		t.first.Repeated()
	}
	switch d.Action {
	case choice.TakeRead:
		r := &e.Reads[d.Read]
		if t.mayRepeat && !d.Doubtful {
			e.Repeats.Missed = repeat.Missed{Read: r.Order, Till: t.sh.Order}
		}
		c.trace = e.Untrace(t.trace, r.Numbers, r.Count)
		if r.Count--; r.Count == 0 {
			t.sh.RetireRead(e, d.Read)
		}
	case choice.TakeView:
		if t.guesses() && !d.Doubtful {
			e.Repeats.Missed = repeat.Missed{}
		}
		t.sh.RetireView(e)
	}
	t.sh.depart(c)
	if e != nil {
		t.sh.Settled(e) // the history has grown, and perhaps there are new digests
	}
}

// reserveNothing makes the base of a write of which nothing is known: KindLost if something was known, else KindNone.
func (t *taking) reserveNothing(e *seen.Entry, b *Base) {
	c := &b.claim
	c.kept = t.Named
	if why := t.sh.Lost(t.k, e); why != ReasonNone {
		b.Kind, b.Reason, c.kept = KindLost, why, true
	} else if t.now < t.s.sure.Load() && !t.k.Session.IsOfHolder() { // it may have read before the start; a copy was served after that
		b.Kind, b.Reason = KindLost, ReasonRestart
	}
	c.kind, c.blind = b.Kind, b.Kind == KindNone && !t.Named
	if !t.k.Session.IsOfHolder() {
		t.count(b.Kind)
	}
	if c.kept && !t.s.dryRun {
		c.key.Ref = t.k.Ref.Clone()
		t.sh.depart(c)
	}
}

// fillBase fills in the base's exported fields from its claim.
func (t *taking) fillBase(b *Base) {
	c := &b.claim
	b.Kind, b.Numbers, b.AnswerNumbers, b.Version, b.View, b.Stored = c.kind, c.Numbers, c.Answer, c.Version, c.sent, c.stored
	b.Doubtful, b.StoredDiffers = c.Doubt || c.Contradiction || t.hasChangedSince(c.At), c.Difference
	t.count(b.Kind)
}

// hasChangedSince reports whether the client has changed documents after a moment, and optimist doesn't know which ones.
func (t *taking) hasChangedSince(moment int64) bool {
	return t.threaded && t.s.changers.Since(t.thread, moment)
}

func (t *taking) count(k Kind) {
	if !t.s.dryRun {
		t.sh.taken[k]++
	}
}

// guesses reports whether the write's base has to be guessed from what the session has seen: the client doesn't name it.
func (t *taking) guesses() bool {
	return t.attempt.IsLookedFor() && !t.Given.Known() && !t.traced
}

// ownKey is the key with strings that belong to the store.
func (t *taking) ownKey(e *seen.Entry) seen.Key {
	k := t.k
	if d := t.sh.DocumentOf(k, e, t.ix.Gone()); d != nil {
		k.Ref = d.Key.Ref
	} else {
		k.Ref = k.Ref.Clone()
	}
	return k
}

// lastSent is the numbers of the revision that the last write of the same bytes left.
func (t *taking) lastSent(e *seen.Entry) doc.Numbers {
	if e == nil {
		return t.first.Numbers()
	}
	return e.Repeats.Last(t.attempt, t.first)
}

// bodyOfGiven is the body that some session has read under the given numbers. It is nil if the numbers are ambiguous: they may name that
// revision, or a view whose write was answered with them. A guard alone is right for both. It is nil, too, if a named session has written
// from the revision before: what the session sent then may be in what it sends now, and would count twice.
func (t *taking) bodyOfGiven(e *seen.Entry) []byte {
	if !t.soleHolder && (t.OfAnswer || t.Spent || e != nil && answerNamesStored(&e.View, t.Given)) {
		return nil
	}
	return t.sh.DocumentOf(t.k, e, t.ix.Gone()).Find(t.Given).Bytes()
}

// answerNamesStored reports whether the answer to the view's write named n, although the revision of n isn't what was sent. The
// answer to a PATCH does.
func answerNamesStored(v *seen.View, n doc.Numbers) bool {
	return v.Difference && v.Numbers == n && (!v.Answer.Known() || v.Answer == n)
}

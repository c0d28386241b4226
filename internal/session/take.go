package session

import (
	"context"
	"hash/maphash"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// Take chooses the base of a write that sends the body sent (nil for a delete), and reserves the base.
//
// If writes of the session that are in flight have reserved all bases, Take waits for them. So a client that repeats a write after a
// time-out gets the base that its first try has left. In an inferred session, a repeat waits for its first try even if it could take reads
// of other clients. The error is the cause of ctx's end, or context.Canceled if the client has left. If ctx has ended already, Take never
// waits.
//
// A caller that holds one base must not wait for another: two callers that do so in opposite order would wait for each other.
func (s *Store) Take(ctx context.Context, sess Session, ref doc.Ref, sent []byte) (Base, error) {
	t := s.selection(sess, ref, sent)
	if sess.InTrace() {
		return t.takeInTrace(ctx)
	}
	return t.take(ctx)
}

// TakeNow is Take, but never waits: ok is false where Take would.
func (s *Store) TakeNow(sess Session, ref doc.Ref, sent []byte) (b Base, ok bool) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	b, err := s.Take(now, sess, ref, sent)
	return b, err == nil
}

// TakeAt reserves the base whose numbers the client names by its own guard. If the session has read that revision, the read is the base. If
// not, the base is KindExplicit. It has a body if another session with the same credentials knows the revision. TakeAt never waits.
//
// The client may also have the numbers from the answer to the session's last write. In a named session the base is then the view, with the
// numbers of the stored revision. In an inferred session another client may have read the revision of these numbers, and optimist can't
// tell which of the two clients writes. If such a read is outstanding, it is the base, and ambiguous. Otherwise the base is KindExplicit
// without a body.
func (s *Store) TakeAt(sess Session, ref doc.Ref, n doc.Numbers, sent []byte) Base {
	t := s.selection(sess, ref, sent)
	t.Explicit = n
	b, _ := t.try()
	return b
}

// take does what Take says, for a write that is in no trace.
func (t *selection) take(ctx context.Context) (Base, error) {
	if ctx.Err() == nil { // a ctx that has ended means only that Take must not wait
		t.client = ctx
	}
	b, wait := t.try()
	if wait == nil {
		return b, nil
	}
	t.s.waited.Add(1)
	defer t.endWait()
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

// endWait ends the wait. If the first try has handed its claim over to this write, and this write hasn't taken it, endWait gives the claim
// back.
func (t *selection) endWait() {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	now := t.s.clock()
	t.attempt.Disown(now)
	if c := t.sh.takeInheritance(t.attempt); c != nil {
		t.sh.release(c, t.ix.Gone(), now)
	}
	t.sh.pending.Leave(t.k, t.attempt)
}

// try returns a base, or a channel to wait for.
func (t *selection) try() (b Base, wait <-chan struct{}) {
	t.now = t.s.clock()
	b.claim = claim{sh: t.sh, key: t.k, network: t.sess.Network(), since: t.s.Epoch()}
	t.ix = t.s.findOf(t.k, t.now)
	if !t.s.dryRun {
		giveUp(t.ix)
	}
	// In a named session the session's own view tells repeats. A write under the client's own guard never waits, and has no repeats.
	if t.attempt == nil && t.Sent != nil && !t.Named && (!t.Explicit.Known() || t.client != nil) {
		hash := repeat.Hash(t.s.seed, t.Sent, t.Part, t.Explicit)
		if t.traceTells { // equal bytes are an equal change in another trace
			hash = (hash ^ maphash.Comparable(t.s.seed, t.sess.Trace())) | 1
		}
		t.attempt = repeat.New(hash, t.s.o.Left)
	}
	if t.attempt.IsLookedFor() {
		b.claim.attempt = t.attempt
	}
	r, wait := t.takeOrWait(&b)
	for r != nil && !t.rank(r, &b) { // once more if another write has reserved the likeliest candidate meanwhile
		r, wait = t.takeOrWait(&b)
	}
	if t.s.dryRun {
		b.end()
	}
	return b, wait
}

// takeOrWait takes the base. If it can't yet, it returns a channel to wait for, or the candidates that have to be ranked.
func (t *selection) takeOrWait(b *Base) (r *ranking, wait <-chan struct{}) {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	t.dropOldInheritance() // before the entry is looked up, because it may drop the entry
	e, f := t.sh.Get(t.k, t.ix.Gone(), t.now), t.sh.pending.Of(t.k)
	b.claim.takenAt = t.sh.Order
	if t.after == nil && !t.Explicit.Known() && !t.Named && !t.traceTells && t.ix.IsBlind(t.k.Session, t.now) {
		b.Reason = ReasonBlind // the session stays a blind writer while it writes documents that it hasn't read
		b.claim.blind = (e == nil || e.Empty()) && !f.Any() && t.sh.Lost(t.k, e) == ReasonNone
		t.count(KindNone)
		return nil, nil
	}
	if inherited, wait := t.followFirst(f, b); inherited || wait != nil {
		return nil, wait
	}
	b.claim.arrived, b.claim.came = t.arrived, t.came
	if e == nil && t.sh.Noted(&t.k, t.now) {
		e = t.sh.Put(t.k, t.sess.Network(), t.ix.Gone(), b.claim.since, t.now)
	}
	k := t.choiceInput(e, f)
	if t.after == nil && t.takesRecollection(e, f) {
		t.reserveRecollection(e, b)
		return nil, nil
	}
	d := choice.Choose(&k, &t.Request)
	t.noteCrowd(e, &k, d.Action)
	switch d.Action {
	case choice.WaitForBase:
		if t.attempt == nil {
			t.attempt = repeat.Waiting(t.Before)
		}
		return nil, f.Wait(t.attempt)
	case choice.RankAll:
		past := e.Past
		if !k.Past {
			past = nil
		}
		return t.ranking(e, e.Reads[:d.Read], past), nil
	}
	t.reserve(e, d, b)
	return nil, nil
}

// noteCrowd notes whether a write shows that several clients are at work. A client that is alone waits for its answer, and reads what it
// wrote, before it writes again.
func (t *selection) noteCrowd(e *viewcache.Entry, k *choice.Input, a choice.Action) {
	switch {
	case e == nil || t.s.dryRun || t.after != nil:
	case k.InFlight || !e.IsNewestRead():
		e.Crowd.Meet()
	case a != choice.RankAll: // rank judges by the content, and shows more
		e.Crowd.Fade()
	}
}

// dropOldInheritance gives back what the first try has left for this write, if it is too old to be a base.
func (t *selection) dropOldInheritance() {
	if t.attempt == nil || t.s.dryRun {
		return
	}
	c, gone := t.sh.inheritances[t.attempt], t.ix.Gone()
	if c != nil && (c.since < gone || t.now-c.At >= int64(t.s.o.MaxAge)) {
		t.sh.release(t.sh.takeInheritance(t.attempt), gone, t.now)
	}
}

// followFirst is for a write that may repeat an earlier one, its first try. If the first try has given its base back for this write,
// followFirst takes that base. If the first try is under way, followFirst returns a channel to wait for.
func (t *selection) followFirst(f *repeat.Pending, b *Base) (inherited bool, wait <-chan struct{}) {
	a := t.attempt
	if !t.lookedBefore {
		t.lookedBefore, t.Before, t.arrived, t.came = true, t.sh.Order, t.sh.Order, t.now
		if a != nil {
			a.Begin(t.client, t.now, t.Before)
		}
	}
	if a == nil || t.s.dryRun {
		return false, nil
	}
	if c := t.sh.takeInheritance(a); c != nil {
		b.claim, b.Ambiguous, b.Guessed = *c, c.ambiguous, true
		t.fillBase(b)
		return true, nil
	}
	wait = a.Follow(f, t.now)
	t.Before = a.Before()
	return false, wait
}

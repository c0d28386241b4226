package session

import (
	"bytes"
	"context"

	"optimist/internal/doc"
	"optimist/internal/life"
)

// Take chooses the base of a write of sent (nil for a delete) and reserves it.
//
// It waits where all bases are reserved by writes of the session in flight. A client that repeats a write after a time-out has then what
// its first try left as its base, and not none; in an inferred session also where other clients' reads could be the base. Its error is
// the cause of ctx's end, or context.Canceled for a client that has left. With a ctx that has ended it never waits. Whoever holds one base
// while taking another must not wait: two that do so in opposite order would wait for each other.
func (s *Store) Take(ctx context.Context, sess Session, ref doc.Ref, sent []byte) (Base, error) {
	t := s.taking(sess, ref, sent)
	return t.take(ctx)
}

// TakeAt reserves the base whose numbers the client named itself, by its own guard: its body is there to merge from, and a read of it is
// used up. It never waits. In a named session the numbers may also be those that the answer to its last write named: the base is the view
// then, with the numbers of what was stored. In an inferred session nobody can tell whether they are those of a view or of another
// client's read: that is KindGiven without a body. What the session doesn't know is KindGiven, with the body if another session under the
// same credentials holds it.
func (s *Store) TakeAt(sess Session, ref doc.Ref, n doc.Numbers, sent []byte) Base {
	t := s.taking(sess, ref, sent)
	t.given = n
	b, _ := t.try()
	return b
}

// taking is one call of Take, TakeAt or TakeCopy.
type taking struct {
	s  *Store
	sh *shard
	ix *life.Index[Session]
	k  key
	request
	apart bool // nobody but who writes holds the copy that given are of

	client  context.Context // of the request; nil: it never waits
	attempt *attempt        // nil: nobody looks for repeats of it, and it hasn't waited
	looked  bool            // it has looked for a base before
	now     int64
}

func (s *Store) taking(sess Session, ref doc.Ref, sent []byte) taking {
	k := key{sess: sess, ref: ref}
	return taking{s: s, sh: s.shard(k), k: k, request: request{sent: sent, named: sess.named}}
}

// take is Take.
func (t *taking) take(ctx context.Context) (Base, error) {
	if ctx.Err() == nil { // else it only says that nobody waits
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

// leave ends the wait. What was handed over, and isn't going to be used, is given back.
func (t *taking) leave() {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	now := t.s.clock()
	if c := t.attempt.disown(now); c != nil {
		t.sh.release(c, t.ix.Gone(), now)
	}
	t.sh.leave(t.k, t.attempt)
}

// try returns a base, or what to wait for.
func (t *taking) try() (b Base, wait <-chan struct{}) {
	t.now = t.s.clock()
	b.claim = claim{store: t.s, key: t.k, since: t.s.Epoch()}
	t.ix = t.s.indices.Index(t.k.ref.Index, t.now)
	// In a named session the own view tells a repeat. What never waits, because the client brought its own guard, has none.
	if t.attempt == nil && t.sent != nil && !t.named && (!t.given.Known() || t.client != nil) {
		t.attempt = &attempt{sh: t.sh, hash: hashOf(t.s.seed, t.sent, t.given)}
	}
	if t.attempt != nil && t.attempt.hash != 0 {
		b.claim.attempt = t.attempt
	}
	for taken := false; !taken; { // until nobody else has reserved the closest read while it was looked for
		var reads []doc.Revision
		t.locked(&b, func(e *entry) { reads, wait = t.look(e, &b) })
		if reads == nil {
			break
		}
		closest := reads[t.s.o.Rank(reads, t.sent)].Numbers
		t.locked(&b, func(e *entry) { taken = t.pick(e, closest, &b) })
	}
	if t.s.dryRun {
		b.end()
	}
	return b, wait
}

// guesses reports whether the base of the write is a guess among what the session has seen: nobody has named it.
func (t *taking) guesses() bool { return t.attempt != nil && t.attempt.hash != 0 && !t.given.Known() }

// locked has do look at what the session knows of the document. A dry run gives back what do takes before anybody can miss it.
func (t *taking) locked(b *Base, do func(e *entry)) {
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	gone := t.ix.Gone()
	e := t.sh.get(t.k, gone, t.now)
	if !t.s.dryRun {
		do(e)
		return
	}
	taken := t.sh.taken
	if e != nil {
		defer func(m missed) { e.repeats.missed = m }(e.repeats.missed)
	}
	do(e)
	t.sh.taken = taken
	if b.claim.kept {
		c := b.end()
		t.sh.release(&c, gone, t.now)
	}
}

// look takes the base if there is one, or returns what to wait for, or of several reads all, oldest first.
func (t *taking) look(e *entry, b *Base) (reads []doc.Revision, wait <-chan struct{}) {
	if !t.given.Known() && !t.named && t.ix.IsBlind(t.k.sess, t.now) {
		t.takeBlindly(e, b)
		return nil, nil
	}
	f := t.sh.inFlight[t.k]
	b.claim.taken = t.sh.order
	if inherited, wait := t.followFirst(f, b); inherited || wait != nil {
		return nil, wait
	}
	k, first, doubt := t.known(e, f)
	d := choose(k, t.request)
	b.Ambiguous = d.ambiguous
	if d.doubtful && !t.s.dryRun {
		e.repeats.drop(doubt)
		b.claim.doubted = true
	}
	switch d.action {
	case waitForBase:
		if t.attempt == nil {
			t.attempt = &attempt{before: t.before}
		}
		return nil, f.wait(t.attempt)
	case rankReads:
		for _, r := range e.reads[:d.read] {
			reads = append(reads, doc.Revision{Numbers: r.numbers, Version: r.version, Source: r.body.bytes()})
		}
	case takeRead:
		t.takeRead(e, d.read, d.doubtful, b)
	case takeView:
		t.takeView(e, first, d.doubtful, b)
	case takeSent:
		t.takeSent(e, first, b)
	case takeGiven:
		t.takeGiven(e, b)
	default:
		t.takeNothing(e, b)
	}
	return reads, nil
}

// followFirst takes the base that the write's first try has given back, or returns what to wait for until that is over.
func (t *taking) followFirst(f *inFlight, b *Base) (inherited bool, wait <-chan struct{}) {
	a := t.attempt
	if !t.looked {
		t.looked, t.before = true, t.sh.order
		if a != nil {
			a.client, a.began, a.before = t.client, t.now, t.before
		}
	}
	if a == nil || t.s.dryRun {
		return false, nil
	}
	if c := a.handed; c != nil {
		a.handed = nil
		if gone := t.ix.Gone(); c.since >= gone && t.now-c.at < t.sh.maxAge {
			b.claim, b.Ambiguous = *c, c.guessed
			t.sh.show(b)
			return true, nil
		} else {
			t.sh.release(c, gone, t.now) // there is nothing to give back any more
		}
	}
	wait = a.follow(f, t.now)
	t.before = a.before
	return false, wait
}

// known returns what choose has to know of the document, and completes the request. first is what the write repeats, if that is known for
// certain, and doubt one of the same bytes of which nobody knows what became.
func (t *taking) known(e *entry, f *inFlight) (k known, first, doubt *attempt) {
	if f != nil {
		k.inFlight, k.readsInFlight = f.count, f.reads
		k.othersWait = len(f.queue) > 0 && f.queue[0] != t.attempt
	}
	var r repeats
	if e != nil {
		k.reads, r = e.reads, e.repeats
		if e.view.set {
			k.view = &e.view
		}
		t.told, t.spent = t.given.Known() && r.named(t.given), t.given.Known() && e.isSpent(t.given)
	}
	if t.repeat, t.doubt = noRepeat, nil; t.attempt != nil {
		t.repeat, first, doubt = r.find(t.attempt, t.now)
	}
	if doubt != nil {
		t.doubt = &doubt.numbers
	}
	return k, first, doubt
}

// pick takes the read of the revision if it is still there.
func (t *taking) pick(e *entry, n doc.Numbers, b *Base) bool {
	if e == nil {
		return false
	}
	i := find(e.reads, n)
	if i < 0 {
		return false
	}
	t.takeRead(e, i, false, b)
	b.Ambiguous = true
	return true
}

// takeRead takes a read.
func (t *taking) takeRead(e *entry, i int, doubtful bool, b *Base) {
	if t.guesses() && !doubtful {
		b.Ambiguous = e.repeats.mayTake(t.attempt, t.sh.inFlight[t.k], &e.reads[i], t.sh.order)
	}
	t.sh.take(e, i, b)
}

// takeView takes the own view. first is what the write repeats, if that is known for certain.
func (t *taking) takeView(e *entry, first *attempt, doubtful bool, b *Base) {
	if t.guesses() && !doubtful {
		b.Ambiguous, e.repeats.missed = e.repeats.missed != missed{}, missed{}
	}
	if !doubtful {
		t.repeats(first, b)
	}
	if t.sh.takeView(e, b); t.given.Known() && !doubtful {
		b.Doubtful = b.claim.doubt // who names it means it, whatever else it was shown
		b.Apart = b.claim.apart && b.claim.told.Known()
	}
}

// takeSent makes the base of a repeated write: its view is what it sends, so that nothing of it counts twice. What the engine holds is for
// the caller to read. first is the first try, nil where that is a guess.
func (t *taking) takeSent(e *entry, first *attempt, b *Base) {
	c := &b.claim
	c.kind, c.sent, c.again = KindView, bytes.Clone(t.sent), true
	if e != nil {
		c.key = e.key
		c.numbers = e.repeats.last(t.attempt, first)
	} else {
		c.key.ref = cloneRef(t.k.ref)
		c.numbers = first.numbers
	}
	t.repeats(first, b)
	t.sh.fill(b)
}

// repeats notes that b is the base of the repeat of first, which has only one.
func (t *taking) repeats(first *attempt, b *Base) {
	if first != nil && !t.s.dryRun {
		t.attempt.first = nil
		b.claim.first = first
		first.repeated()
	}
}

// takeGiven makes the base of numbers that the session doesn't know. Where they may mean the revision or a view that was told them, it has
// no body: a guard alone harms neither. That holds for a revision that was served, too, where nothing tells its copies apart; and in a
// named session for one from which it has written: what it sent then may be in what it sends now, and would count twice.
func (t *taking) takeGiven(e *entry, b *Base) {
	c := &b.claim
	c.kind, c.numbers = KindGiven, t.given
	if d := t.sh.docs[t.k.doc()]; d != nil && d.epoch >= t.ix.Gone() {
		c.key.ref = d.key.ref
		if t.apart || !t.told && !t.spent {
			c.sent = d.find(t.given).bytes()
			c.stored = c.sent
		}
	} else {
		c.key.ref = cloneRef(t.k.ref)
	}
	t.sh.fill(b)
}

// takeNothing makes the base where nothing is known, which is a lost one where something was.
func (t *taking) takeNothing(e *entry, b *Base) {
	c := &b.claim
	c.kept = t.named
	if why := t.sh.lost(t.k, e); why != ReasonNone {
		b.Kind, b.Reason, c.kept = KindLost, why, true
	} else if t.now < t.s.sure.Load() && !t.k.sess.holder { // a revision that is known was current after the start
		b.Kind, b.Reason = KindLost, ReasonRestart
	}
	c.kind, c.blind = b.Kind, b.Kind == KindNone && !t.named
	if !t.k.sess.holder {
		t.sh.taken[b.Kind]++
	}
	if c.kept {
		c.key.ref = cloneRef(c.key.ref)
		t.sh.depart(c)
	}
}

// takeBlindly makes the base of a blind writer: none. It stays one for as long as it writes what it hasn't read.
func (t *taking) takeBlindly(e *entry, b *Base) {
	b.Reason = ReasonBlind
	b.claim.blind = (e == nil || e.empty()) && !t.sh.inFlight[t.k].any() && t.sh.lost(t.k, e) == ReasonNone
	t.sh.taken[KindNone]++
}

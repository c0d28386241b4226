package session

import (
	"bytes"
	"context"
	"slices"

	"optimist/internal/doc"
)

// Take chooses the base of a write of sent (nil for a delete) and reserves it. Where the only bases are reserved by other
// writes of the session in flight, it waits for one of them to end, or for ctx: its error is then ctx's cause, or context.Canceled
// for a client that has left, and the only one there is. So a client that repeats a write after a time-out has what its first try
// left as its base, instead of none; in an inferred session also where other clients' reads could be the base.
// With a ctx that has ended Take never waits. Whoever holds one base while taking another must not wait: two that do it in
// opposite order would wait for each other.
//
// ref must stay unchanged until the reservation is ended.
func (s *Store) Take(ctx context.Context, sess Session, ref doc.Ref, sent []byte) (Base, error) {
	t := taking{s: s, k: key{sess: sess, ref: ref}, sent: sent}
	return t.take(ctx)
}

// take is Take.
func (t *taking) take(ctx context.Context) (Base, error) {
	if ctx.Err() == nil { // else it only says that nobody waits
		t.client = ctx
	}
	b, done := t.try()
	if done == nil {
		return b, nil
	}
	t.s.waited.Add(1)
	defer t.leave()
	for {
		select {
		case <-done:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return Base{}, context.Cause(ctx)
		}
		if t.s.left(ctx) {
			return Base{}, context.Canceled
		}
		if b, done = t.try(); done == nil {
			return b, nil
		}
	}
}

// TakeAt reserves the base whose numbers the client named itself (its own guard), so that its body is there to merge from,
// and the read is used up. It never waits. Numbers that the answer to a named session's last write carried name its view,
// whatever was stored: the base's Numbers are then those that were. In an inferred session they may as well be of
// somebody else, who read the revision that they are of: that is KindGiven without a body. What the session doesn't know
// is KindGiven, with a body if another session under the same credentials holds it.
//
// ref must stay unchanged until the reservation is ended.
func (s *Store) TakeAt(sess Session, ref doc.Ref, n doc.Numbers, sent []byte) Base {
	t := taking{s: s, k: key{sess: sess, ref: ref}, sent: sent, given: n}
	b, _ := t.try()
	return b
}

// taking is one call of Take or TakeAt.
type taking struct {
	s     *Store
	k     key
	sent  []byte
	given doc.Numbers // known for TakeAt and TakeCopy only
	// served says that given are those of a revision that was served, and not of an answer; apart, that nobody but who writes holds
	// that copy of it.
	served, apart bool
	glance        bool // what is taken is given back at once: see Glance
	patient       bool // of a thread of its own: waits for its writes in flight, though numbers are given

	// before is the order of the newest read when the write came: those made while it waits are not what it was made from.
	before  uint64
	started bool

	client  context.Context // of the request; nil for TakeAt
	attempt *attempt        // nil: nobody looks for repeats of it, and it hasn't waited
}

// queue makes t wait behind those of its session and document that wait already, if any, and returns what to wait for.
func (t *taking) queue(sh *shard, f *inFlight) <-chan struct{} {
	if t.attempt == nil {
		t.attempt = &attempt{}
	}
	a := t.attempt
	if a.turn == nil {
		a.turn = make(chan struct{})
		f.queue = append(f.queue, a)
		if len(f.queue) == 1 {
			close(a.turn)
		}
	}
	if f.queue[0] != a {
		return a.turn
	}
	return f.landing()
}

// leave ends the wait and gives the turn to the next.
func (t *taking) leave() {
	sh := t.s.shard(t.k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	t.disown(sh)
	f := sh.inFlight[t.k]
	if f == nil {
		return
	}
	i := slices.Index(f.queue, t.attempt)
	if i < 0 {
		return
	}
	f.queue = slices.Delete(f.queue, i, i+1)
	if i == 0 && len(f.queue) > 0 {
		close(f.queue[0].turn)
	}
	sh.rest(t.k, f)
}

// waits reports whether others wait before t for what it could take. Their order is that in which they came: a client that gave a write up
// and repeated it has two waiting, goes on after the later one's answer, and would have what it writes then undone by the earlier.
func (t *taking) waits(f *inFlight) bool {
	return f != nil && len(f.queue) > 0 && f.queue[0] != t.attempt
}

// try returns a base, or what to wait for.
func (t *taking) try() (Base, <-chan struct{}) {
	s := t.s
	now := s.clock()
	since := s.Epoch()
	ix := s.indices.get(t.k.ref.Index, now)
	t.fingerprint()
	b := Base{claim: claim{store: s, key: t.k, since: since}}
	if t.hash() != 0 {
		b.claim.attempt = t.attempt
	}
	sh := s.shard(t.k)
	if !t.given.Known() && ix.isBlind(t.k.sess, now) {
		t.blind(sh, ix, now, &b)
		return b, nil
	}
	for {
		cs, done, ok := t.look(sh, ix, now, &b)
		if ok || done != nil {
			return b, done
		}
		b.Ambiguous = true
		if t.pick(sh, ix, now, cs[s.measure.of(cs, t.sent)], &b) {
			return b, nil
		}
		// Another write has reserved it meanwhile.
		b.Ambiguous = false
	}
}

// look takes the base if there is one at most, and else returns the candidates, oldest first.
func (t *taking) look(sh *shard, ix *index, now int64, b *Base) ([]candidate, <-chan struct{}, bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t.glance {
		defer t.glanced(sh, ix, now, b)()
	}
	gone := t.s.indices.gone(ix)
	e := sh.get(t.k, gone, now)
	if !t.started {
		t.started, t.before = true, sh.order
		if a := t.attempt; a != nil {
			a.client, a.began, a.before = t.client, now, sh.order
		}
	}
	if t.attempt != nil && t.attempt.handed != nil && t.inherit(sh, gone, now, b) {
		return nil, nil, true
	}
	if done := t.follow(sh, sh.inFlight[t.k], now); done != nil {
		return nil, done, false
	}
	return t.choose(sh, e, gone, now, b)
}

// choose is look where the write's first try is over, or it is one.
func (t *taking) choose(sh *shard, e *entry, gone Epoch, now int64, b *Base) ([]candidate, <-chan struct{}, bool) {
	f := sh.inFlight[t.k]
	reads, view := t.eligible(e, f)
	if len(reads) == 0 && view == nil && !f.any() {
		t.before = sh.order // better than none
		reads, view = t.eligible(e, f)
	}
	own := len(reads) == 0 && view != nil && bytes.Equal(view.sent.bytes(), t.sent)
	first := t.unheard(e, now)
	switch {
	case !own && first != nil:
		b.Ambiguous = t.attempt.first == nil && len(reads) > 0 && t.guesses()
		t.again(sh, e, first, b)
	case t.inDoubt(sh, e, b):
	case len(reads) == 0 && (!t.given.Known() || t.patient) && t.waits(f):
		return nil, t.queue(sh, f), false
	case len(reads) == 1 && view == nil:
		b.Ambiguous = t.guesses() && e.missed.or(&reads[0])
		i := e.find(reads[0].numbers)
		if t.mayRepeat(e, f) {
			b.Ambiguous = true
			t.misses(sh, e, i)
		}
		sh.take(e, i, b)
	case len(reads) == 0 && view != nil && !own && t.repeats(e):
		t.again(sh, e, nil, b)
	case len(reads) == 0 && view != nil:
		if b.Ambiguous = t.guesses() && e.missed != (missed{}); b.Ambiguous && !t.glance {
			e.missed = missed{}
		}
		if own {
			t.repeatOf(first, b)
		}
		if sh.takeView(e, b); t.given.Known() {
			b.Doubtful = b.claim.doubt // who names it means it, whatever else it was shown
			b.Apart = b.claim.apart && b.claim.told.Known()
		}
	case len(reads) > 0:
		return candidates(reads), nil, false
	case t.given.Known() && (!f.any() || !t.patient):
		t.unknown(sh, e, gone, b)
	case f.any():
		return nil, t.queue(sh, f), false
	default:
		t.nothing(sh, e, now, b)
	}
	return nil, nil, true
}

// eligible returns what can be the base: outstanding reads, or the own view where no read is outstanding, also none that
// is reserved. With numbers that are given, it is what has them.
func (t *taking) eligible(e *entry, f *inFlight) ([]read, *view) {
	if e == nil {
		return nil, nil
	}
	reads, v := e.reads, &e.view
	if !t.given.Known() {
		if i := slices.IndexFunc(reads, func(r read) bool { return r.order > t.before }); i >= 0 {
			reads = reads[:i]
		}
		if !v.set || len(reads) > 0 || f.any() && f.reads > 0 {
			return reads, nil
		}
		return nil, v
	}
	if i := e.find(t.given); i >= 0 && (t.served || !e.told(t.given)) {
		reads = reads[i : i+1]
	} else {
		reads = nil
	}
	if t.patient && f.any() {
		v = nil // what is in flight may have been made from the same revision, as it was read
	}
	if v == nil || !v.set || v.absent || !v.isTold(t.given) && !t.repeatsFrom(e) || len(reads) > 0 {
		v = nil // who reads what its answer named, too, means what it read
	}
	if v != nil && (v.numbers != t.given || v.sent != v.stored) && (t.served || !t.k.sess.named) {
		v = nil // somebody else of the session may have read what the numbers were taken from
	}
	return reads, v
}

// isTold reports whether an answer told the client that n are the numbers of the view. Those under which something else was stored than
// was sent name what was stored: only who read that can know them.
func (v *view) isTold(n doc.Numbers) bool {
	if v.told.Known() {
		return v.told == n
	}
	return v.numbers == n
}

// candidates returns the bases as they are now.
func candidates(reads []read) []candidate {
	cs := make([]candidate, 0, len(reads))
	for _, r := range reads {
		cs = append(cs, candidate{numbers: r.numbers, version: r.version, absent: !r.numbers.Known(), saw: r.body.bytes()})
	}
	return cs
}

// pick takes the candidate if it is still there.
func (t *taking) pick(sh *shard, ix *index, now int64, c candidate, b *Base) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t.glance {
		defer t.glanced(sh, ix, now, b)()
	}
	e := sh.get(t.k, t.s.indices.gone(ix), now)
	if e == nil {
		return false
	}
	i := e.find(c.numbers)
	if i < 0 {
		return false
	}
	if t.mayRepeat(e, sh.inFlight[t.k]) {
		t.misses(sh, e, i)
	}
	sh.take(e, i, b)
	return true
}

// unknown makes the base of numbers that the session doesn't know. Where they may mean the revision or a view that was told them, it has
// no body: a guard alone harms neither. That holds for a revision that was served, too, where nothing tells its copies apart; and in a
// named session for one from which it has written: what it sent then may be in what it sends now, and would count twice.
func (t *taking) unknown(sh *shard, e *entry, gone Epoch, b *Base) {
	b.claim.kind, b.claim.numbers = KindGiven, t.given
	k := t.k
	if d := sh.docs[k.doc()]; d != nil && d.epoch >= gone {
		k.ref = d.key.ref
		if e == nil || t.apart || !e.told(t.given) && !e.isSpent(t.given) {
			b.claim.saw = d.find(t.given).bytes()
			b.claim.stored = b.claim.saw
		}
	} else {
		k.ref = cloneRef(k.ref)
	}
	b.claim.key = k
	sh.fill(b)
}

// nothing makes the base where nothing is known, which is a lost one where something was.
func (t *taking) nothing(sh *shard, e *entry, now int64, b *Base) {
	c := &b.claim
	c.kept = t.k.sess.named
	if why := sh.lost(t.k, e); why != ReasonNone {
		b.Kind, b.Reason = KindLost, why
		c.kept, c.known = true, true
	} else if now < t.s.sure.Load() && !t.k.sess.holder { // a revision that is known was current after the start
		b.Kind, b.Reason = KindLost, ReasonRestart
	}
	c.kind = b.Kind
	if !t.k.sess.holder {
		sh.n.Taken[b.Kind]++
	}
	if c.kept {
		c.key.ref = cloneRef(c.key.ref)
		sh.depart(c)
	}
}

// blind makes the base of a blind writer: none. It stays one for as long as it writes what it hasn't read.
func (t *taking) blind(sh *shard, ix *index, now int64, b *Base) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if t.glance {
		defer t.glanced(sh, ix, now, b)()
	}
	b.Reason = ReasonBlind
	e := sh.get(t.k, t.s.indices.gone(ix), now)
	b.claim.known = e != nil && !e.empty() || sh.inFlight[t.k].any() || sh.lost(t.k, e) != ReasonNone
	sh.n.Taken[KindNone]++
}

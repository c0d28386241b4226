package session

import (
	"bytes"
	"hash/maphash"
	"slices"
	"time"

	"optimist/internal/doc"
)

const (
	// maxRecent bounds how many writes of a document a session is known by, so that their repeats are.
	maxRecent = 16
	// maxAbandoned bounds how many more that were given up are, or may be by now: as many as may have waited for the one that held them up.
	maxAbandoned = 128
	// repeatWindow is how long after its write was acknowledged a client that gave it up may repeat it, and have that known for certain.
	repeatWindow = 10 * int64(time.Second)
)

// pending reports whether it isn't known yet that nobody repeats the attempt.
func (a *attempt) pending() bool {
	return a.state == unheard || a.state == inDoubt || a.client != nil || a.repeat != nil
}

// fingerprint makes what is sent known again, with the numbers that are given. In a named session the own view is enough: nobody else
// writes there. Nor is it made of what never waits.
func (t *taking) fingerprint() {
	if t.attempt != nil || t.sent == nil || t.k.sess.named || t.given.Known() && t.client == nil {
		return
	}
	h := maphash.Bytes(t.s.seed, t.sent)
	if t.given.Known() {
		h ^= maphash.Comparable(t.s.seed, t.given)
	}
	t.attempt = &attempt{hash: h | 1}
}

// hash is that of what is sent, 0 where nobody looks for repeats of it.
func (t *taking) hash() uint64 {
	if t.attempt == nil {
		return 0
	}
	return t.attempt.hash
}

// guesses reports whether the base of the write is a guess among what the session has seen: nobody has named it.
func (t *taking) guesses() bool { return t.hash() != 0 && !t.given.Known() }

// follow returns what to wait for where the write is sent again: its first try, which the client has given up, is in flight or waits for
// its base. All other clients of the session may have reads outstanding, and none of these is what the write was made from.
func (t *taking) follow(f *inFlight) <-chan struct{} {
	a := t.attempt
	if t.hash() == 0 || t.s.dryRun || f == nil {
		return nil
	}
	if a.first != nil && a.first.repeat != a {
		a.first = nil // another repeat has taken its place
	}
	if a.first != nil {
		if a.first.state == underWay {
			return f.landing()
		}
		return nil
	}
	for _, o := range f.attempts {
		if o.hash == a.hash && t.s.gaveUp(o, t.now) && (o.repeat == nil || t.s.gaveUp(o.repeat, t.now)) {
			a.first, o.repeat = o, a
			return f.landing()
		}
	}
	for _, o := range f.queue {
		if o == a {
			break
		}
		if o.hash == a.hash && t.s.gaveUp(o, t.now) {
			t.before = min(t.before, o.before)
			a.before = t.before
			return t.queue(f)
		}
	}
	return nil
}

// sends reports whether one of the writes sends that.
func (f *inFlight) sends(hash uint64) bool {
	return f != nil && slices.ContainsFunc(f.attempts, func(o *attempt) bool { return o.hash == hash })
}

// bequeath has r hold what its first try, of c, gives back. It stays in flight, so that nobody takes it, or misses it, before r has looked.
func (sh *shard) bequeath(c claim, r *attempt) {
	if c.again {
		r.first = c.first
		if r.first == nil {
			r.first = &attempt{hash: r.hash, state: acknowledged, left: c.numbers}
		}
		r.first.repeat = r
		return
	}
	r.first = nil
	c.attempt, r.handed = r, &c
	sh.depart(&c)
}

// inherit gives t the base of its first try, where that has given it back. It reports whether it did.
func (t *taking) inherit(b *Base) bool {
	c, gone := t.attempt.handed, t.s.indices.gone(t.ix)
	t.attempt.handed = nil
	if c.since < gone || t.now-c.at >= t.sh.maxAge {
		t.sh.release(c, gone, t.now) // there is nothing to give back any more
		return false
	}
	b.claim, b.Ambiguous = *c, c.guessed
	t.sh.show(b)
	return true
}

// disown leaves what the first try leaves to others: t isn't going to be written.
func (t *taking) disown() {
	a := t.attempt
	if a == nil {
		return
	}
	first, c, now := a.first, a.handed, t.s.clock()
	a.first, a.handed = nil, nil
	switch {
	case c != nil:
		t.sh.release(c, t.s.indices.gone(t.ix), now)
	case first != nil && first.repeat == a:
		first.repeat = nil
		first.repeatable(now)
	}
}

// startsAnew ends the wait of a repeat for a first try that leaves it nothing.
func (a *attempt) startsAnew() {
	if a != nil {
		a.first = nil
	}
}

// repeatable has a write that was acknowledged, and whose repeat has come to nothing, be repeated by whoever comes.
func (a *attempt) repeatable(now int64) {
	if a != nil && a.state == acknowledged && a.repeat == nil {
		a.state, a.at = unheard, now
	}
}

// sent returns the last write that sent this, and was acknowledged, or nil.
func (e *entry) sent(hash uint64) *attempt {
	for i := len(e.recent) - 1; i >= 0; i-- {
		if o := e.recent[i]; o.hash == hash && o.state != inDoubt {
			return o
		}
	}
	return nil
}

// firstTry tells t what is known of it being sent before. It returns the first try where that is known for certain: the one that it has
// waited for, or one that was acknowledged, not long ago, and whose client had left before its answer. doubt is one of which nobody knows
// what became.
func (t *taking) firstTry(e *entry) (first, doubt *attempt) {
	t.repeat, t.doubt = noRepeat, nil
	if t.hash() == 0 {
		return nil, nil
	}
	if first = t.attempt.first; first != nil {
		t.repeat = awaitedRepeat
	}
	if e == nil {
		return first, nil
	}
	for _, o := range e.recent {
		switch {
		case o.hash != t.attempt.hash:
		case o.state == inDoubt && doubt == nil:
			doubt, t.doubt = o, &o.left
		case o.state == inDoubt:
		case first == nil && (o.state == unheard && t.now-o.at < repeatWindow || t.s.gaveUp(o, t.now) || t.s.gaveUp(o.repeat, t.now)):
			first, t.repeat = o, unheardRepeat
		case t.repeat == noRepeat && t.guesses():
			t.repeat = sameSent
		}
	}
	return first, doubt
}

// mayBeAnothers reports whether the write may be a repetition, so that the read which it takes may be another client's; or may be that of a
// client whose own read was taken so.
func (t *taking) mayBeAnothers(e *entry, f *inFlight, read int) bool {
	r := &e.reads[read]
	if !t.guesses() {
		return false
	}
	if e.sent(t.attempt.hash) == nil && !f.sends(t.attempt.hash) {
		return e.missed.or(r)
	}
	if !t.s.dryRun {
		e.missed = missed{read: r.order, till: t.sh.order}
	}
	return true
}

// doubt keeps what a write of an inferred session sent that gave its base back, and has no known outcome: its repeat must not have another
// base, from which it would be merged.
func (e *entry) doubt(c *claim) {
	if a := c.attempt; c.doubted && a != nil {
		a.state, a.left, a.client = inDoubt, c.numbers, nil
		e.keep(a)
	}
}

// missed is a read that was taken by what may be a repetition. The client that made it may write without it. It then takes another
// client's read, and that client is left without one.
type missed struct {
	read, till uint64 // its order, and that of the newest read at the time; 0: none
}

// or reports whether r may be written from by who misses the read.
func (m missed) or(r *read) bool { return r.order <= m.till && r.order != m.read }

// again makes the base of a repeated write: its view is what it sends, so that nothing of it counts twice. What the engine holds is for
// the caller to read. o is the first try, nil where that is a guess.
func (t *taking) again(e *entry, o *attempt, b *Base) {
	c := &b.claim
	c.kind, c.sent, c.again = KindView, bytes.Clone(t.sent), true
	if o != nil {
		c.numbers = o.left
	}
	if e == nil {
		c.key.ref = cloneRef(t.k.ref)
	} else {
		c.key = e.key
		if o := e.sent(t.hash()); o != nil {
			c.numbers = o.left
		}
	}
	t.repeatOf(o, b)
	t.sh.fill(b)
}

// repeatOf notes that b is the base of the repeat of o, which has only one.
func (t *taking) repeatOf(o *attempt, b *Base) {
	if o == nil || t.s.dryRun {
		return
	}
	t.attempt.first = nil
	b.claim.first = o
	o.state, o.client, o.repeat = acknowledged, nil, nil
}

// acknowledge keeps a write of an inferred session that was acknowledged: for its repeats, and for what its answer names. repeat has waited
// for it. It returns the write if its client has no answer yet, and nobody repeats it.
func (e *entry) acknowledge(c *claim, a *Ack, repeat *attempt) (unanswered *attempt) {
	var told doc.Numbers
	if !same(a.Stored.Source, a.Sent) {
		if told = a.Told; !told.Known() {
			told = a.Stored.Numbers
		}
	}
	o := c.attempt
	if e.key.sess.named || o == nil && !told.Known() {
		return nil
	}
	if o == nil {
		o = &attempt{}
	}
	o.state, o.left, o.told, o.repeat = acknowledged, a.Stored.Numbers, told, repeat
	e.keep(o)
	switch {
	case repeat != nil:
		repeat.first, o.client = o, nil
	case o.client != nil:
		return o
	}
	return nil
}

// answer notes that a's client is sent its answer, if it is still there.
func (a *attempt) answer(s *Store) {
	if now := s.clock(); a.client != nil && now-a.began >= late && s.left(a.client) {
		a.state, a.at = unheard, now
	}
	a.client = nil
}

// keep adds a, and takes out the oldest of which nobody waits for a repeat, or of all, where there are too many.
func (e *entry) keep(a *attempt) {
	oldest, n := -1, 0
	for i := len(e.recent) - 1; i >= 0; i-- {
		if !e.recent[i].pending() {
			oldest, n = i, n+1
		}
	}
	switch {
	case n >= maxRecent:
		e.recent = slices.Delete(e.recent, oldest, oldest+1)
	case len(e.recent)-n >= maxAbandoned:
		e.recent = slices.Delete(e.recent, 0, 1)
	}
	e.recent = append(e.recent, a)
}

// unkeep takes a out.
func (e *entry) unkeep(a *attempt) {
	i := slices.Index(e.recent, a)
	e.recent = slices.Delete(e.recent, i, i+1)
}

// told reports whether an answer named n although what was sent isn't the revision that n are of. Who gives n then may mean what it sent,
// or, like everybody who hasn't written, that revision.
func (e *entry) told(n doc.Numbers) bool {
	return slices.ContainsFunc(e.recent, func(o *attempt) bool { return o.told == n })
}

// spend keeps the numbers of the base that a write of a named session was made from.
func (e *entry) spend(c *claim) {
	if !e.key.sess.named || e.key.sess.holder {
		return
	}
	for _, n := range [2]doc.Numbers{c.numbers, c.told} {
		if !n.Known() || e.isSpent(n) {
			continue
		}
		if len(e.spent) == maxRecent {
			e.spent = slices.Delete(e.spent, 0, 1)
		}
		e.spent = append(e.spent, n)
	}
}

// isSpent reports whether the session, which is named, has written from the revision of these numbers.
func (e *entry) isSpent(n doc.Numbers) bool { return slices.Contains(e.spent, n) }

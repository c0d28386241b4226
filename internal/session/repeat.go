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
func (t *taking) follow(sh *shard, f *inFlight, now int64) <-chan struct{} {
	a := t.attempt
	if t.hash() == 0 || t.glance || f == nil {
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
		if o.hash == a.hash && t.s.gaveUp(o, now) && (o.repeat == nil || t.s.gaveUp(o.repeat, now)) {
			a.first, o.repeat = o, a
			return f.landing()
		}
	}
	for _, o := range f.queue {
		if o == a {
			break
		}
		if o.hash == a.hash && t.s.gaveUp(o, now) {
			t.before = min(t.before, o.before)
			a.before = t.before
			return t.queue(sh, f)
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
func (t *taking) inherit(sh *shard, gone Epoch, now int64, b *Base) bool {
	c := t.attempt.handed
	t.attempt.handed = nil
	if c.since < gone || now-c.at >= sh.maxAge {
		sh.release(c, gone, now) // there is nothing to give back any more
		return false
	}
	b.claim, b.Ambiguous = *c, c.guessed
	sh.show(b)
	return true
}

// disown leaves what the first try leaves to others: t isn't going to be written.
func (t *taking) disown(sh *shard) {
	a := t.attempt
	if a == nil {
		return
	}
	first, c := a.first, a.handed
	a.first, a.handed = nil, nil
	now := t.s.clock()
	switch {
	case c != nil:
		sh.release(c, t.s.indices.gone(t.s.indices.get(c.key.ref.Index, now)), now)
	case first == nil || first.repeat != a:
	default:
		first.repeat = nil
		first.repeatable(now)
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

// unheard returns the write that t repeats, as far as that is known for certain: the one that it has waited for, or one that was
// acknowledged, not long ago, and whose client had left before its answer. nil is none.
func (t *taking) unheard(e *entry, now int64) *attempt {
	if t.hash() == 0 {
		return nil
	}
	if t.attempt.first != nil {
		return t.attempt.first
	}
	if e == nil {
		return nil
	}
	for _, o := range e.recent {
		if o.hash == t.attempt.hash && (o.state == unheard && now-o.at < repeatWindow || t.s.gaveUp(o, now) || t.s.gaveUp(o.repeat, now)) {
			return o
		}
	}
	return nil
}

// repeats reports whether the write, for which no read is outstanding, is one that the session has sent before, byte for byte. A client
// that gave up waiting repeats its write; in a session of many clients the own view may be another's by then, and counted from that the
// repeat would undo what others did between.
func (t *taking) repeats(e *entry) bool { return t.guesses() && e != nil && e.sent(t.hash()) != nil }

// mayRepeat reports whether the write, for which a read is outstanding, is one that the session sends or has sent, byte for byte: the read
// may be another client's then, and the write a repetition.
func (t *taking) mayRepeat(e *entry, f *inFlight) bool {
	return t.repeats(e) || t.guesses() && f.sends(t.hash())
}

// doubt keeps what a write of an inferred session sent that gave its base back, and has no known outcome: its repeat must not have another
// base, from which it would be merged.
func (e *entry) doubt(c *claim) {
	if a := c.attempt; c.doubted && a != nil {
		a.state, a.left, a.client = inDoubt, c.numbers, nil
		e.keep(a)
	}
}

// inDoubt takes the base of the write if it is one that was sent before and has no known outcome. It reports whether it did.
func (t *taking) inDoubt(sh *shard, e *entry, b *Base) bool {
	if t.hash() == 0 || e == nil {
		return false
	}
	m := slices.IndexFunc(e.recent, func(o *attempt) bool { return o.state == inDoubt && o.hash == t.attempt.hash })
	if m < 0 {
		return false
	}
	n := e.recent[m].left
	i := e.find(n)
	read := i >= 0 && e.reads[i].doubt
	if !read && (!e.view.set || !e.view.doubt || e.view.numbers != n) {
		return false
	}
	if !t.glance {
		e.recent = slices.Delete(e.recent, m, m+1)
		b.claim.doubted = true
	}
	if read {
		b.Ambiguous = len(e.reads) > 1
		sh.take(e, i, b)
	} else {
		b.Ambiguous = len(e.reads) > 0
		sh.takeView(e, b)
	}
	return true
}

// missed is a read that was taken by what may be a repetition. The client that made it may write without it. It then takes another
// client's read, and that client is left without one.
type missed struct {
	read, till uint64 // its order, and that of the newest read at the time; 0: none
}

// or reports whether r may be written from by who misses the read.
func (m missed) or(r *read) bool { return r.order <= m.till && r.order != m.read }

// misses notes that t, which may be a repetition, takes a read of the entry.
func (t *taking) misses(sh *shard, e *entry, i int) {
	if !t.glance {
		e.missed = missed{read: e.reads[i].order, till: sh.order}
	}
}

// again makes the base of a repeated write: its view is what it sends, so that nothing of it counts twice. What the engine holds is for
// the caller to read. o is the first try, nil where that is a guess.
func (t *taking) again(sh *shard, e *entry, o *attempt, b *Base) {
	c := &b.claim
	c.kind, c.saw, c.again = KindView, bytes.Clone(t.sent), true
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
	sh.fill(b)
}

// repeatOf notes that b is the base of the repeat of o, which has only one.
func (t *taking) repeatOf(o *attempt, b *Base) {
	if o == nil || t.glance {
		return
	}
	t.attempt.first = nil
	b.claim.first = o
	o.state, o.client, o.repeat = acknowledged, nil, nil
}

// remember keeps a write of an inferred session: for its repeats, and for what its answer told. It returns what it keeps, nil for nothing.
func (e *entry) remember(c *claim, a *Ack) *attempt {
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
	o.state, o.left, o.told = acknowledged, a.Stored.Numbers, told
	e.keep(o)
	return o
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

// repeatsFrom reports whether a named session sends what it sent last, with numbers from which it has written: a client that gave up
// waiting sends its request again as it was.
func (t *taking) repeatsFrom(e *entry) bool {
	return t.sent != nil && e.isSpent(t.given) && bytes.Equal(e.view.sent.bytes(), t.sent)
}

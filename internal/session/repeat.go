package session

import (
	"bytes"
	"context"
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
)

const (
	// soon is how long a client waits for an answer at least, before it gives up. Whether it did isn't asked before.
	soon = int64(time.Millisecond)
	// late is the same where an answer is there, and most often in time.
	late = 10 * soon
	// repeatWindow is how long after its write was acknowledged a client that gave it up may repeat it, and have that known for certain.
	repeatWindow = 10 * int64(time.Second)
)

// sending is a write of an inferred session that was acknowledged lately, or is in doubt, by what it sent.
type sending struct {
	hash uint64      // 0: its numbers were given
	left doc.Numbers // of the revision that it left; of one in doubt, those of its base
	told doc.Numbers // what its answer named, where what was sent isn't what was stored

	doubt bool // it has no known outcome, and its base was given back

	// abandoned says that the client had left before its answer, at that time, and hasn't repeated the write yet.
	abandoned bool
	at        int64

	client context.Context // until it has been sent its answer, or its repeat is here; else nil
	began  int64
	ticket uint64
	heir   *taking // has waited for it, and is to look what became of it; else nil
}

// pending reports whether it isn't known yet that nobody repeats it.
func (o *sending) pending() bool { return o.abandoned || o.doubt || o.client != nil || o.heir != nil }

// unheard is a write that was acknowledged, while its client has no answer yet.
type unheard struct {
	store  *Store
	key    key
	ticket uint64
}

// outgoing is a write of an inferred session that is in flight, by what it sends.
type outgoing struct {
	hash, ticket uint64
	client       context.Context
	began        int64
	heir         *taking // repeats it; nil: nobody yet
}

// find returns the index of what is sent with the ticket, or -1.
func (f *flight) find(ticket uint64) int {
	return slices.IndexFunc(f.sent, func(o outgoing) bool { return o.ticket == ticket })
}

// repetition is what is known of the first try of a write that is sent again, because its client had given that up.
type repetition struct {
	of uint64 // its ticket; 0: none

	// What became of it: acknowledged, and then it left that revision; or the base that it gives back, which is in flight with its heir.
	// Neither: it is in flight, or nothing is known.
	acknowledged bool
	left         doc.Numbers
	inherited    *claim
}

// fingerprint makes what is sent known again, with the numbers that are given. In a named session the own view is enough: nobody else
// writes there. Nor is it made of what never waits.
func (t *taking) fingerprint() {
	if t.hash != 0 || t.sent == nil || t.k.sess.named || t.given.Known() && t.client == nil {
		return
	}
	h := maphash.Bytes(t.s.seed, t.sent)
	if t.given.Known() {
		h ^= maphash.Comparable(t.s.seed, t.given)
	}
	t.hash = h | 1
}

// guesses reports whether the base of the write is a guess among what the session has seen: nobody has named it.
func (t *taking) guesses() bool { return t.hash != 0 && !t.given.Known() }

// gaveUp reports whether the client of a write without an answer has left.
func (s *Store) gaveUp(client context.Context, began, now int64) bool {
	return client != nil && now-began >= soon && s.left(client)
}

// gaveUp reports whether the client has left that waits for a base.
func (t *taking) gaveUp(now int64) bool { return t.s.gaveUp(t.client, t.began, now) }

// follow returns what to wait for where the write is sent again: its first try, which the client has given up, is in flight or waits for
// its base. All other clients of the session may have reads outstanding, and none of these is what the write was made from.
func (t *taking) follow(sh *shard, f *flight, now int64) <-chan struct{} {
	r := &t.repeat
	switch {
	case t.hash == 0 || t.glance || r.acknowledged || r.inherited != nil:
		return nil
	case r.of != 0:
		if f != nil && f.find(r.of) >= 0 {
			return f.landing()
		}
		*r = repetition{}
		return nil
	}
	for i := range f.outgoing() {
		o := &f.sent[i]
		if o.hash == t.hash && t.s.gaveUp(o.client, o.began, now) && (o.heir == nil || o.heir.gaveUp(now)) {
			r.of, o.heir = o.ticket, t
			return f.landing()
		}
	}
	for _, o := range sh.waiting[t.k] {
		if o == t {
			break
		}
		if o.hash == t.hash && o.gaveUp(now) {
			t.before = min(t.before, o.before)
			return t.queue(sh, f)
		}
	}
	return nil
}

// sends reports whether one of the writes sends that.
func (f *flight) sends(hash uint64) bool {
	return slices.ContainsFunc(f.outgoing(), func(o outgoing) bool { return o.hash == hash })
}

func (f *flight) outgoing() []outgoing {
	if f == nil {
		return nil
	}
	return f.sent
}

// bequeath has t hold what its first try, of c, gives back. It stays in flight, so that nobody takes it, or misses it, before t has looked.
func (sh *shard) bequeath(k key, c claim, t *taking) {
	if c.again {
		t.repeat = repetition{of: c.first, acknowledged: true, left: c.numbers}
		e, _ := sh.lru.Peek(k)
		if o := e.sentWith(c.first); o != nil {
			o.heir = t
		}
		return
	}
	c.client, c.began = t.client, t.began
	sh.depart(k, &c)
	t.repeat = repetition{inherited: &c}
}

// inherit gives t the base of its first try, where that has given it back. It reports whether it did.
func (t *taking) inherit(sh *shard, gone Epoch, now int64, b *Base) bool {
	c := t.repeat.inherited
	t.repeat = repetition{}
	k := key{sess: c.sess, ref: c.ref}
	if c.since < gone || now-c.at >= sh.maxAge {
		sh.release(k, c, gone, now) // there is nothing to give back any more
		return false
	}
	b.claim, b.Ambiguous = *c, c.guessed
	sh.show(b)
	return true
}

// disown leaves what the first try leaves to others: t isn't going to be written.
func (t *taking) disown(sh *shard) {
	r := t.repeat
	t.repeat = repetition{}
	switch f := sh.flights[t.k]; {
	case r.inherited != nil:
		c := r.inherited
		now := t.s.clock()
		sh.release(key{sess: c.sess, ref: c.ref}, c, t.s.indices.gone(t.s.indices.get(c.ref.Index, now)), now)
	case r.acknowledged:
		sh.repeatable(t.k, r.of, t, t.s.clock())
	case r.of != 0 && f != nil:
		if i := f.find(r.of); i >= 0 && f.sent[i].heir == t {
			f.sent[i].heir = nil
		}
	}
}

// repeatable has a write that was acknowledged, and whose repeat, by heir or in flight, has come to nothing, be repeated by whoever comes.
func (sh *shard) repeatable(k key, ticket uint64, heir *taking, now int64) {
	e, _ := sh.lru.Peek(k)
	if o := e.sentWith(ticket); o != nil && o.heir == heir {
		o.abandoned, o.at, o.heir = true, now, nil
	}
}

// sent returns the index of the last write that sent this, and was acknowledged, or -1.
func (e *entry) sent(hash uint64) int {
	for i := len(e.recent) - 1; i >= 0; i-- {
		if o := &e.recent[i]; o.hash == hash && !o.doubt {
			return i
		}
	}
	return -1
}

// sentWith returns the write with the ticket, or nil.
func (e *entry) sentWith(ticket uint64) *sending {
	if e == nil || ticket == 0 {
		return nil
	}
	for i := range e.recent {
		if o := &e.recent[i]; o.ticket == ticket {
			return o
		}
	}
	return nil
}

// unheard returns the write that t repeats, as far as that is known for certain: the one that it has waited for, or one that was
// acknowledged, not long ago, and whose client had left before its answer. nil is none, and also one that is known no more.
func (t *taking) unheard(e *entry, now int64) *sending {
	if t.hash == 0 || e == nil {
		return nil
	}
	if t.repeat.acknowledged {
		return e.sentWith(t.repeat.of)
	}
	for i := range e.recent {
		o := &e.recent[i]
		if o.hash == t.hash && (o.abandoned && now-o.at < repeatWindow || t.s.gaveUp(o.client, o.began, now) ||
			o.heir != nil && o.heir.gaveUp(now)) {
			return o
		}
	}
	return nil
}

// repeats reports whether the write, for which no read is outstanding, is one that the session has sent before, byte for byte. A client
// that gave up waiting repeats its write; in a session of many clients the own view may be another's by then, and counted from that the
// repeat would undo what others did between.
func (t *taking) repeats(e *entry) bool { return t.guesses() && e != nil && e.sent(t.hash) >= 0 }

// mayRepeat reports whether the write, for which a read is outstanding, is one that the session sends or has sent, byte for byte: the read
// may be another client's then, and the write a repetition.
func (t *taking) mayRepeat(e *entry, f *flight) bool {
	return t.repeats(e) || t.guesses() && f.sends(t.hash)
}

// doubt keeps what a write of an inferred session sent that gave its base back, and has no known outcome: its repeat must not have another
// base, from which it would be merged.
func (e *entry) doubt(c *claim) {
	if c.doubted && c.hash != 0 {
		e.makeRoom()
		e.recent = append(e.recent, sending{hash: c.hash, left: c.numbers, doubt: true})
	}
}

// inDoubt takes the base of the write if it is one that was sent before and has no known outcome. It reports whether it did.
func (t *taking) inDoubt(sh *shard, e *entry, b *Base) bool {
	if t.hash == 0 || e == nil {
		return false
	}
	m := slices.IndexFunc(e.recent, func(o sending) bool { return o.doubt && o.hash == t.hash })
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

// missed is a read that was taken by what may be a repetition. Who made it may come without, and have another's instead, who has none then.
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
// the caller to read. o is the first try, nil where that is a guess, or known no more.
func (t *taking) again(sh *shard, e *entry, o *sending, b *Base) {
	k, c := t.k, &b.claim
	c.kind, c.numbers, c.saw, c.again = KindView, t.repeat.left, bytes.Clone(t.sent), true
	if e == nil {
		k.ref = cloneRef(k.ref)
	} else {
		k = e.key
		if i := e.sent(t.hash); i >= 0 {
			c.numbers = e.recent[i].left
		}
	}
	t.repeatOf(o, b)
	sh.fill(k, b)
}

// repeatOf notes that b is the base of the repeat of o, which has only one.
func (t *taking) repeatOf(o *sending, b *Base) {
	t.repeat = repetition{}
	if o == nil || t.glance {
		return
	}
	b.claim.first = o.ticket
	o.abandoned, o.client, o.heir = false, nil, nil
}

// remember keeps a write of an inferred session: for its repeats, and for what its answer told. It returns what it keeps, nil for nothing.
func (e *entry) remember(c *claim, a *Ack) *sending {
	o := sending{hash: c.hash, left: a.Stored.Numbers, ticket: c.ticket}
	if !same(a.Stored.Source, a.Sent) {
		if o.told = a.Told; !o.told.Known() {
			o.told = o.left
		}
	}
	if e.key.sess.named || o.hash == 0 && !o.told.Known() {
		return nil
	}
	e.makeRoom()
	e.recent = append(e.recent, o)
	return &e.recent[len(e.recent)-1]
}

// makeRoom takes out the oldest write that is known, where there are too many.
func (e *entry) makeRoom() {
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
}

// told reports whether an answer named n although what was sent isn't the revision that n are of. Who gives n then may mean what it sent,
// or, like everybody who hasn't written, that revision.
func (e *entry) told(n doc.Numbers) bool {
	return slices.ContainsFunc(e.recent, func(o sending) bool { return o.told == n })
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

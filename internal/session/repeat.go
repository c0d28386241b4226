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
	// maxAbandoned bounds how many more that were given up are: as many as may have waited for the one that held them all up.
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

// sending is a write of an inferred session that was acknowledged lately, by what it sent.
type sending struct {
	hash uint64      // 0: its numbers were given
	left doc.Numbers // of the revision that it left
	told doc.Numbers // what its answer named, where what was sent isn't what was stored

	// abandoned says that the client had left before its answer, at that time, and hasn't repeated the write yet.
	abandoned bool
	at        int64

	client context.Context // until it has been sent its answer, or its repeat is here; else nil
	began  int64
	ticket uint64
}

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

// find returns the index of what sends is known by, or -1.
func (f *flight) find(ticket uint64) int {
	return slices.IndexFunc(f.sent, func(o outgoing) bool { return o.ticket == ticket })
}

// repetition is what is known of the first try of a write that is sent again, because its client had given that up.
type repetition struct {
	of uint64 // its ticket while it is in flight; 0: none

	// What became of it: acknowledged, or the base that it gives back. Neither: nothing is known.
	acknowledged bool
	inherited    *claim
}

// fingerprint makes what is sent known again. In a named session the own view is enough: nobody else writes there.
func (t *taking) fingerprint() {
	if t.hash == 0 && t.sent != nil && !t.k.sess.named && !t.given.Known() {
		t.hash = maphash.Bytes(t.s.seed, t.sent) | 1
	}
}

// gaveUp reports whether the client of a write without an answer has left.
func (s *Store) gaveUp(client context.Context, began, now int64) bool {
	return client != nil && now-began >= soon && s.left(client)
}

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
		r.of = 0
		return nil
	}
	for i := range f.outgoing() {
		o := &f.sent[i]
		if o.hash == t.hash && t.s.gaveUp(o.client, o.began, now) && (o.heir == nil || t.s.gaveUp(o.heir.client, o.heir.began, now)) {
			r.of, o.heir = o.ticket, t
			return f.landing()
		}
	}
	for _, o := range sh.waiting[t.k] {
		if o == t {
			break
		}
		if o.hash == t.hash && t.s.gaveUp(o.client, o.began, now) {
			t.before = min(t.before, o.before)
			return t.queue(sh, f)
		}
	}
	return nil
}

func (f *flight) outgoing() []outgoing {
	if f == nil {
		return nil
	}
	return f.sent
}

// inherit gives t the base of its first try, where that has given it back. It reports whether it did.
func (t *taking) inherit(sh *shard, gone Epoch, now int64, b *Base) bool {
	c := t.repeat.inherited
	t.repeat.inherited = nil
	if c == nil {
		return false
	}
	if c.since < gone || now-c.at >= sh.maxAge {
		sh.restore(key{sess: c.sess, ref: c.ref}, c, gone, now)
		return false
	}
	c.client, c.began = t.client, t.began
	b.claim, b.Ambiguous = *c, c.guessed
	sh.fill(key{sess: c.sess, ref: c.ref}, b)
	return true
}

// disown leaves what the first try leaves to others: t isn't going to be written.
func (t *taking) disown(sh *shard) {
	r := &t.repeat
	if f := sh.flights[t.k]; f != nil && r.of != 0 {
		if i := f.find(r.of); i >= 0 && f.sent[i].heir == t {
			f.sent[i].heir = nil
		}
	}
	now, ix := t.s.clock(), t.s.indices.get(t.k.ref.Index, t.s.clock())
	gone := t.s.indices.gone(ix)
	if c := r.inherited; c != nil {
		k := key{sess: c.sess, ref: c.ref}
		sh.get(k, gone, now)
		sh.restore(k, c, gone, now)
	}
	if r.acknowledged {
		sh.repeatable(t.k, t.hash, nil, now)
	}
	*r = repetition{}
}

// repeatable has a write that was acknowledged, and whose repeat has come to nothing, be repeated by its heir, or whoever comes.
func (sh *shard) repeatable(k key, hash uint64, heir *taking, now int64) {
	if heir != nil {
		heir.repeat.acknowledged = true
		return
	}
	if e, ok := sh.lru.Peek(k); ok {
		if i := e.sent(hash); i >= 0 {
			e.recent[i].abandoned, e.recent[i].at = true, now
		}
	}
}

// sent returns the index of the last write that sent this, or -1.
func (e *entry) sent(hash uint64) int {
	for i := len(e.recent) - 1; i >= 0; i-- {
		if e.recent[i].hash == hash {
			return i
		}
	}
	return -1
}

// abandoned reports whether the write is one that was acknowledged, not long ago, and whose client had left before its answer.
func (t *taking) abandoned(e *entry, now int64) bool {
	return t.hash != 0 && e != nil && slices.ContainsFunc(e.recent, func(o sending) bool {
		return o.hash == t.hash && (o.abandoned && now-o.at < repeatWindow || t.s.gaveUp(o.client, o.began, now))
	})
}

// repeats reports whether the write, for which no read is outstanding, is one that the session has sent before, byte for byte. A client
// that gave up waiting repeats its write; in a session of many clients the own view may be another's by then, and counted from that the
// repeat would undo what others did between.
func (t *taking) repeats(e *entry) bool { return t.hash != 0 && e != nil && e.sent(t.hash) >= 0 }

// mayRepeat reports whether the write, for which a read is outstanding, is one that the session sends or has sent, byte for byte: the read
// may be another client's then, and the write a repetition.
func (t *taking) mayRepeat(e *entry, f *flight) bool {
	return t.repeats(e) || t.hash != 0 && slices.ContainsFunc(f.outgoing(), func(o outgoing) bool { return o.hash == t.hash })
}

// again makes the base of a repeated write: its view is what it sends, so that nothing of it counts twice. What the engine holds is for
// the caller to read.
func (t *taking) again(sh *shard, e *entry, b *Base) {
	o := &e.recent[e.sent(t.hash)]
	c := &b.claim
	c.kind, c.numbers, c.saw, c.again = KindView, o.left, bytes.Clone(t.sent), true
	for i := range e.recent {
		if o := &e.recent[i]; o.hash == t.hash && (o.abandoned || o.client != nil) {
			o.abandoned, o.client = false, nil // of two that were given up each has its repeat
			break
		}
	}
	t.repeat = repetition{}
	sh.fill(e.key, b)
}

// remember keeps a write of an inferred session: for its repeats, and for what its answer told. It returns what it keeps, nil for nothing.
func (e *entry) remember(c *claim, a *Ack) *sending {
	o := sending{hash: c.hash, left: a.Stored.Numbers}
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
		if !e.recent[i].abandoned {
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

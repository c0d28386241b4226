package session

import (
	"bytes"
	"hash/maphash"
	"slices"

	"optimist/internal/doc"
)

// maxRecent bounds how many writes of a document a session is known by, so that their repeats are.
const maxRecent = 16

// sending is a write of an inferred session that was acknowledged lately, by what it sent.
type sending struct {
	hash uint64      // 0: its numbers were given
	left doc.Numbers // of the revision that it left
	told doc.Numbers // what its answer named, where what was sent isn't what was stored
}

// fingerprint makes what is sent known again. In a named session the own view is enough: nobody else writes there.
func (t *taking) fingerprint() {
	if t.hash == 0 && t.sent != nil && !t.k.sess.named && !t.given.Known() {
		t.hash = maphash.Bytes(t.s.seed, t.sent) | 1
	}
}

// repeats reports whether the write, for which no read is outstanding, is one that the session has sent before, byte for byte. A client
// that gave up waiting repeats its write; in a session of many clients the own view may be another's by then, and counted from that the
// repeat would undo what others did between.
func (t *taking) repeats(e *entry) bool {
	return t.hash != 0 && e != nil && slices.ContainsFunc(e.recent, t.same)
}

// mayRepeat reports whether the write, for which a read is outstanding, is one that the session sends or has sent, byte for byte: the read
// may be another client's then, and the write a repetition.
func (t *taking) mayRepeat(e *entry, f *flight) bool {
	return t.repeats(e) || t.hash != 0 && f != nil && slices.Contains(f.sent, t.hash)
}

func (t *taking) same(o sending) bool { return o.hash == t.hash }

// again makes the base of a repeated write: its view is what it sends, so that nothing of it counts twice. What the engine holds is for
// the caller to read.
func (t *taking) again(sh *shard, e *entry, b *Base) {
	last := len(e.recent) - 1
	for !t.same(e.recent[last]) {
		last--
	}
	c := &b.claim
	c.kind, c.numbers, c.saw, c.hash = KindView, e.recent[last].left, bytes.Clone(t.sent), 0
	sh.fill(e.key, b)
}

// remember keeps a write of an inferred session: for its repeats, and for what its answer told.
func (e *entry) remember(hash uint64, a *Ack) {
	o := sending{hash: hash, left: a.Stored.Numbers}
	if !same(a.Stored.Source, a.Sent) {
		if o.told = a.Told; !o.told.Known() {
			o.told = o.left
		}
	}
	if e.key.sess.named || o.hash == 0 && !o.told.Known() {
		return
	}
	if len(e.recent) == maxRecent {
		e.recent = slices.Delete(e.recent, 0, 1)
	}
	e.recent = append(e.recent, o)
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

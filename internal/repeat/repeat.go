// Package repeat knows which writes of a session were sent before: those that are under way, and ended ones that a client may
// send again. It also keeps the queue of writes that wait for a base, because a repeat takes its place there.
//
// It doesn't know what a base is, takes no lock and reads no clock. Times are in nanoseconds since some moment.
package repeat

import (
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"time"

	"optimist/internal/choice"
	"optimist/internal/doc"
)

// A client that gives up a write, because of a time-out for example, sends it again, and its change must not count twice. In a named
// session its own view is enough for that: no other client writes there. In an inferred session others may have read and written since.
// So the package knows every write of such a session by a hash of its body, until no client can repeat it any more:
//
//	the first try is ...          the repeat, which sends the same bytes,
//	under way, and given up       waits for its end, and then:
//	  failed                        has the base of the first try
//	  acknowledged                  has what it sends as its view: nothing of it counts again
//	acknowledged, and unheard     likewise. The client left before it had the answer
//	acknowledged, and heard       counts as an equal change of another client, if there is a read that can be its base
//	in doubt                      has the base of the first try, as a guard alone
//
// "Heard" means that the client got the answer, as far as is known.
//
// Attempt.Follow and History.Find are asked before a base is chosen.

const (
	// soon is the shortest time after which a client gives up a write. A younger write's client is taken to be there, without asking.
	soon = int64(time.Millisecond)
	// late is the same for a write that has been answered. It is longer, because most answers come in time.
	late = 10 * soon
	// repeatWindow is how long a write of the same bytes certainly is a repeat, after the client of an acknowledged write was found to
	// have left.
	repeatWindow = 10 * int64(time.Second)

	// MaxHeard bounds how many writes of a document are kept that were acknowledged and heard.
	MaxHeard = 16
	// MaxPending bounds how many other writes of a document are kept: those that may still be repeated. That many may have waited for one
	// slow write.
	MaxPending = 128
)

// Attempt is one request to write.
type Attempt struct {
	left   func(context.Context) bool
	hash   uint64          // of the bytes that it sends; 0: nobody looks for repeats of it
	client context.Context // of its request; nil: no client waits for its answer, or its repeat has come
	began  int64           // when it came
	before uint64          // the order of the newest read when it came: no later read is its base
	turn   chan struct{}   // closed when it is the first in the queue

	repeat *Attempt // the attempt that repeats this one, and waits for its end; nil: there is none
	first  *Attempt // the attempt that this one repeats; nil: there is none

	state   state
	numbers doc.Numbers // of the revision that it left; if it is in doubt, of its base
	alias   doc.Numbers // the numbers in its answer, if something else was stored than was sent
	at      int64       // when its client was found to have left
}

// state is how far an attempt has come.
type state uint8

const (
	underWay     state = iota // it waits for its base, or is in flight
	acknowledged              // the engine acknowledged it; its client has the answer, or may still get it
	unheard                   // the engine acknowledged it, its client left before the answer, and no repeat has come yet
	inDoubt                   // its result is unknown, and its base was given back
)

// New returns the attempt of a write whose repeats are found by its hash. left reports whether the client of a request has left.
func New(hash uint64, left func(context.Context) bool) *Attempt {
	return &Attempt{hash: hash, left: left}
}

// Waiting returns an attempt that only waits for a base: nobody looks for repeats of it. before is the order of the newest read.
func Waiting(before uint64) *Attempt { return &Attempt{before: before} }

// Begin notes when the attempt came (now), and the order of the newest read then (before). client is the context of its request; nil: no
// client waits for the answer.
func (a *Attempt) Begin(client context.Context, now int64, before uint64) {
	a.client, a.began, a.before = client, now, before
}

// Before is the order of the newest read that the write may have been made from.
func (a *Attempt) Before() uint64 { return a.before }

// Numbers are those of the revision that an acknowledged write left. For a write in doubt they are those of its base.
func (a *Attempt) Numbers() doc.Numbers { return a.numbers }

// IsLookedFor reports whether repeats of the attempt are looked for. a may be nil.
func (a *Attempt) IsLookedFor() bool { return a != nil && a.hash != 0 }

// Hash returns the hash by which repeats are found. It covers the sent bytes, whether they are a part of a document, and the numbers that
// the client named.
func Hash(seed maphash.Seed, sent []byte, part bool, given doc.Numbers) uint64 {
	h := maphash.Bytes(seed, sent)
	if part {
		h = bits.Reverse64(h)
	}
	if given.Known() {
		h ^= maphash.Comparable(seed, given)
	}
	return h | 1
}

// gaveUp reports whether the client of an unanswered attempt has left.
func (a *Attempt) gaveUp(now int64) bool {
	return a != nil && a.client != nil && now-a.began >= soon && a.left(a.client)
}

// pending reports whether the attempt may still be repeated.
func (a *Attempt) pending() bool {
	return a.state == unheard || a.state == inDoubt || a.client != nil || a.repeat != nil
}

// Replace makes a the repeat of first. Until now a waited for another repeat of first, and that one has failed. first was acknowledged; if
// it isn't known (nil), n are the numbers of the revision that it left.
func (a *Attempt) Replace(first *Attempt, n doc.Numbers) {
	if first == nil {
		first = &Attempt{state: acknowledged, numbers: n}
	}
	a.first, first.repeat = first, a
}

// Unfollow ends a's wait for its first try. Either a has the base of that now, or that leaves no base, and a is a write like any other.
// a may be nil.
func (a *Attempt) Unfollow() {
	if a != nil {
		a.first = nil
	}
}

// Disown is for a repeat that won't be written, because its client has left. Another write may then be the repeat of a's first try.
func (a *Attempt) Disown(now int64) {
	first := a.first
	a.first = nil
	if first != nil && first.repeat == a {
		first.repeat = nil
		first.RepeatFailed(now)
	}
}

// RepeatFailed notes that the repeat of an acknowledged write has failed. A later write of the same bytes may then be its repeat. a may be
// nil.
func (a *Attempt) RepeatFailed(now int64) {
	if a != nil && a.state == acknowledged && a.repeat == nil {
		a.state, a.at = unheard, now
	}
}

// RepeatCame notes that the repeat of a has come. Later writes of the same bytes are no repeats of a.
func (a *Attempt) RepeatCame() { a.state, a.client, a.repeat = acknowledged, nil, nil }

// Answer notes that the answer to a is sent. If a's client has left by then, a is unheard.
func (a *Attempt) Answer(now int64) {
	if a.client != nil && now-a.began >= late && a.left(a.client) {
		a.state, a.at = unheard, now
	}
	a.client = nil
}

// History holds the ended writes of a document that a client of an inferred session may repeat.
type History struct {
	kept   []*Attempt // oldest first
	Missed Missed
}

// Missed is a read that a write took although the write may be a repeat. If it is a repeat, the read is missed by the client that made it:
// that client's own write then takes another client's read, and so on.
type Missed struct {
	Read uint64 // the order of the read; 0: there is none
	Till uint64 // the order of the newest read when it was taken
}

// Or reports whether the client that misses its read may take the read of that order in its place.
func (m Missed) Or(order uint64) bool { return order <= m.Till && order != m.Read }

// Find returns the attempt that a certainly repeats (first): the one that a has waited for, or an acknowledged one whose client got no
// answer. doubt is an attempt of the same bytes with an unknown result. Both are nil if there is none.
func (k *History) Find(a *Attempt, now int64) (how choice.Repeat, first, doubt *Attempt) {
	if first = a.first; first != nil {
		how = choice.AwaitedRepeat
	}
	for _, o := range k.kept {
		switch {
		case o.hash != a.hash || a.hash == 0:
		case o.state == inDoubt && doubt == nil:
			doubt = o
		case o.state == inDoubt:
		case first == nil && (o.state == unheard && now-o.at < repeatWindow || o.gaveUp(now) || o.repeat.gaveUp(now)):
			how, first = choice.UnheardRepeat, o
		case how == choice.NoRepeat:
			how = choice.SameSent
		}
	}
	return how, first, doubt
}

// Last returns the numbers of the revision that the last write of the same bytes left. If none is kept, they are those of first.
func (k *History) Last(a, first *Attempt) (n doc.Numbers) {
	if first != nil {
		n = first.numbers
	}
	for _, o := range k.kept {
		if o.hash == a.hash && o.state != inDoubt {
			n = o.numbers
		}
	}
	return n
}

// keep adds a write that has ended. If too many are kept that can't be repeated any more, the oldest of these goes. If too many others are
// kept, the oldest of all goes.
func (k *History) keep(a *Attempt) {
	oldest, heard := -1, 0
	for i := len(k.kept) - 1; i >= 0; i-- {
		if !k.kept[i].pending() {
			oldest, heard = i, heard+1
		}
	}
	switch {
	case heard >= MaxHeard:
		k.kept = slices.Delete(k.kept, oldest, oldest+1)
	case len(k.kept)-heard >= MaxPending:
		k.kept = slices.Delete(k.kept, 0, 1)
	}
	k.kept = append(k.kept, a)
}

// Drop removes a.
func (k *History) Drop(a *Attempt) {
	k.kept = slices.DeleteFunc(k.kept, func(o *Attempt) bool { return o == a })
}

// Acknowledge keeps the write o, which was acknowledged and left the revision of n. alias is the numbers in its answer if something else
// was stored than was sent; else it is zero. If nobody looks for repeats of the write, o is nil, and only alias is kept. waiting is the
// repeat that waits for o; nil: there is none. Acknowledge returns the write if its client has no answer yet and it has no repeat.
func (k *History) Acknowledge(o *Attempt, n, alias doc.Numbers, waiting *Attempt) (unanswered *Attempt) {
	switch {
	case o != nil:
	case !alias.Known():
		return nil
	default:
		o = &Attempt{}
	}
	o.state, o.numbers, o.alias, o.repeat = acknowledged, n, alias, waiting
	k.keep(o)
	if waiting != nil {
		waiting.first, o.client = o, nil
	}
	if o.client == nil {
		return nil
	}
	return o
}

// Doubt keeps the write o, whose result is unknown. n are the numbers of its base.
func (k *History) Doubt(o *Attempt, n doc.Numbers) {
	o.state, o.numbers, o.client = inDoubt, n, nil
	k.keep(o)
}

// Forget makes sure that no later write counts as a repeat of a kept one.
func (k *History) Forget() {
	for _, o := range k.kept {
		o.hash = 0
	}
}

// Room is for how many attempts there is room.
func (k *History) Room() int { return cap(k.kept) }

// Named reports whether the answer to a kept write named n, although the write had sent another body than n's revision has. If a client
// then names n, it is unknown which of the two it has: the client of that write has the sent body, all others have n's revision.
func (k *History) Named(n doc.Numbers) bool {
	return slices.ContainsFunc(k.kept, func(o *Attempt) bool { return o.alias == n })
}

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
//	acknowledged, and heard       is an equal change of somebody else, if a read is there that it can be made from
//	in doubt                      has the base of the first try, as a guard alone
//
// Attempt.Follow and Kept.Find are asked before a base is chosen; Kept.Keep, Inherit and the like are told after the end.

const (
	// soon is how long a client waits for an answer at least, before it gives up. Whether it has left isn't asked before.
	soon = int64(time.Millisecond)
	// late is the same where an answer is there, and most often in time.
	late = 10 * soon
	// repeatWindow is how long after its write was acknowledged a client that gave it up may repeat it, and have that known for
	// certain.
	repeatWindow = 10 * int64(time.Second)

	// MaxHeard bounds how many writes of a document are kept that were acknowledged and heard.
	MaxHeard = 16
	// MaxPending bounds how many more are kept that may be repeated: as many as may have waited for the one that held them up.
	MaxPending = 128
)

// Attempt is one request to write.
type Attempt struct {
	left   func(context.Context) bool
	hash   uint64          // of what it sends; 0: nobody looks for repeats of it
	client context.Context // nil once the client has its answer, or its repeat is here; and where it doesn't wait
	began  int64           // when it came
	before uint64          // the place of the newest read when it came: later ones are not what it was made from
	turn   chan struct{}   // closed when it is the first of those that wait

	repeat *Attempt // has waited for the end of this attempt; nil: none has
	first  *Attempt // what this attempt repeats and has waited for; nil: none

	state   state
	numbers doc.Numbers // of the revision that it left; of one in doubt, those of its base
	alias   doc.Numbers // what its answer named, where what was stored isn't what was sent
	at      int64       // when its client was found to have left
}

// state is how far an attempt has come.
type state uint8

const (
	underWay     state = iota // it waits for its base, or is in flight
	acknowledged              // and its client has its answer, or may get it
	unheard                   // it was acknowledged when its client had left, and hasn't been repeated yet
	inDoubt                   // its result is unknown, and its base was given back
)

// New is an attempt of a write that is known by its hash. left reports whether the client of a request has left.
func New(hash uint64, left func(context.Context) bool) *Attempt {
	return &Attempt{hash: hash, left: left}
}

// Waiting is an attempt of which nobody looks for repeats. It came after the read of that order.
func Waiting(before uint64) *Attempt { return &Attempt{before: before} }

// Begin notes the attempt: when it came, the order of the read before it, and the request whose client waits for the answer, which may be
// nil.
func (a *Attempt) Begin(client context.Context, now int64, before uint64) {
	a.client, a.began, a.before = client, now, before
}

// Before is the order of the newest read that the write may have been made from.
func (a *Attempt) Before() uint64 { return a.before }

// Numbers are of the revision that a write which was acknowledged has left.
func (a *Attempt) Numbers() doc.Numbers { return a.numbers }

// IsLookedFor reports whether the attempt is known again. a may be nil.
func (a *Attempt) IsLookedFor() bool { return a != nil && a.hash != 0 }

// Hash is how what is sent, a document or a part, is known again, with the numbers that the client named.
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

// gaveUp reports whether the client has left that waits for a's answer.
func (a *Attempt) gaveUp(now int64) bool {
	return a != nil && a.client != nil && now-a.began >= soon && a.left(a.client)
}

// pending reports whether it isn't known yet that nobody repeats the attempt.
func (a *Attempt) pending() bool {
	return a.state == unheard || a.state == inDoubt || a.client != nil || a.repeat != nil
}

// Inherit ends a's wait for its first try, whose base it holds from now on.
func (a *Attempt) Inherit() { a.first = nil }

// Replace has a wait no longer: what it repeats was a repeat itself, of first, which was acknowledged, and left the revision of n. first
// may be nil.
func (a *Attempt) Replace(first *Attempt, n doc.Numbers) {
	if first == nil {
		first = &Attempt{state: acknowledged, numbers: n}
	}
	a.first, first.repeat = first, a
}

// StartAnew ends the wait of a repeat for a first try that leaves it nothing.
func (a *Attempt) StartAnew() {
	if a != nil {
		a.first = nil
	}
}

// Disown leaves what the first try leaves to others: a isn't going to be written.
func (a *Attempt) Disown(now int64) {
	first := a.first
	a.first = nil
	if first != nil && first.repeat == a {
		first.repeat = nil
		first.Repeatable(now)
	}
}

// Repeatable is for an acknowledged write whose repeat has failed: any later write may be its repeat.
func (a *Attempt) Repeatable(now int64) {
	if a != nil && a.state == acknowledged && a.repeat == nil {
		a.state, a.at = unheard, now
	}
}

// Repeated notes that a has its repeat: it has only one.
func (a *Attempt) Repeated() { a.state, a.client, a.repeat = acknowledged, nil, nil }

// Answer notes that a's client is sent its answer, if it is still there.
func (a *Attempt) Answer(now int64) {
	if a.client != nil && now-a.began >= late && a.left(a.client) {
		a.state, a.at = unheard, now
	}
	a.client = nil
}

// History are the writes of a document that an inferred session knows of though they have ended.
type History struct {
	kept   []*Attempt // oldest first
	Missed Missed
}

// Missed is a read that was taken by what may be a repeat. The client that made it may write without it. It then takes another
// client's read, and that client is left without one.
type Missed struct {
	Read, Till uint64 // its order, and that of the newest read at the time; 0: none
}

// Or reports whether the read of that order may be written from by the client that misses its read.
func (m Missed) Or(order uint64) bool { return order <= m.Till && order != m.Read }

// Find returns the attempt that a certainly repeats: the one that a has waited for, or an acknowledged one whose client got no answer.
// doubt is an attempt with an unknown result.
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

// Last returns the numbers that the last write of the same bytes left, or those of first.
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

// keep adds a write that has ended. It takes out the oldest that nobody repeats, or the oldest of all, where there are too many.
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

// Drop takes out what is kept of a.
func (k *History) Drop(a *Attempt) {
	k.kept = slices.DeleteFunc(k.kept, func(o *Attempt) bool { return o == a })
}

// Acknowledge keeps a write that was acknowledged, and left the revision of n. alias is what its answer named, where something else is
// stored than was sent. o may be nil, if its answer alone is to be known. waiting is the repeat that has waited for it. Acknowledge returns
// the write if its client has no answer yet, and nobody repeats it.
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

// Doubt keeps a write with an unknown result. n are its base's numbers.
func (k *History) Doubt(o *Attempt, n doc.Numbers) {
	o.state, o.numbers, o.client = inDoubt, n, nil
	k.keep(o)
}

// Forget has nothing be a repeat of what is kept.
func (k *History) Forget() {
	for _, o := range k.kept {
		o.hash = 0
	}
}

// Room is for how many attempts there is room.
func (k *History) Room() int { return cap(k.kept) }

// Named reports whether an answer named n although the sent body isn't n's revision. A client that gives n may then mean the body that it
// sent, or, like clients that haven't written, n's revision.
func (k *History) Named(n doc.Numbers) bool {
	return slices.ContainsFunc(k.kept, func(o *Attempt) bool { return o.alias == n })
}

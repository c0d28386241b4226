package session

import (
	"context"
	"hash/maphash"
	"math/bits"
	"slices"
	"time"

	"optimist/internal/choice"
	"optimist/internal/doc"
)

// A client that gives a write up, because of a time-out say, sends it again, and its change must not count twice. In a named session the
// own view is enough for that: nobody else writes there. In an inferred session others may have read and written since. So every write of
// such a session is known by a hash of what it sends, from when it comes until nobody can repeat it any more:
//
//	the first try is ...          the repeat, which sends the same bytes,
//	under way, and given up       waits for its end, and then:
//	  failed                        has the base of the first try
//	  acknowledged                  has what it sends as its view: nothing of it counts again
//	acknowledged, and unheard     likewise. The client left before it had the answer
//	acknowledged, and heard       is an equal change of somebody else, if a read is there that it can be made from
//	in doubt                      has the base of the first try, as a guard alone
//
// attempt.follow and repeats.find are asked before a base is chosen; repeats.keep, handOver and the like are told after the end.

const (
	// soon is how long a client waits for an answer at least, before it gives up. Whether it has left isn't asked before.
	soon = int64(time.Millisecond)
	// late is the same where an answer is there, and most often in time.
	late = 10 * soon
	// repeatWindow is how long after its write was acknowledged a client that gave it up may repeat it, and have that known for
	// certain.
	repeatWindow = 10 * int64(time.Second)

	// maxHeard bounds how many writes of a document are kept that were acknowledged and heard.
	maxHeard = 16
	// maxPending bounds how many more are kept that may be repeated: as many as may have waited for the one that held them up.
	maxPending = 128
)

// attempt is one request to write.
type attempt struct {
	sh     *shard
	hash   uint64          // of what it sends; 0: nobody looks for repeats of it
	client context.Context // nil once the client has its answer, or its repeat is here; and where it doesn't wait
	began  int64           // when it came
	before uint64          // the place of the newest read when it came: later ones are not what it was made from
	turn   chan struct{}   // closed when it is the first of those that wait

	repeat *attempt // has waited for the end of this attempt; nil: none has
	first  *attempt // what this attempt repeats and has waited for; nil: none
	handed *claim   // the base that first gave back, reserved for this attempt

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
	inDoubt                   // nobody knows what became of it, and its base was given back
)

// hashOf is how what is sent, a document or a part, is known again, with the numbers that the client named.
func hashOf(seed maphash.Seed, sent []byte, part bool, given doc.Numbers) uint64 {
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
func (a *attempt) gaveUp(now int64) bool {
	return a != nil && a.client != nil && now-a.began >= soon && a.sh.left(a.client)
}

// pending reports whether it isn't known yet that nobody repeats the attempt.
func (a *attempt) pending() bool {
	return a.state == unheard || a.state == inDoubt || a.client != nil || a.repeat != nil
}

// follow returns what to wait for where a is sent again: its first try, which the client has given up, is in flight or waits for
// its base. All other clients of the session may have reads outstanding, and none of these is what a was made from.
func (a *attempt) follow(f *inFlight, now int64) <-chan struct{} {
	if a.first != nil && a.first.repeat != a {
		a.first = nil // another repeat has taken its place
	}
	if a.first != nil {
		if a.first.state == underWay {
			return f.landing()
		}
		return nil
	}
	if f == nil || a.hash == 0 {
		return nil
	}
	for _, o := range f.attempts {
		if o.hash == a.hash && o.gaveUp(now) && (o.repeat == nil || o.repeat.gaveUp(now)) {
			a.first, o.repeat = o, a
			return f.landing()
		}
	}
	for _, o := range f.queue {
		if o == a {
			break
		}
		if o.hash == a.hash && o.gaveUp(now) {
			a.before = min(a.before, o.before)
			return f.wait(a)
		}
	}
	return nil
}

// handOver has r hold what its first try, of c, gives back. It stays in flight, so that nobody takes it, or misses it, before r
// has looked.
func (sh *shard) handOver(c claim, r *attempt) {
	if !c.again {
		r.first = nil
		c.attempt, r.handed = r, &c
		sh.depart(&c)
		return
	}
	r.first = c.first
	if r.first == nil {
		r.first = &attempt{state: acknowledged, numbers: c.numbers}
	}
	r.first.repeat = r
}

// startAnew ends the wait of a repeat for a first try that leaves it nothing.
func (a *attempt) startAnew() {
	if a != nil {
		a.first = nil
	}
}

// disown leaves what the first try leaves to others: a isn't going to be written. What it returns is to be released.
func (a *attempt) disown(now int64) *claim {
	first, handed := a.first, a.handed
	a.first, a.handed = nil, nil
	if first != nil && first.repeat == a {
		first.repeat = nil
		first.repeatable(now)
	}
	return handed
}

// repeatable has a write that was acknowledged, and whose repeat has come to nothing, be repeated by whoever comes.
func (a *attempt) repeatable(now int64) {
	if a != nil && a.state == acknowledged && a.repeat == nil {
		a.state, a.at = unheard, now
	}
}

// repeated notes that a has its repeat: it has only one.
func (a *attempt) repeated() { a.state, a.client, a.repeat = acknowledged, nil, nil }

// answer notes that a's client is sent its answer, if it is still there.
func (a *attempt) answer(now int64) {
	if a.client != nil && now-a.began >= late && a.sh.left(a.client) {
		a.state, a.at = unheard, now
	}
	a.client = nil
}

// repeats are the writes of a document that an inferred session knows of though they have ended.
type repeats struct {
	kept   []*attempt // oldest first
	missed missed
}

// missed is a read that was taken by what may be a repeat. The client that made it may write without it. It then takes another
// client's read, and that client is left without one.
type missed struct {
	read, till uint64 // its order, and that of the newest read at the time; 0: none
}

// or reports whether r may be written from by the client that misses its read.
func (m missed) or(r *read) bool { return r.order <= m.till && r.order != m.read }

// find returns what a repeats, as far as that is known for certain: the attempt that it has waited for, or one that was
// acknowledged and that its client hasn't heard of. doubt is one of which nobody knows what became.
func (r *repeats) find(a *attempt, now int64) (how choice.Repeat, first, doubt *attempt) {
	if first = a.first; first != nil {
		how = choice.AwaitedRepeat
	}
	for _, o := range r.kept {
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

// last returns the numbers that the last write of the same bytes left, or those of first.
func (r *repeats) last(a, first *attempt) (n doc.Numbers) {
	if first != nil {
		n = first.numbers
	}
	for _, o := range r.kept {
		if o.hash == a.hash && o.state != inDoubt {
			n = o.numbers
		}
	}
	return n
}

// keep adds a write that has ended. It takes out the oldest that nobody repeats, or the oldest of all, where there are too many.
func (r *repeats) keep(a *attempt) {
	oldest, heard := -1, 0
	for i := len(r.kept) - 1; i >= 0; i-- {
		if !r.kept[i].pending() {
			oldest, heard = i, heard+1
		}
	}
	switch {
	case heard >= maxHeard:
		r.kept = slices.Delete(r.kept, oldest, oldest+1)
	case len(r.kept)-heard >= maxPending:
		r.kept = slices.Delete(r.kept, 0, 1)
	}
	r.kept = append(r.kept, a)
}

// drop takes out what is kept of a.
func (r *repeats) drop(a *attempt) {
	r.kept = slices.DeleteFunc(r.kept, func(o *attempt) bool { return o == a })
}

// acknowledge keeps a write that was acknowledged, and what its answer named. It may be nil, if its answer alone is to be known.
// waiting is the repeat that has waited for it. It returns the write if its client has no answer yet, and nobody repeats it.
func (r *repeats) acknowledge(o *attempt, a *Ack, waiting *attempt) (unanswered *attempt) {
	var alias doc.Numbers
	if !same(a.Stored.Source, a.Sent) {
		if alias = a.Told; !alias.Known() {
			alias = a.Stored.Numbers
		}
	}
	switch {
	case o != nil:
	case !alias.Known():
		return nil
	default:
		o = &attempt{}
	}
	o.state, o.numbers, o.alias, o.repeat = acknowledged, a.Stored.Numbers, alias, waiting
	r.keep(o)
	if waiting != nil {
		waiting.first, o.client = o, nil
	}
	if o.client == nil {
		return nil
	}
	return o
}

// named reports whether an answer named n although what was sent isn't the revision that n are of. Who gives n then may mean what
// it sent, or, like everybody who hasn't written, that revision.
func (r *repeats) named(n doc.Numbers) bool {
	return slices.ContainsFunc(r.kept, func(o *attempt) bool { return o.alias == n })
}

package session

import (
	"context"
	"slices"
	"time"

	"optimist/internal/doc"
)

const (
	// soon is how long a client waits for an answer at least, before it gives up. Whether it has left isn't asked before.
	soon = int64(time.Millisecond)
	// late is the same where an answer is there, and most often in time.
	late = 10 * soon
)

// attempt is one request to write: from when it waits for a base until nobody repeats it any more.
type attempt struct {
	hash   uint64          // of what it sends; 0: nobody looks for repeats of it
	client context.Context // nil once the client has its answer, or its repeat is here; and where it doesn't wait
	began  int64           // when it came
	before uint64          // the place of the newest read when it came: later ones are not what it was made from
	turn   chan struct{}   // closed when it is the first of those that wait

	repeat *attempt // has waited for the end of this attempt; nil: none has
	first  *attempt // what this attempt repeats and has waited for; nil: none
	handed *claim   // the base that first gave back, reserved for this attempt

	state state
	left  doc.Numbers // of the revision that it left; of one in doubt, those of its base
	told  doc.Numbers // what its answer named, where what was stored isn't what was sent
	at    int64       // when its client was found to have left
}

// state is how far an attempt has come.
type state uint8

const (
	underWay     state = iota // it waits for its base, or is in flight
	acknowledged              // and its client has its answer, or may get it
	unheard                   // it was acknowledged when its client had left, and hasn't been repeated yet
	inDoubt                   // nobody knows what became of it, and its base was given back
)

// gaveUp reports whether the client has left that waits for a's answer.
func (s *Store) gaveUp(a *attempt, now int64) bool {
	return a != nil && a.client != nil && now-a.began >= soon && s.left(a.client)
}

// inFlight is what a session has under way on one document.
type inFlight struct {
	count    int        // the writes whose base is reserved
	reads    int        // of them, those with an outstanding read
	attempts []*attempt // of them, those that may be repeated
	queue    []*attempt // those that wait for a base, in the order in which they came
	done     chan struct{}
}

// any reports whether a base is reserved for any write.
func (f *inFlight) any() bool { return f != nil && f.count > 0 }

// depart counts the write of c as in flight until it lands. The strings of c's key are the store's own.
func (sh *shard) depart(c *claim) {
	f := sh.flight(c.key)
	f.count++
	if c.reads() {
		f.reads++
	}
	if c.attempt != nil {
		f.attempts = append(f.attempts, c.attempt)
	}
}

// flight returns what is in flight of k, made if there is nothing.
func (sh *shard) flight(k key) *inFlight {
	f := sh.inFlight[k]
	if f == nil {
		if n := len(sh.idle); n > 0 {
			f, sh.idle = sh.idle[n-1], sh.idle[:n-1]
		} else {
			f = &inFlight{}
		}
		sh.inFlight[k] = f
	}
	return f
}

// land ends a flight and wakes those who wait for it. It returns the repeat that has waited for it, if there is one.
func (sh *shard) land(c *claim) (repeat *attempt) {
	f := sh.inFlight[c.key]
	f.count--
	if c.reads() {
		f.reads--
	}
	if i := slices.Index(f.attempts, c.attempt); i >= 0 {
		repeat = c.attempt.repeat
		f.attempts = slices.Delete(f.attempts, i, i+1)
	}
	if f.done != nil {
		close(f.done)
		f.done = nil
	}
	sh.rest(c.key, f)
	return repeat
}

// rest puts f away where nothing is in flight any more.
func (sh *shard) rest(k key, f *inFlight) {
	if f.count > 0 || len(f.queue) > 0 {
		return
	}
	delete(sh.inFlight, k)
	if len(sh.idle) < maxIdle {
		sh.idle = append(sh.idle, f)
	}
}

// queue makes t wait behind those of its session and document that wait already, if any, and returns what to wait for. The order matters:
// a client that gave a write up and repeated it has two waiting, goes on after the answer to the later one, and would have what it writes
// then undone by the earlier one.
func (t *taking) queue(f *inFlight) <-chan struct{} {
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
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	t.disown()
	f := t.sh.inFlight[t.k]
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
	t.sh.rest(t.k, f)
}

// landing returns a channel that is closed when one of the writes ends.
func (f *inFlight) landing() <-chan struct{} {
	if f.done == nil {
		f.done = make(chan struct{})
	}
	return f.done
}

// maxIdle bounds the flights that are kept for reuse.
const maxIdle = 64

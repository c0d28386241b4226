package session

import (
	"slices"

	"optimist/internal/doc"
)

// inFlight is what a session has under way on one document.
type inFlight struct {
	count    int           // the writes whose base is reserved
	reads    int           // of them, those with an outstanding read
	attempts []*attempt    // of them, those that may be repeated
	guards   []doc.Numbers // of the bases that are reserved
	queue    []*attempt    // the writes that wait for a base, in the order in which they came
	done     chan struct{}
}

// any reports whether a base is reserved for any write.
func (f *inFlight) any() bool { return f != nil && f.count > 0 }

// sends reports whether one of the writes that may be repeated sends what has that hash.
func (f *inFlight) sends(hash uint64) bool {
	return f != nil && slices.ContainsFunc(f.attempts, func(o *attempt) bool { return o.hash == hash })
}

// depart counts the write of c as in flight until it lands. The strings of c's key are the store's own.
func (sh *shard) depart(c *claim) {
	f := sh.inFlight[c.key]
	if f == nil {
		if n := len(sh.idle); n > 0 {
			f, sh.idle = sh.idle[n-1], sh.idle[:n-1]
		} else {
			f = &inFlight{}
		}
		sh.inFlight[c.key] = f
	}
	f.count++
	if c.reads() {
		f.reads++
	}
	if c.guards() {
		f.guards = append(f.guards, c.note().Numbers)
	}
	if c.attempt != nil {
		f.attempts = append(f.attempts, c.attempt)
	}
}

// land ends a flight and wakes those who wait for it. It returns the repeat that has waited for it, if there is one.
func (sh *shard) land(c *claim) (repeat *attempt) {
	f := sh.inFlight[c.key]
	f.count--
	if c.reads() {
		f.reads--
	}
	if i := slices.Index(f.guards, c.note().Numbers); i >= 0 && c.guards() {
		f.guards = slices.Delete(f.guards, i, i+1)
	}
	if i := slices.Index(f.attempts, c.attempt); i >= 0 {
		repeat, c.attempt.repeat = c.attempt.repeat, nil
		f.attempts = slices.Delete(f.attempts, i, i+1)
	}
	if f.done != nil {
		close(f.done)
		f.done = nil
	}
	sh.rest(c.key, f)
	return repeat
}

// maxIdle bounds the flights that are kept for reuse.
const maxIdle = 64

// rest puts f away where nothing is in flight any more, and nobody waits.
func (sh *shard) rest(k key, f *inFlight) {
	if f.count > 0 || len(f.queue) > 0 {
		return
	}
	delete(sh.inFlight, k)
	if len(sh.idle) < maxIdle {
		sh.idle = append(sh.idle, f)
	}
}

// landing returns a channel that is closed when one of the writes ends.
func (f *inFlight) landing() <-chan struct{} {
	if f.done == nil {
		f.done = make(chan struct{})
	}
	return f.done
}

// wait makes a wait behind those that wait already, and returns what to wait for. The order matters: a client that gave a write
// up and repeated it has two waiting, and goes on after the answer to the later one. The earlier one must not undo what it writes
// then.
func (f *inFlight) wait(a *attempt) <-chan struct{} {
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

// leave ends a's wait and gives the turn to the next.
func (sh *shard) leave(k key, a *attempt) {
	f := sh.inFlight[k]
	if f == nil {
		return
	}
	i := slices.Index(f.queue, a)
	if i < 0 {
		return
	}
	f.queue = slices.Delete(f.queue, i, i+1)
	if i == 0 && len(f.queue) > 0 {
		close(f.queue[0].turn)
	}
	sh.rest(k, f)
}

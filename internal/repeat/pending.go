package repeat

import (
	"slices"

	"optimist/internal/doc"
)

// PendingTable has the writes that are under way, by session and document. The zero value holds nothing. It is for one goroutine at a time.
type PendingTable[K comparable] struct {
	of   map[K]*Pending
	idle []*Pending
}

// Pending is what a session has under way on one document.
type Pending struct {
	writes []PendingWrite // whose base is reserved, in the order in which they got it
	queue  []*Attempt     // the writes that wait for a base, in the order in which they came
	done   chan struct{}
}

// PendingWrite is a write whose base is reserved.
type PendingWrite struct {
	Arrived uint64   // the place of the newest read when it came
	Attempt *Attempt // nil: nobody looks for repeats of it
	Reads   bool     // an outstanding read is reserved
	Guards  bool     // a base is reserved that somebody has in hand
	Guard   doc.Numbers
}

// Of returns the writes under way at k; nil: there are none.
func (fs *PendingTable[K]) Of(k K) *Pending { return fs.of[k] }

// Len is how many entries the table has.
func (fs *PendingTable[K]) Len() int { return len(fs.of) }

// Any reports whether a base is reserved for any write. f may be nil, as in all methods of an entry that only read.
func (f *Pending) Any() bool { return f != nil && len(f.writes) > 0 }

// ReadsOfEarlier reports whether an outstanding read is reserved for a write that came no later than the read of that order.
func (f *Pending) ReadsOfEarlier(arrived uint64) bool {
	return f != nil && slices.ContainsFunc(f.writes, func(w PendingWrite) bool { return w.Reads && w.Arrived <= arrived })
}

// Guards are the numbers of the bases that are reserved.
func (f *Pending) Guards() (ns []doc.Numbers) {
	if f == nil {
		return nil
	}
	for i := range f.writes {
		if w := &f.writes[i]; w.Guards {
			ns = append(ns, w.Guard)
		}
	}
	return ns
}

// OthersWait reports whether writes that came before a wait for a base.
func (f *Pending) OthersWait(a *Attempt) bool { return f != nil && len(f.queue) > 0 && f.queue[0] != a }

// Sends reports whether one of the writes that may be repeated sends what a does.
func (f *Pending) Sends(a *Attempt) bool {
	return f != nil && slices.ContainsFunc(f.writes, func(w PendingWrite) bool { return w.Attempt != nil && w.Attempt.hash == a.hash })
}

// Follow returns what to wait for where a is sent again: its first try, which the client has given up, is in flight or waits for
// its base. All other clients of the session may have reads outstanding, and none of these is what a was made from.
func (a *Attempt) Follow(f *Pending, now int64) <-chan struct{} {
	if a.first != nil && a.first.repeat != a {
		a.first = nil // another repeat has taken its place
	}
	if a.first != nil {
		if a.first.state == underWay {
			return f.ended()
		}
		return nil
	}
	if f == nil || a.hash == 0 {
		return nil
	}
	for i := range f.writes {
		if o := f.writes[i].Attempt; o != nil && o.hash == a.hash && o.gaveUp(now) && (o.repeat == nil || o.repeat.gaveUp(now)) {
			a.first, o.repeat = o, a
			return f.ended()
		}
	}
	for _, o := range f.queue {
		if o == a {
			break
		}
		if o.hash == a.hash && o.gaveUp(now) {
			a.before = min(a.before, o.before)
			return f.Wait(a)
		}
	}
	return nil
}

// Start counts a write as in flight until End. The strings of k are kept.
func (fs *PendingTable[K]) Start(k K, d PendingWrite) {
	f := fs.of[k]
	if f == nil {
		if n := len(fs.idle); n > 0 {
			f, fs.idle = fs.idle[n-1], fs.idle[:n-1]
		} else {
			f = &Pending{}
		}
		if fs.of == nil {
			fs.of = make(map[K]*Pending)
		}
		fs.of[k] = f
	}
	f.writes = append(f.writes, d)
}

// End counts a write as no longer in flight, and wakes the writes that wait for its end. It returns the repeat that has waited for it, if
// there is one.
func (fs *PendingTable[K]) End(k K, d PendingWrite) (repeat *Attempt) {
	f := fs.of[k]
	i := slices.Index(f.writes, d)
	f.writes = slices.Delete(f.writes, i, i+1)
	if d.Attempt != nil {
		repeat, d.Attempt.repeat = d.Attempt.repeat, nil
	}
	if f.done != nil {
		close(f.done)
		f.done = nil
	}
	fs.rest(k, f)
	return repeat
}

// maxIdle bounds the entries that are kept for reuse.
const maxIdle = 64

// rest puts f away where nothing is in flight any more, and nobody waits.
func (fs *PendingTable[K]) rest(k K, f *Pending) {
	if len(f.writes) > 0 || len(f.queue) > 0 {
		return
	}
	delete(fs.of, k)
	if len(fs.idle) < maxIdle {
		fs.idle = append(fs.idle, f)
	}
}

// ended returns a channel that is closed when one of the writes ends.
func (f *Pending) ended() <-chan struct{} {
	if f.done == nil {
		f.done = make(chan struct{})
	}
	return f.done
}

// Wait adds a wait behind the others, and returns the channel to wait for. The order matters: a client that gave a write up and repeated
// it has two waiting, and goes on after the answer to the later one. The earlier one must not undo what it writes then.
func (f *Pending) Wait(a *Attempt) <-chan struct{} {
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
	return f.ended()
}

// Leave ends a's wait and gives the turn to the next.
func (fs *PendingTable[K]) Leave(k K, a *Attempt) {
	f := fs.of[k]
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
	fs.rest(k, f)
}

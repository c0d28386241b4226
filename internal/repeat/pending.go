package repeat

import (
	"slices"

	"optimist/internal/doc"
)

// PendingTable holds the writes that are under way, by session and document. The zero value is empty. Only one goroutine at a time may
// use it.
type PendingTable[K comparable] struct {
	of   map[K]*Pending
	idle []*Pending
}

// Pending is what a session has under way on one document.
type Pending struct {
	writes []PendingWrite // the writes with a reserved base, in the order in which they got it
	queue  []*Attempt     // the writes that wait for a base, in the order in which they came
	done   chan struct{}  // closed when the next of writes ends; nil: nobody waits for that

	newestRead, newestWrite uint64 // the places of what the session has read and written last while writes were under way
}

// PendingWrite is a write whose base is reserved.
type PendingWrite struct {
	Arrived uint64      // the order of the newest read when the write came
	Attempt *Attempt    // nil: nobody looks for repeats of the write
	Reads   bool        // the reserved base is an outstanding read
	Guards  bool        // the reserved base is a revision that a client has in hand
	Guard   doc.Numbers // the numbers of that revision
}

// Of returns the writes under way at k; nil: there are none.
func (fs *PendingTable[K]) Of(k K) *Pending { return fs.of[k] }

// Len is how many entries the table has.
func (fs *PendingTable[K]) Len() int { return len(fs.of) }

// Any reports whether any write has a reserved base. f may be nil, as for all methods that change nothing.
func (f *Pending) Any() bool { return f != nil && len(f.writes) > 0 }

// ReadsOfEarlier reports whether an outstanding read is reserved for a write that came no later than arrived: the order of the newest read
// at the time.
func (f *Pending) ReadsOfEarlier(arrived uint64) bool {
	return f != nil && slices.ContainsFunc(f.writes, func(w PendingWrite) bool { return w.Reads && w.Arrived <= arrived })
}

// Guards returns the numbers of the reserved bases that clients have in hand.
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

// Saw notes the places of what the session has read and written last. What else is known of that may be forgotten while writes are under
// way.
func (f *Pending) Saw(read, write uint64) {
	if f != nil {
		f.newestRead, f.newestWrite = max(f.newestRead, read), max(f.newestWrite, write)
	}
}

// SawSince reports whether the session has both read and written after that place in the order, while writes were under way.
func (f *Pending) SawSince(order uint64) bool {
	return f != nil && min(f.newestRead, f.newestWrite) > order
}

// OthersWait reports whether another write than a is the first that waits for a base.
func (f *Pending) OthersWait(a *Attempt) bool { return f != nil && len(f.queue) > 0 && f.queue[0] != a }

// Sends reports whether one of the writes under way may be repeated, and sends the same bytes as a.
func (f *Pending) Sends(a *Attempt) bool {
	return f != nil && slices.ContainsFunc(f.writes, func(w PendingWrite) bool { return w.Attempt != nil && w.Attempt.hash == a.hash })
}

// Follow looks for the first try of a: a write of the same bytes whose client has left. If that is in flight, or waits for its base,
// Follow returns the channel to wait for. Else it returns nil. a must not take a read meanwhile: the outstanding reads are those of other
// clients, because the first try holds, or waits for, the base that a was made from.
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

// Start counts a write as in flight until End. It returns the writes among which that is. The table keeps the strings of k.
func (fs *PendingTable[K]) Start(k K, d PendingWrite) *Pending {
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
	return f
}

// End counts a write as no longer in flight, and wakes the writes that wait for its end. f is what Start has returned for the write. End
// returns the repeat that waits for this write; nil: there is none.
func (fs *PendingTable[K]) End(f *Pending, k K, d PendingWrite) (repeat *Attempt) {
	if i := slices.Index(f.writes, d); i >= 0 {
		f.writes = slices.Delete(f.writes, i, i+1)
	}
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

// maxIdle bounds the entries that are kept for reuse. A bulk has many writes under way at once, and a store of the usual size has four of
// these tables.
const maxIdle = 256

// rest puts f away for reuse if no write is in flight any more, and none waits.
func (fs *PendingTable[K]) rest(k K, f *Pending) {
	if len(f.writes) > 0 || len(f.queue) > 0 {
		return
	}
	delete(fs.of, k)
	f.newestRead, f.newestWrite = 0, 0
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

// Wait puts a at the end of the queue, if it isn't in it, and returns the channel to wait for. Writes leave the queue in the order in
// which they came. Otherwise this could happen: a client gives up a write and repeats it, both wait, the repeat is answered first, and the
// client writes again. If the first try went only then, it would undo that newer write.
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

// Leave takes a out of the queue, and gives the turn to the next write.
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

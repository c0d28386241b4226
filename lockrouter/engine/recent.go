package engine

import (
	"context"

	"optimist/lockrouter/state"
)

// A lock document that this process itself changed a moment ago needn't be read again, and needs no script: the call is carried out here,
// on what is known, and written under the guard of that revision. A plain write takes the engine about two thirds of the time of a script,
// and the answer doesn't bring the document back. Whatever isn't sure is left to the script: a document that others have changed, a clock
// that wasn't read just now, anything that would end by the clock soon, and a call that changes nothing, because only a read can say so.
//
// The clock is the engine's all the same: the last script has said what time it was, this process's own clock how long ago that was at
// least, and at most. Leases are made longer by what lies in between.

// reading is the engine's clock as a script has told it, in ms; sent and received are by this process's clock.
type reading struct{ seen, sent, received int64 }

// The bounds of what is taken to be known of the engine's clock, in ms.
const (
	readFor = 1000 // how old a reading may be: clocks drift apart by less than a ms in that time
	unsure  = 100  // how far apart the earliest and the latest time may lie
	soon    = 200  // what ends within this time is judged by a script
)

// at is the time by the engine's clock: no earlier than the clock says, and how much later it may be. ok is false if that can't be told.
func (r *reading) at(now int64) (c state.Clock, ok bool) {
	earliest := r.seen + max(now-r.received-1, 0)
	latest := r.seen + now + 1 - r.sent + 1
	return state.Clock{Now: earliest, Slack: latest - earliest}, now-r.sent <= readFor && latest-earliest <= unsure
}

// latest is a document as this process's last call has left it.
type latest struct {
	doc         *state.Doc // not to be changed
	numbers     numbers
	reading     reading
	undisturbed bool // nobody else has changed it since the call before
}

// recent are documents that were changed a moment ago. It is safe for concurrent use.
type recent struct{ remembered[*latest] }

// The bounds of what is remembered: about 50 MB at the most.
const (
	recentDocs   = 4096
	recentLeases = 200_000
)

func newRecent() *recent {
	r := new(recent)
	r.init(recentDocs, recentLeases)
	return r
}

func (l *latest) document() *state.Doc { return l.doc }

// noteOwn takes note of a document as this process's call has left it.
func (r *recent) noteOwn(id string, d *state.Doc, n numbers, read reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, ok := r.docs.Peek(id)
	r.put(id, &latest{doc: d, numbers: n, reading: read, undisturbed: !ok || before.doc.Beat+1 == d.Beat})
}

// noteForeign takes note that somebody else has changed a document.
func (r *recent) noteForeign(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.docs.Peek(id); ok {
		l.undisturbed = false
	}
}

// get is what is known of a document, if it is to be relied on.
func (r *recent) get(id string) (latest, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.docs.Get(id)
	if !ok || !l.undisturbed {
		return latest{}, false
	}
	return *l, true
}

// ahead carries the call out here, on what is known of the document. done is false if that is to be left to the script; nothing has changed
// then.
func (s *Store) ahead(ctx context.Context, id string, c *state.Call) (d *state.Doc, results []state.Result, done bool, err error) {
	l, ok := s.recent.get(id)
	if !ok {
		return nil, nil, false, nil
	}
	clock, ok := l.reading.at(s.monotonic())
	if !ok || clock.Now < l.doc.Seen || l.doc.Ends(clock.Now+clock.Slack+soon) {
		return nil, nil, false, nil
	}
	d = l.doc.Clone()
	results, changed := d.Apply(c, clock)
	if !changed {
		return nil, nil, false, nil
	}
	n, written, err := s.put(ctx, id, d, l.numbers)
	switch {
	case err != nil:
		s.recent.forget(id) // it may have been written
		return nil, nil, false, err
	case !written:
		s.recent.noteForeign(id)
		return nil, nil, false, nil
	}
	s.recent.noteOwn(id, d, n, l.reading)
	return d, results, true, nil
}

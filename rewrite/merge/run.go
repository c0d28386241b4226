package merge

import (
	"sync"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// A run is one merge. Its memory is kept between calls, because every write under contention needs one.
type run struct {
	diff.Workspace
	scopes
	splicer
	base, sent, cur        tree.Tree
	observer               observer
	steps                  []steps             // of the Merger
	remembers              bool                // what it meets, in steps
	echo                   bool                // see Result
	gone                   map[tree.Value]bool // see goes
	overwritten, conflicts pathList
}

var runs = sync.Pool{New: func() any { return new(run) }}

// begin reads the three documents. The run must be ended, also after an error.
func (m *Merger) begin(base, sent, current []byte, o observer) (*run, error) {
	r, _ := runs.Get().(*run)
	r.rules, r.steps, r.src, r.observer = m.rules, m.steps, current, o
	_, r.remembers = o.(silence) // who only wants to know leaves no trace
	r.Begin(m.limits)
	if err := r.base.ParseObject(base, m.limits); err != nil {
		return r, err
	}
	if err := r.sent.ParseObject(sent, m.limits); err != nil {
		return r, err
	}
	return r, r.cur.ParseObject(current, m.limits)
}

// end gives the run's memory back. It keeps no reference to the documents, and no memory that a single huge one needed.
func (r *run) end() {
	const keepSplices = 1 << 12
	r.Release()
	r.base.Release()
	r.sent.Release()
	r.cur.Release()
	clear(r.splices)
	if cap(r.splices) > keepSplices {
		r.splices = nil
	}
	r.scopes = scopes{trail: r.trail[:0], states: r.states[:0]}
	r.splicer = splicer{splices: r.splices[:0]}
	r.observer, r.steps, r.echo, r.gone, r.overwritten, r.conflicts = nil, nil, false, nil, pathList{}, pathList{}
	runs.Put(r)
}

// decide says whose one value is as a whole; any of the three may be missing. both says that both sides changed it, so that the
// strategy decided.
func (r *run) decide(b, s, c tree.Value, sc scope) (v Verdict, both bool) {
	switch {
	case b.Equal(s):
		return Kept, false
	case b.Equal(c):
		return Taken, false
	case s.Equal(c):
		return Agreed, false
	}
	return r.byStrategy(sc), true
}

// byStrategy is the verdict where both sides changed a value.
func (r *run) byStrategy(sc scope) Verdict {
	switch r.strategy(sc) {
	case Sent:
		return Overwritten
	case Current:
		return Kept
	}
	return Conflict
}

// takes decides about one value as a whole, notes that, and reports whether it is to be as the client has it.
func (r *run) takes(b, s, c tree.Value, sc scope) bool {
	v, both := r.decide(b, s, c, sc)
	r.observer.decided(r, v, both, sides{b, s, c}, sc)
	return r.note(v)
}

// note notes a verdict about the value at the trail, and reports whether the client's value is taken.
func (r *run) note(v Verdict) bool {
	switch v {
	case Overwritten:
		r.overwritten.add(r.trail)
	case Conflict:
		r.conflicts.add(r.trail)
	}
	return v == Taken || v == Overwritten
}

// sides are a value in the three documents; each may be missing.
type sides struct{ b, s, c tree.Value }

// An observer follows a merge. The value that a call is about is at the run's trail.
type observer interface {
	// untouched is called for a value that the client left alone.
	untouched(r *run, b, c tree.Value)
	// decided is called for a value that is settled as a whole. both says that both sides changed it, so that sc's strategy decided.
	decided(r *run, v Verdict, both bool, of sides, sc scope)
	// edited is called for an array before its edits are carried out one by one.
	edited(r *run, of sides)
}

// silence is the observer of a merge that nobody asked about.
type silence struct{}

func (silence) untouched(*run, tree.Value, tree.Value)    {}
func (silence) decided(*run, Verdict, bool, sides, scope) {}
func (silence) edited(*run, sides)                        {}

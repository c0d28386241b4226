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
	account                *account            // of Explain; nil: nobody asked
	steps                  []steps             // of the Merger
	setter                 Setter              // of the Merger
	parts                  bool                // of the Merger
	seen                   sight               // whether the client seems to have seen what others have put in
	echo                   bool                // see Result
	gone                   map[tree.Value]bool // see goes
	overwritten, conflicts pathList
}

var runs = sync.Pool{New: func() any { return new(run) }}

// begin begins the merge of three documents. The run must be ended, also after an error.
func (m *Merger) begin(base, sent, current []byte) (*run, error) {
	r, _ := runs.Get().(*run)
	r.rules, r.steps, r.setter, r.parts = m.rules, m.steps, m.setter, m.parts
	return r, r.read(base, sent, current, m.limits)
}

// read reads the three documents.
func (r *run) read(base, sent, current []byte, l tree.Limits) error {
	r.src = current
	r.Begin(l)
	if err := r.base.ParseObject(base, l); err != nil {
		return err
	}
	if err := r.sent.ParseObject(sent, l); err != nil {
		return err
	}
	return r.cur.ParseObject(current, l)
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
	r.account, r.steps, r.setter, r.seen, r.echo, r.gone = nil, nil, nil, unjudged, false, nil
	r.overwritten, r.conflicts = pathList{}, pathList{}
	runs.Put(r)
}

// A ruling is what is decided about a value as a whole.
type ruling struct {
	verdict Verdict
	both    bool   // both sides changed it, so that the strategy decided
	made    []byte // the value that a strategy made of the others, where current has none
}

// decide rules whose one value is as a whole; any of the three may be missing.
func (r *run) decide(b, s, c tree.Value, sc scope) ruling {
	switch {
	case b.Equal(s):
		return ruling{verdict: Kept}
	case b.Equal(c):
		return ruling{verdict: Taken}
	case s.Equal(c):
		if !r.fails(sc) {
			return ruling{verdict: Agreed}
		}
	case isDropped(b, s):
		return ruling{verdict: Kept}
	case isDropped(b, c):
		return ruling{verdict: Taken}
	}
	return ruling{verdict: r.byStrategy(sc), both: true}
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
	by := r.decide(b, s, c, sc)
	r.account.decided(r, by, sides{b, s, c}, sc)
	return r.note(by.verdict)
}

// note notes a verdict about the value at the trail, and reports whether the client's value is taken.
func (r *run) note(v Verdict) bool {
	switch v {
	case Overwritten:
		if r.setter == nil || !r.setter.Sets(r.trail.Pointer(maxPathBytes)) {
			r.overwritten.add(r.trail)
		}
	case Conflict:
		r.conflicts.add(r.trail)
	}
	return v == Taken || v == Overwritten
}

// sides are a value in the three documents; each may be missing.
type sides struct{ b, s, c tree.Value }

package edit

import (
	"slices"

	"optimist/rewrite/tree"
)

// maxCompared bounds the comparisons of tokens for which each step is held against each other one. Clients send steps, too (PATCH), and a
// thousand of them with long paths would take seconds, before anybody knows who sent them.
const maxCompared = 1 << 16

// repeatable reports whether steps leave a document that they have been applied to as it is. It errs on the side of no, also where
// there are too many of them to tell.
func repeatable(steps []step) bool {
	tokens := 0
	for i := range steps {
		tokens += 1 + len(steps[i].path) + len(steps[i].from)
	}
	if len(steps)*tokens > maxCompared {
		return false
	}
	for i := range steps {
		s := &steps[i]
		if s.readsChanging() || s.countsTwice() || actions[s.Action].from && overlap(s.from, s.path) {
			return false
		}
		for j := range i {
			if disturb(s, &steps[j]) {
				return false
			}
		}
	}
	return true
}

// readsCurrent reports whether the step does something else where the stored document is another.
func (s *step) readsCurrent() bool {
	return s.Value.Source == FromCurrent || s.When != nil && s.When.ReadsCurrent()
}

// readsChanging reports whether the step does something else the second time, when the stored document and what comes of it are others.
func (s *step) readsChanging() bool {
	return s.readsCurrent() || s.When != nil && s.When.ReadsCandidate()
}

// countsTwice reports whether the step alone may not be done again where it was done already.
func (s *step) countsTwice() bool {
	var last string
	if len(s.path) > 0 {
		last = s.path[len(s.path)-1]
	}
	switch s.Action {
	case OpIncrement, OpAppend, OpMove:
		return true
	case OpReplace, OpTest:
		return false
	case OpRemove, OpRemoveEmpty, OpAdd, OpCopy: // what is behind an element moves up, or back
		if isIndex(last) {
			return true
		}
	}
	for _, t := range s.path {
		if t == "-" {
			return true
		}
	}
	return false
}

// disturb reports whether two steps touch the same value, so that one of them may find there, the second time, what the other left:
// it may fail then, or do what there was no need to do before.
func disturb(s, o *step) bool {
	if s.Action == OpRefuse || o.Action == OpRefuse { // it touches nothing, and has not refused before
		return false
	}
	if widens(s, o) || widens(o, s) {
		return true
	}
	if !overlap(s.path, o.path) && !(actions[s.Action].from && overlap(s.from, o.path)) &&
		!(actions[o.Action].from && overlap(s.path, o.from)) {
		return false
	}
	switch {
	case s.Action == OpTest && o.Action == OpTest:
		return false
	case actions[s.Action].settles && actions[o.Action].settles:
		return !slices.Equal(s.path, o.path) // the one may make what the other has to go through, or had no place for
	case s.Action == OpRemoveEmpty || o.Action == OpRemoveEmpty:
		return !s.bearsPruning() || !o.bearsPruning()
	}
	return true
}

// widens reports whether o may make a member or an element that a `*` of s stands for, the second time.
func widens(s, o *step) bool {
	for k, t := range s.path {
		if t == star && o.makes() && k < len(o.path) && o.path[k] != star && overlap(s.path[:k], o.path[:k]) {
			return true
		}
	}
	return false
}

// bearsPruning reports whether the step does the same again after what is empty was taken away.
func (s *step) bearsPruning() bool {
	for _, t := range s.path {
		if t == star || isIndex(t) {
			return false
		}
	}
	switch s.Action {
	case OpAdd, OpNow, OpMerge, OpRemove, OpRemoveEmpty:
		return true
	case OpUnion: // an element that loses something is not in there the second time
		return s.Value.Source == FromLiteral && !s.literal.Any(tree.Value.IsEmpty)
	}
	return false
}

// overlap reports whether one path may lead to, or through, what the other leads to.
func overlap(a, b []string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != star && b[i] != star && a[i] != b[i] {
			return false
		}
	}
	return true
}

package viewcache

import (
	"slices"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// Programs are by which programs the outstanding reads of one revision were made, as far as is known: any program may have made the others.
// The zero value knows of none.
type Programs [2]programReads

type programReads struct {
	program identity.Program
	count   int32 // 0: the place is free
}

// MadeBy notes that a read of the revision n was made by the program p. If p is 0, it does nothing.
func (e *Entry) MadeBy(p identity.Program, n doc.Numbers) {
	i := Find(e.Reads, n)
	if p == 0 || i < 0 || e.Key.Session.IsNamed() {
		return
	}
	ps := &e.Reads[i].Programs
	k := ps.find(p)
	if k < 0 {
		k = slices.IndexFunc(ps[:], func(r programReads) bool { return r.count == 0 })
	}
	if k >= 0 {
		ps[k].program = p
		ps[k].count++
	}
}

func (ps *Programs) find(p identity.Program) int {
	return slices.IndexFunc(ps[:], func(r programReads) bool { return r.count > 0 && r.program == p })
}

// IsOf reports whether the program p has made one of the reads.
func (ps *Programs) IsOf(p identity.Program) bool { return p != 0 && ps.find(p) >= 0 }

// IsOfOthers reports whether others than the program p have made all of the reads.
func (r *Read) IsOfOthers(p identity.Program) bool {
	return !r.IsOf(p) && r.Programs[0].count+r.Programs[1].count == r.Count
}

// Take takes one of the reads for a write of the program p. It returns the program that made that read. That is p if it can be, else one
// that isn't known (0), else any. Take is called before the read is taken off the count.
func (r *Read) Take(p identity.Program) identity.Program {
	ps := &r.Programs
	k := ps.find(p)
	switch {
	case k >= 0:
	case ps[0].count+ps[1].count < r.Count:
		return 0
	case ps[0].count < ps[1].count:
		k = 1
	default:
		k = 0
	}
	ps[k].count--
	return ps[k].program
}

package viewcache

import (
	"slices"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// maxTraced bounds how many traced reads an entry keeps. Older reads count as made in no trace.
const maxTraced = 512

// Trace notes that a read of the revision n was made in the trace t. If t is zero, it does nothing.
func (e *Entry) Trace(t identity.Trace, n doc.Numbers) {
	if t == (identity.Trace{}) {
		return
	}
	if len(e.Traced) == maxTraced {
		e.Traced = slices.Delete(e.Traced, 0, 1)
	}
	e.Traced = append(e.Traced, TracedRead{t, n})
}

// Untrace is called when a write in the trace t takes one of the count reads of the revision n. It returns the trace of the read that the
// write takes, and removes that from e.Traced. The write takes a read of its own trace if there is one, else a read of no trace (Untrace
// returns the zero value), else the oldest.
func (e *Entry) Untrace(t identity.Trace, n doc.Numbers, count int) identity.Trace {
	i := slices.Index(e.Traced, TracedRead{t, n})
	for k := len(e.Traced) - 1; i < 0 && k >= 0; k-- {
		if e.Traced[k].Numbers != n {
			continue
		}
		if count--; count == 0 {
			i = k
		}
	}
	if i < 0 {
		return identity.Trace{}
	}
	t = e.Traced[i].Trace
	e.Traced = slices.Delete(e.Traced, i, i+1)
	return t
}

// UntraceAll has all reads of the trace t count as made in no trace.
func (e *Entry) UntraceAll(t identity.Trace) {
	e.Traced = slices.DeleteFunc(e.Traced, func(r TracedRead) bool { return r.Trace == t })
}

// HasReadIn reports whether a read in the trace t is outstanding. e may be nil.
func (e *Entry) HasReadIn(t identity.Trace) bool {
	return e != nil && t != (identity.Trace{}) && slices.ContainsFunc(e.Reads, func(r Read) bool {
		return slices.Contains(e.Traced, TracedRead{t, r.Numbers})
	})
}

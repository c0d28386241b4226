package viewcache

import (
	"slices"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// maxTraced bounds how many of them are known of a session and document. Those before are of no trace.
const maxTraced = 512

// Trace notes that a read was made in t.
func (e *Entry) Trace(t identity.Trace, n doc.Numbers) {
	if t == (identity.Trace{}) {
		return
	}
	if len(e.Traced) == maxTraced {
		e.Traced = slices.Delete(e.Traced, 0, 1)
	}
	e.Traced = append(e.Traced, TracedRead{t, n})
}

// Untrace returns in which trace the read was made that a write in t takes, one of count of the same revision: in t if one was, else
// in none if one was, else in that of the oldest.
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

// HasReadIn reports whether a read that was made in t is outstanding.
func (e *Entry) HasReadIn(t identity.Trace) bool {
	return e != nil && t != (identity.Trace{}) && slices.ContainsFunc(e.Reads, func(r Read) bool {
		return slices.Contains(e.Traced, TracedRead{t, r.Numbers})
	})
}

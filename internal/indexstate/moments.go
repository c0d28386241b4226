package indexstate

// Moments are the times at which clients have last done something. Two clients may share a cell: then each of them counts as having done
// what the other did. So no client is ever forgotten, but a yes may be wrong: it must be the safe answer. The zero value is none. Moments
// is safe for concurrent use.
type Moments[W comparable] struct{ last lateTable }

// Note notes that w does it now, in nanoseconds since some moment.
func (m *Moments[W]) Note(w W, now int64) {
	raise(of(m.last.make(), w), uint64(now)+1) //nolint:gosec // it counts from 0. From 1 on: 0 is never
}

// Since reports whether w has done it after a moment, or at it. Without anybody who has it is one load.
func (m *Moments[W]) Since(w W, moment int64) bool {
	last, known := m.lookUp(w)
	return known && last >= moment
}

// Last returns when w, or a client that shares its cell, has last done it. 0: never, or at 0.
func (m *Moments[W]) Last(w W) int64 {
	last, _ := m.lookUp(w)
	return max(last, 0)
}

// lookUp is Last; known is false if none was noted.
func (m *Moments[W]) lookUp(w W) (last int64, known bool) {
	t := m.last.made.Load()
	if t == nil {
		return 0, false
	}
	return int64(of(t, w).Load()) - 1, true //nolint:gosec // it was an int64
}

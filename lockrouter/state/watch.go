package state

// Watch remembers since when this process has seen leases and entries of one document unchanged. The zero value has seen nothing. Times are
// ms of a clock that only this process has and that never goes back, as time.Since gives them. It is not safe for concurrent use.
type Watch struct {
	since map[Mark]int64
}

// See takes note of a document that was read, or written, no later than now; nil is a missing one. See forgets leases that aren't in it.
func (w *Watch) See(d *Doc, now int64) {
	old := w.since
	w.since = nil
	if d == nil {
		return
	}
	seen := make(map[Mark]int64, len(d.Holds)+2*len(d.Queue))
	note := func(m Mark) {
		since, ok := old[m]
		if !ok {
			since = now
		}
		seen[m] = since
	}
	for i := range d.Holds {
		note(d.Holds[i].Mark())
	}
	for i := range d.Queue {
		note(d.Queue[i].Mark())
		if d.Queue[i].TurnSince > 0 {
			note(d.Queue[i].TurnMark())
		}
	}
	w.since = seen
}

// Unchanged is for how long a mark has been seen, at the time now.
func (w *Watch) Unchanged(now int64) func(Mark) int64 {
	seen := w.since // See makes another one: what is given here stays as it is
	return func(m Mark) int64 {
		since, ok := seen[m]
		if !ok {
			return 0
		}
		return now - since
	}
}

// Since is when a mark was first seen.
func (w *Watch) Since(m Mark) (int64, bool) {
	since, ok := w.since[m]
	return since, ok
}

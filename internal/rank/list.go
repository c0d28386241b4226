package rank

import "slices"

// The order of a list counts only in sliding windows: clients of a log append entries and drop the oldest. That is one change, however
// many entries they drop. Otherwise it would look as if they had replaced entries.

const (
	// minKept is how many entries such a list has to keep. Two lists may have fewer in common by chance.
	minKept = 3
	// maxTries bounds the work if many entries of a list are equal.
	maxTries = 8
)

// findSliding finds the lists in which the client would have dropped entries at one end, and put others in at the other end.
func (w *weighing) findSliding(theirs *Digest) {
	w.sliding, w.dropped = w.sliding[:0], 0
	a, b := theirs.lists, w.mine.lists
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch from, to := &a[i], &b[j]; {
		case from.place < to.place:
			i++
		case to.place < from.place:
			j++
		default:
			if len(w.sliding) < maxTouches && slides(theirs.elements[from.from:from.to], w.mine.elements[to.from:to.to]) {
				w.sliding = append(w.sliding, to.place)
			}
			i, j = i+1, j+1
		}
	}
}

// slides reports whether b is a with some entries dropped at one end, and others put in at the other end.
func slides(a, b []uint64) bool {
	if len(a) <= minKept || len(b) <= minKept || a[0] == b[0] && a[1] == b[1] {
		return false // the common case
	}
	tries := maxTries
	for dropped := 1; len(a)-dropped >= minKept && tries > 0; dropped++ {
		kept := len(a) - dropped
		if kept >= len(b) {
			continue
		}
		added := len(b) - kept
		if a[dropped] == b[0] {
			if tries--; slices.Equal(a[dropped:], b[:kept]) {
				return true
			}
		}
		if a[0] == b[added] {
			if tries--; slices.Equal(a[:kept], b[added:]) {
				return true
			}
		}
	}
	return false
}

package session

import (
	"math"

	"optimist/internal/doc"
)

// Measurer measures what clients had seen against one document that was sent. It is used by one goroutine.
type Measurer[D any] interface {
	// Below returns the distance from base to what was sent; base is nil for a document that was absent. A distance of
	// more than limit edits needn't be exact: below is false then.
	Below(base []byte, limit int) (d D, below bool, err error)
	// Close ends the use.
	Close()
}

// Measure is how a Store tells which of several candidates is the closest to what was sent. The zero value takes the
// oldest.
type Measure struct {
	closest func(cs []candidate, sent []byte) int
}

// MeasureWith returns a Measure that begins a Measurer for every write with several candidates. Distances are compared by
// their number of edits first, which edits tells, elements of arrays one by one; then by the total change of numbers. What
// can't be measured is taken only after what can. No lock is held meanwhile.
func MeasureWith[D interface{ Compare(D) int }, M Measurer[D]](begin func(sent []byte) (M, error), edits func(D) int) Measure {
	return Measure{closest: func(cs []candidate, sent []byte) int {
		m, err := begin(sent)
		if err != nil {
			return 0
		}
		defer m.Close()
		var (
			best     int
			class    = last
			distance D
			limit    = math.MaxInt
			saved    = -1 // the oldest that was sent back unchanged
		)
		// The newest first: one of them is close most often, and then the others are soon too far. Of equals the oldest wins.
		for i := len(cs) - 1; i >= 0; i-- {
			d, c := measure(m, &cs[i], sent, limit, edits)
			if c == withoutEdits {
				saved, limit = i, min(limit, coincidence)
			}
			if c > class || class == withEdits && c == withEdits && d.Compare(distance) > 0 {
				continue
			}
			best, class, distance = i, c, d
			if c == withEdits {
				limit = min(limit, edits(d))
			}
		}
		if saved >= 0 && class == withEdits && !coincides(&cs[best], &cs[saved], edits(distance)) {
			return saved
		}
		return best
	}}
}

func measure[D any](m Measurer[D], c *candidate, sent []byte, limit int, edits func(D) int) (d D, _ class) {
	if c.saw == nil && !c.absent {
		return d, unmeasured
	}
	if same(c.saw, sent) {
		return d, withoutEdits
	}
	d, below, err := m.Below(c.saw, limit)
	switch {
	case err != nil:
		return d, unmeasured
	case !below:
		return d, tooFar
	case edits(d) == 0:
		return d, withoutEdits
	default:
		return d, withEdits
	}
}

// candidate is a base that could be taken, as it was when the lock was held. Its bytes are immutable.
type candidate struct {
	numbers doc.Numbers
	version int64 // 0: not known
	absent  bool
	saw     []byte
}

// coincides reports whether a client may well have changed c by so many edits into just what somebody else has stored as z meanwhile: a
// count or an entry, where no more than one write lies between the two. Otherwise z was saved as it was, and taking that for a change of c
// would do again what all others have done since c.
func coincides(c, z *candidate, edits int) bool {
	return edits <= coincidence && (c.version == 0 || z.version <= c.version+1)
}

// coincidence is how many edits coincides allows.
const coincidence = 2

// class orders candidates before their distance does.
type class uint8

const (
	withEdits class = iota
	unmeasured
	// withoutEdits comes late: somebody who read and wrote back another revision changed something, and a save that
	// changes nothing does no harm on any base. But see coincides.
	withoutEdits
	last
	tooFar
)

// of returns the index of the candidate that sent was most likely made from. They come oldest first. A delete sends
// nothing that could be measured: the oldest is the one whose guard overlooks the least.
func (m Measure) of(cs []candidate, sent []byte) int {
	if m.closest == nil || sent == nil {
		return 0
	}
	return m.closest(cs, sent)
}

// Package rank tells which of several revisions a client most likely made its document from.
//
// It promises a guess: it sees bytes, and not who has read them.
package rank

import (
	"bytes"
	"math"

	"optimist/internal/doc"
	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// Closest returns the index of the revision from which the change to what was sent is the smallest. The revisions come oldest first; one
// without numbers is the absent document, and one without bytes isn't known. It is pure, and safe for concurrent use.
//
// The fewest edits win, elements of arrays counted one by one; then the smallest total change of numbers; then the oldest. What isn't
// known comes after what can be measured. What isn't JSON, and a delete, which sends nothing, has the oldest as its base: its guard
// overlooks the least.
func Closest(revisions []doc.Revision, sent []byte) int {
	effects := measure(revisions, sent)
	if effects == nil {
		return 0
	}
	return likeliest(revisions, effects)
}

// effect is what the client did, if it changed a certain revision.
type effect struct {
	class class
	diff.Distance
}

// class orders effects before their distance does.
type class uint8

const (
	changed class = iota
	unmeasured
	// unchanged comes late: whoever wrote another revision back changed something, and a save that changes nothing does no harm on any
	// base. But see coincides.
	unchanged
	tooFar // from another revision the change is smaller
)

// measure returns the effect for each revision, or nil where what was sent can't be measured. The newest is measured first: it is close
// most often, and then the others are soon too far.
func measure(revisions []doc.Revision, sent []byte) []effect {
	m, err := diff.NewMeasurer(sent, tree.Limits{})
	if err != nil {
		return nil
	}
	defer m.Close()
	effects, limit := make([]effect, len(revisions)), math.MaxInt
	for i := len(revisions) - 1; i >= 0; i-- {
		e := effectOn(&revisions[i], sent, m, limit)
		switch e.class {
		case changed:
			limit = min(limit, e.Edits)
		case unchanged:
			limit = min(limit, coincidence)
		}
		effects[i] = e
	}
	return effects
}

func effectOn(r *doc.Revision, sent []byte, m *diff.Measurer, limit int) effect {
	switch {
	case r.Source == nil && r.Known():
		return effect{class: unmeasured}
	case r.Source != nil && bytes.Equal(r.Source, sent):
		return effect{class: unchanged}
	}
	d, below, err := m.Below(r.Source, limit)
	switch {
	case err != nil:
		return effect{class: unmeasured}
	case !below:
		return effect{class: tooFar}
	case d.Edits == 0:
		return effect{class: unchanged}
	}
	return effect{changed, d}
}

// likeliest returns the index of the likeliest effect.
func likeliest(revisions []doc.Revision, effects []effect) int {
	best, saved := 0, -1
	for i, e := range effects {
		if e.class == unchanged && saved < 0 {
			saved = i
		}
		if b := effects[best]; e.class < b.class || e.class == changed && b.class == changed && e.Compare(b.Distance) < 0 {
			best = i
		}
	}
	if saved >= 0 && effects[best].class == changed && !coincides(&revisions[best], &revisions[saved], effects[best].Edits) {
		return saved
	}
	return best
}

// coincides reports whether a client may well have changed r by so many edits into just what somebody else has stored as saved meanwhile:
// a count or an entry, where no more than one write lies between the two. Otherwise saved was written back as it was, and taking that for
// a change of r would do again what all others have done since r.
func coincides(r, saved *doc.Revision, edits int) bool {
	return edits <= coincidence && (r.Version == 0 || saved.Version <= r.Version+1)
}

// coincidence is how many edits coincides allows.
const coincidence = 2

package indexstate

import (
	"hash/maphash"
	"sync/atomic"
)

// momentCells is how many moments are told apart. They take 32 KiB, once there is any.
const momentCells = 4096

// Moments are the times at which clients have last done something. Two clients may share a cell: then each of them counts as having done
// what the other did. So no client is ever forgotten, but a yes may be wrong: it must be the safe answer. The zero value is none. Moments
// is safe for concurrent use.
type Moments[W comparable] struct {
	cells atomic.Pointer[cells]
}

type cells struct {
	seed maphash.Seed // nobody can choose whose cell to share
	last [momentCells]atomic.Int64
}

// Note notes that w does it now, in nanoseconds since some moment.
func (m *Moments[W]) Note(w W, now int64) {
	c := m.cells.Load()
	if c == nil {
		m.cells.CompareAndSwap(nil, &cells{seed: maphash.MakeSeed()})
		c = m.cells.Load()
	}
	raise(of(c, w), now+1) // from 1 on: 0 is never
}

// Since reports whether w has done it after a moment, or at it. Without anybody who has it is one load.
func (m *Moments[W]) Since(w W, moment int64) bool {
	c := m.cells.Load()
	return c != nil && of(c, w).Load() > moment
}

// Last returns when w, or a client that shares its cell, has last done it. 0: never, or at 0.
func (m *Moments[W]) Last(w W) int64 {
	if c := m.cells.Load(); c != nil {
		return max(of(c, w).Load()-1, 0)
	}
	return 0
}

func of[W comparable](c *cells, w W) *atomic.Int64 {
	return &c.last[maphash.Comparable(c.seed, w)%momentCells]
}

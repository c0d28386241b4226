package indexstate

import (
	"hash/maphash"
	"sync/atomic"
)

// tableCells is how many cells a table has. They take 32 KiB.
const tableCells = 4096

// table has a number for each of many things. Two things may share a cell.
type table struct {
	seed  maphash.Seed // nobody can choose whose cell to share
	cells [tableCells]atomic.Uint64
}

// lateTable is a table that takes memory once something is noted in it. The zero value has none.
type lateTable struct{ made atomic.Pointer[table] }

// make returns the table, and makes it if there is none.
func (t *lateTable) make() *table {
	if t.made.Load() == nil {
		t.made.CompareAndSwap(nil, &table{seed: maphash.MakeSeed()})
	}
	return t.made.Load()
}

// of returns the cell of w.
func of[W comparable](t *table, w W) *atomic.Uint64 {
	return &t.cells[maphash.Comparable(t.seed, w)%tableCells]
}

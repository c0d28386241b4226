package rewrite

import "sync"

// A workspace is the memory of one call. It is kept between calls, because every write under contention needs one.
type workspace struct {
	limits          Limits
	cellsLeft       int // for the comparison of arrays
	base, sent, cur tree
	ints            arena[int32]
	refs            arena[valueRef]
	cells           arena[uint16]
	hunks           arena[hunk]
	splices         []splice
	trail           []place
	states          []int32
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

func newWorkspace(l Limits) *workspace {
	w := workspaces.Get().(*workspace)
	w.limits = l.withDefaults()
	w.cellsLeft = cellsPerCall * w.limits.Cells
	return w
}

// free gives the workspace back. It keeps no reference to the documents, and no memory that a single huge one needed.
func (w *workspace) free() {
	const keepInts, keepRefs, keepCells, keepSplices = 1 << 16, 1 << 12, 1 << 20, 1 << 12
	w.base.release()
	w.sent.release()
	w.cur.release()
	w.ints.reset(keepInts)
	w.refs.reset(keepRefs)
	w.cells.reset(keepCells)
	w.hunks.reset(keepRefs)
	clear(w.splices)
	w.splices, w.trail, w.states = w.splices[:0], w.trail[:0], w.states[:0]
	if cap(w.splices) > keepSplices {
		w.splices = nil
	}
	workspaces.Put(w)
}

// marks is a point to which the workspace's arenas can be cut back.
type marks struct{ ints, refs, hunks int }

func (w *workspace) mark() marks { return marks{w.ints.mark(), w.refs.mark(), w.hunks.mark()} }

func (w *workspace) cut(m marks) {
	w.ints.cut(m.ints)
	w.refs.cut(m.refs)
	w.hunks.cut(m.hunks)
}

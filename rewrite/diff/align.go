package diff

import (
	"optimist/rewrite/arena"
	"optimist/rewrite/tree"
)

// None stands for an element without a partner.
const None int32 = -1

// cellsPerCall is how many times Limits.Cells the arrays of one call may take together: a document may have many arrays
// that are each just below the limit.
const cellsPerCall = 16

// A Workspace is the memory in which arrays are compared. Begin must be called before the rest. It belongs to one goroutine.
type Workspace struct {
	Ints  arena.Arena[int32]
	Table tree.Table

	values      arena.Arena[tree.Value]
	hunks       arena.Arena[Hunk]
	edits       arena.Arena[Edit]
	cells       []uint16
	limit, left int // of cells: for one comparison, and for all that are still to come
}

// Begin allows what one call may cost.
func (w *Workspace) Begin(l tree.Limits) {
	w.limit = l.WithDefaults().Cells
	w.left = cellsPerCall * w.limit
}

// Release gives back what was handed out, and the memory that a single huge document needed.
func (w *Workspace) Release() {
	const keepInts, keepValues, keepCells = 1 << 16, 1 << 14, 1 << 20
	w.Ints.Reset(keepInts)
	w.Table.Release(keepValues)
	w.values.Reset(keepValues)
	w.hunks.Reset(keepValues)
	w.edits.Reset(keepValues)
	if cap(w.cells) > keepCells {
		w.cells = nil
	}
}

// Marks is a point to which the workspace can be cut back.
type Marks struct{ ints, values, hunks, edits int }

// Mark returns where the workspace is.
func (w *Workspace) Mark() Marks {
	return Marks{w.Ints.Mark(), w.values.Mark(), w.hunks.Mark(), w.edits.Mark()}
}

// Cut gives back what was handed out since the mark.
func (w *Workspace) Cut(m Marks) {
	w.Ints.Cut(m.ints)
	w.values.Cut(m.values)
	w.hunks.Cut(m.hunks)
	w.edits.Cut(m.edits)
}

// List returns an empty list with room for n values.
func (w *Workspace) List(n int) []tree.Value { return w.values.Alloc(n)[:0] }

// Elements lists the elements of an array; of anything else there are none.
func (w *Workspace) Elements(v tree.Value) []tree.Value {
	return v.AppendElements(w.List(v.Len()))
}

// An Alignment is the canonical script that turns one array into another: the longest common subsequence. Of several it is the one whose
// elements all keep their places, unless the base's elements are told apart, else the leftmost (the one whose pairs come first in the base,
// then in the other array).
type Alignment struct {
	A, B []tree.Value // the elements of both
	To   []int32      // for each element of A, its partner in B, or None: it was removed
	From []int32      // for each element of B, its partner in A, or None: it was inserted
}

// Removed is how many elements of the base have no partner.
func (al *Alignment) Removed() int { return unpaired(al.To) }

// Inserted is how many elements of the other array have no partner.
func (al *Alignment) Inserted() int { return unpaired(al.From) }

func unpaired(partners []int32) (n int) {
	for _, p := range partners {
		if p == None {
			n++
		}
	}
	return n
}

// unpair leaves the elements from place lo on without partners.
func (al *Alignment) unpair(lo int) {
	for k := lo; k < len(al.To); k++ {
		al.To[k] = None
	}
	for k := lo; k < len(al.From); k++ {
		al.From[k] = None
	}
}

func (al *Alignment) pair(i, j int32) { al.To[i], al.From[j] = j, i }

// Align returns the script from array a to array b; a missing array is an empty one. ok is false if the comparison would be over the
// limit.
func (w *Workspace) Align(a, b tree.Value) (al Alignment, ok bool) {
	al.A, al.B = w.Elements(a), w.Elements(b)
	al.To, al.From = w.Ints.Alloc(len(al.A)), w.Ints.Alloc(len(al.B))
	// A common beginning is always part of the leftmost longest common subsequence.
	lo := 0
	for lo < len(al.A) && lo < len(al.B) && al.A[lo].Equal(al.B[lo]) {
		al.pair(int32(lo), int32(lo))
		lo++
	}
	al.unpair(lo)
	if lo == len(al.A) || lo == len(al.B) {
		return al, true
	}
	mark := w.Ints.Mark()
	defer w.Ints.Cut(mark)
	c := comparison{w: w, al: al}
	c.number(lo)
	c.matchBeginning()
	c.matchEnd()
	if !c.matchRest() {
		return al, false
	}
	if !w.TellApart(al.A) {
		al.keepPlaces(lo)
	}
	return al, true
}

// keepPlaces pairs the elements behind the common beginning with those at the same places, where as many are equal so. In an array whose
// places mean something, such as a row of counters, a changed element is then a change, and moves no other.
func (al *Alignment) keepPlaces(lo int) {
	if al.KeepsPlaces() {
		return
	}
	pairs, end := len(al.A)-al.Removed()-lo, min(len(al.A), len(al.B))
	for k := lo; k < end && pairs <= end-k; k++ {
		if al.A[k].Equal(al.B[k]) {
			pairs--
		}
	}
	if pairs == 0 {
		al.pairPlaces(lo)
	}
}

// pairPlaces pairs the elements from place lo on that are equal at the same places, and no others.
func (al *Alignment) pairPlaces(lo int) {
	al.unpair(lo)
	for k := lo; k < len(al.A) && k < len(al.B); k++ {
		if al.A[k].Equal(al.B[k]) {
			al.pair(int32(k), int32(k))
		}
	}
}

// KeepsPlaces reports whether no element has another place than before.
func (al *Alignment) KeepsPlaces() bool {
	for i, j := range al.To {
		if j != None && int(j) != i {
			return false
		}
	}
	return true
}

// MayKeepPlaces reports whether no more elements are others than at the same place before than were removed and inserted. Both arrays have
// the same length.
func (al *Alignment) MayKeepPlaces() bool {
	edits := al.Removed() + al.Inserted()
	for k := range al.A {
		if !al.A[k].Equal(al.B[k]) {
			edits--
		}
	}
	return edits >= 0
}

// Repeats reports whether some of the elements are equal: nothing but their places tells them apart.
func (w *Workspace) Repeats(elements []tree.Value) bool {
	w.Table.Reset(len(elements))
	for k, e := range elements {
		if int(w.Table.Number(e)) < k {
			return true
		}
	}
	return false
}

// TellApart reports whether the elements say themselves which is which: they are strings or objects, and no two are equal. Numbers are
// equal by chance.
func (w *Workspace) TellApart(elements []tree.Value) bool {
	w.Table.Reset(len(elements))
	for k, e := range elements {
		if !e.Kind().HasIdentity() {
			return false
		}
		if int(w.Table.Number(e)) < k {
			return false
		}
	}
	return true
}

// AlignByPlace returns the script from array a to array b in which no element has another place than before.
func (w *Workspace) AlignByPlace(a, b tree.Value) (al Alignment) {
	al.A, al.B = w.Elements(a), w.Elements(b)
	al.To, al.From = w.Ints.Alloc(len(al.A)), w.Ints.Alloc(len(al.B))
	al.pairPlaces(0)
	return al
}

// A comparison finds the pairs of an alignment behind the common beginning.
type comparison struct {
	w    *Workspace
	al   Alignment
	x, y candidates // of A and B
}

// candidates are the elements that occur on both sides: the others have no partner, and leaving them out changes no
// common subsequence. Elements are compared as numbers.
type candidates struct{ place, id []int32 }

func (c *candidates) add(place int, id int32) {
	c.place, c.id = append(c.place, int32(place)), append(c.id, id)
}

func (c *candidates) cut(from, to int) candidates { return candidates{c.place[from:to], c.id[from:to]} }

// number gives the elements from place lo on their numbers.
func (c *comparison) number(lo int) {
	x, y := c.w.Ints.Alloc(len(c.al.A)-lo), c.w.Ints.Alloc(len(c.al.B)-lo)
	ids := &c.w.Table
	ids.Reset(len(x) + len(y))
	for k := range x {
		x[k] = ids.Number(c.al.A[lo+k])
	}
	inA := int32(ids.Len()) // A's numbers come first
	for k := range y {
		y[k] = ids.Number(c.al.B[lo+k])
	}
	inB := c.w.Ints.Alloc(ids.Len())
	for _, id := range y {
		inB[id] = 1
	}
	c.x = candidates{c.w.Ints.Alloc(len(x))[:0], c.w.Ints.Alloc(len(x))[:0]}
	c.y = candidates{c.w.Ints.Alloc(len(y))[:0], c.w.Ints.Alloc(len(y))[:0]}
	for k, id := range x {
		if inB[id] != 0 {
			c.x.add(lo+k, id)
		}
	}
	for k, id := range y {
		if id < inA {
			c.y.add(lo+k, id)
		}
	}
}

func (c *comparison) pair(i, j int) { c.al.pair(c.x.place[i], c.y.place[j]) }

// matchBeginning pairs what both sides begin with.
func (c *comparison) matchBeginning() {
	k := 0
	for k < len(c.x.id) && k < len(c.y.id) && c.x.id[k] == c.y.id[k] {
		c.pair(k, k)
		k++
	}
	c.x, c.y = c.x.cut(k, len(c.x.id)), c.y.cut(k, len(c.y.id))
}

// matchEnd pairs as much of a common end as occurs nowhere else: those elements have no other partners in any longest
// common subsequence. (The rest of a common end is not safe: of a,b and x,b,b the leftmost pair is with the first b.)
func (c *comparison) matchEnd() {
	n, m, best := len(c.x.id), len(c.y.id), 0
	firstX, firstY := c.first(c.x.id), c.first(c.y.id)
	minX, minY := int32(n), int32(m)
	for k := 1; k <= n && k <= m && c.x.id[n-k] == c.y.id[m-k]; k++ {
		id := c.x.id[n-k]
		minX, minY = min(minX, firstX[id]), min(minY, firstY[id])
		if int(minX) >= n-k && int(minY) >= m-k {
			best = k
		}
	}
	for k := 1; k <= best; k++ {
		c.pair(n-k, m-k)
	}
	c.x, c.y = c.x.cut(0, n-best), c.y.cut(0, m-best)
}

// first lists where each number is seen first.
func (c *comparison) first(ids []int32) []int32 {
	first := c.w.Ints.Alloc(c.w.Table.Len())
	for k := len(ids) - 1; k >= 0; k-- {
		first[ids[k]] = int32(k)
	}
	return first
}

// matchRest pairs what is left. It returns false if that is over the limit.
func (c *comparison) matchRest() bool {
	x, y := c.x.id, c.y.id
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return true
	}
	if n*m > c.w.limit || n*m > c.w.left {
		return false
	}
	c.w.left -= n * m
	cells := c.w.longest(x, y)
	for i, j := 0, 0; i < n && j < m; i++ {
		// Of all partners of x[i] the first leaves the most for the rest. It is taken if that is still the longest.
		k := j
		for k < m && y[k] != x[i] {
			k++
		}
		if k < m && cells[(i+1)*(m+1)+k+1]+1 == cells[i*(m+1)+j] {
			c.pair(i, k)
			j = k + 1
		}
	}
	return true
}

// longest returns a table whose cell i*(len(y)+1)+j is the length of the longest common subsequence of x[i:] and y[j:]. It is good until
// the next call.
func (w *Workspace) longest(x, y []int32) []uint16 {
	n, m := len(x), len(y)
	if size := (n + 1) * (m + 1); cap(w.cells) < size {
		w.cells = make([]uint16, size)
	}
	cells := w.cells[:(n+1)*(m+1)]
	clear(cells[n*(m+1):])
	for i := n - 1; i >= 0; i-- {
		row, below := cells[i*(m+1):(i+1)*(m+1)], cells[(i+1)*(m+1):(i+2)*(m+1)]
		row, below = row[:m+1], below[:m+1]
		id, right := x[i], uint16(0)
		row[m] = 0
		for j := m - 1; j >= 0; j-- {
			if y[j] == id {
				right = below[j+1] + 1
			} else {
				right = max(right, below[j])
			}
			row[j] = right
		}
	}
	return cells
}

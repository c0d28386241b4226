package rewrite

// A valueTable gives equal values the same small number, in the order in which they are first seen.
type valueTable struct {
	slots []int32 // id plus 1; 0 is a free slot
	refs  []valueRef
	n     int32 // ids given
}

type valueRef struct {
	t    *tree
	node int32
	hash uint64
}

// newTable returns a table for at most n different values.
func (w *workspace) newTable(n int) valueTable {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return valueTable{slots: w.ints.alloc(size), refs: w.refs.alloc(n)}
}

// id returns the number of value i of t, which is a new one if no equal value was seen before.
func (v *valueTable) id(t *tree, i int32) int32 {
	slot, id := v.lookup(t, i)
	if id == none {
		id = v.n
		v.refs[id] = valueRef{t, i, t.hashOf(i)}
		v.n++
		v.slots[slot] = v.n
	}
	return id
}

// lookup returns the number of value i of t, or none and the slot where it would go.
func (v *valueTable) lookup(t *tree, i int32) (slot int, id int32) {
	hash, mask := t.hashOf(i), len(v.slots)-1
	for slot = int(hash) & mask; v.slots[slot] != 0; slot = (slot + 1) & mask {
		ref := &v.refs[v.slots[slot]-1]
		if ref.hash == hash && equal(ref.t, ref.node, t, i) {
			return slot, v.slots[slot] - 1
		}
	}
	return slot, none
}

// An alignment is the canonical script that turns one array into another: the longest common subsequence, of several the
// leftmost (the one whose pairs come first in the base, then in the other array).
type alignment struct {
	a, b []int32 // the elements of both
	to   []int32 // for each element of a, its partner in b, or none: it was removed
	from []int32 // for each element of b, its partner in a, or none: it was inserted
}

// align returns the script from array i of s to array j of t; a missing array is an empty one. ok is false if the
// comparison would be over the limit.
func (w *workspace) align(s *tree, i int32, t *tree, j int32) (al alignment, ok bool) {
	al.a, al.b = w.elements(s, i), w.elements(t, j)
	al.to, al.from = w.ints.alloc(len(al.a)), w.ints.alloc(len(al.b))
	// A common beginning is always part of the leftmost longest common subsequence.
	lo := 0
	for lo < len(al.a) && lo < len(al.b) && equal(s, al.a[lo], t, al.b[lo]) {
		al.to[lo], al.from[lo] = int32(lo), int32(lo)
		lo++
	}
	for k := lo; k < len(al.a); k++ {
		al.to[k] = none
	}
	for k := lo; k < len(al.b); k++ {
		al.from[k] = none
	}
	if lo == len(al.a) || lo == len(al.b) {
		return al, true
	}
	mark, refs := w.ints.mark(), w.refs.mark()
	defer func() { w.ints.cut(mark); w.refs.cut(refs) }()
	c := comparison{w: w, al: al}
	c.number(s, t, lo)
	c.matchBeginning()
	c.matchEnd()
	return al, c.matchRest()
}

// elements lists the elements of array i.
func (w *workspace) elements(t *tree, i int32) []int32 {
	if !t.is(i, kindArray) {
		return nil
	}
	list := w.ints.alloc(int(t.nodes[i].count))
	c := i + 1
	for k := range list {
		list[k] = c
		c = t.nodes[c].skip
	}
	return list
}

// A comparison finds the pairs of an alignment behind the common beginning.
type comparison struct {
	w    *workspace
	al   alignment
	ids  int        // how many different elements there are
	x, y candidates // of a and b
}

// candidates are the elements that occur on both sides: the others have no partner, and leaving them out changes no
// common subsequence. Elements are compared as numbers.
type candidates struct{ place, id []int32 }

func (c *candidates) from(k int) candidates { return candidates{c.place[k:], c.id[k:]} }
func (c *candidates) to(k int) candidates   { return candidates{c.place[:k], c.id[:k]} }

// number gives the elements from place lo on their numbers.
func (c *comparison) number(s, t *tree, lo int) {
	x, y := c.w.ints.alloc(len(c.al.a)-lo), c.w.ints.alloc(len(c.al.b)-lo)
	ids := c.w.newTable(len(x) + len(y))
	for k := range x {
		x[k] = ids.id(s, c.al.a[lo+k])
	}
	inA := ids.n // a's numbers come first
	for k := range y {
		y[k] = ids.id(t, c.al.b[lo+k])
	}
	c.ids = int(ids.n)
	inB := c.w.ints.alloc(c.ids)
	for _, id := range y {
		inB[id] = 1
	}
	c.x, c.y = c.w.newCandidates(len(x)), c.w.newCandidates(len(y))
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

func (w *workspace) newCandidates(n int) candidates {
	return candidates{w.ints.alloc(n)[:0], w.ints.alloc(n)[:0]}
}

func (c *candidates) add(place int, id int32) {
	c.place, c.id = append(c.place, int32(place)), append(c.id, id)
}

func (c *comparison) pair(i, j int) {
	c.al.to[c.x.place[i]], c.al.from[c.y.place[j]] = c.y.place[j], c.x.place[i]
}

// matchBeginning pairs what both sides begin with.
func (c *comparison) matchBeginning() {
	k := 0
	for k < len(c.x.id) && k < len(c.y.id) && c.x.id[k] == c.y.id[k] {
		c.pair(k, k)
		k++
	}
	c.x, c.y = c.x.from(k), c.y.from(k)
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
	c.x, c.y = c.x.to(n-best), c.y.to(m-best)
}

// first lists where each number is seen first.
func (c *comparison) first(ids []int32) []int32 {
	first := c.w.ints.alloc(c.ids)
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
	if n*m > c.w.limits.Cells || n*m > c.w.cellsLeft {
		return false
	}
	c.w.cellsLeft -= n * m
	mark := c.w.cells.mark()
	cells := c.w.cells.alloc((n + 1) * (m + 1))
	defer c.w.cells.cut(mark)
	fillCells(cells, x, y)
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

// fillCells sets cells[i*(len(y)+1)+j] to the length of the longest common subsequence of x[i:] and y[j:].
func fillCells(cells []uint16, x, y []int32) {
	m := len(y)
	for i := len(x) - 1; i >= 0; i-- {
		row, below := cells[i*(m+1):(i+1)*(m+1)], cells[(i+1)*(m+1):(i+2)*(m+1)]
		row, below = row[:m+1], below[:m+1]
		id, right := x[i], uint16(0)
		for j := m - 1; j >= 0; j-- {
			if y[j] == id {
				right = below[j+1] + 1
			} else {
				right = max(right, below[j])
			}
			row[j] = right
		}
	}
}

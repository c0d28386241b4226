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
	c.matchEnds()
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

// A comparison finds the pairs of an alignment behind the common beginning. Elements are compared as numbers: x[k] is the
// id of element lo+k of a, y[k] of b.
type comparison struct {
	w              *workspace
	al             alignment
	lo             int
	x, y           []int32
	firstX, firstY []int32 // for each id, 1 plus where it is first seen in x and y; 0 if it isn't
}

func (c *comparison) number(s, t *tree, lo int) {
	c.lo = lo
	c.x, c.y = c.w.ints.alloc(len(c.al.a)-lo), c.w.ints.alloc(len(c.al.b)-lo)
	ids := c.w.newTable(len(c.x) + len(c.y))
	for k := range c.x {
		c.x[k] = ids.id(s, c.al.a[lo+k])
	}
	for k := range c.y {
		c.y[k] = ids.id(t, c.al.b[lo+k])
	}
	c.firstX, c.firstY = c.w.ints.alloc(int(ids.n)), c.w.ints.alloc(int(ids.n))
	for k := len(c.x) - 1; k >= 0; k-- {
		c.firstX[c.x[k]] = int32(k) + 1
	}
	for k := len(c.y) - 1; k >= 0; k-- {
		c.firstY[c.y[k]] = int32(k) + 1
	}
}

// matchEnds pairs as much of a common end as occurs nowhere else: those elements have no other partners in any longest
// common subsequence. (The rest of a common end is not safe: of a,b and x,b,b the leftmost pair is with the first b.)
func (c *comparison) matchEnds() {
	n, m, best := len(c.x), len(c.y), 0
	minX, minY := int32(n), int32(m)
	for k := 1; k <= n && k <= m && c.x[n-k] == c.y[m-k]; k++ {
		id := c.x[n-k]
		minX, minY = min(minX, c.firstX[id]-1), min(minY, c.firstY[id]-1)
		if int(minX) >= n-k && int(minY) >= m-k {
			best = k
		}
	}
	for k := 1; k <= best; k++ {
		c.pair(n-k, m-k)
	}
	c.x, c.y = c.x[:n-best], c.y[:m-best]
}

func (c *comparison) pair(i, j int) {
	c.al.to[c.lo+i], c.al.from[c.lo+j] = int32(c.lo+j), int32(c.lo+i)
}

// matchRest pairs what is left. It returns false if that is over the limit.
func (c *comparison) matchRest() bool {
	// What occurs on one side only has no partner.
	x, y := c.shared(c.x, c.firstY), c.shared(c.y, c.firstX)
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return true
	}
	if n*m > c.w.limits.Cells || n*m > c.w.cellsLeft {
		return false
	}
	c.w.cellsLeft -= n * m
	// cells[i*(m+1)+j] is the length of the longest common subsequence of x[i:] and y[j:].
	mark := c.w.cells.mark()
	cells := c.w.cells.alloc((n + 1) * (m + 1))
	defer c.w.cells.cut(mark)
	for i := n - 1; i >= 0; i-- {
		row, below := cells[i*(m+1):(i+1)*(m+1)], cells[(i+1)*(m+1):(i+2)*(m+1)]
		id := c.x[x[i]]
		for j := m - 1; j >= 0; j-- {
			if c.y[y[j]] == id {
				row[j] = below[j+1] + 1
			} else {
				row[j] = max(row[j+1], below[j])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; i++ {
		// Of all partners of x[i] the first leaves the most for the rest. It is taken if that is still the longest.
		k := j
		for k < m && c.y[y[k]] != c.x[x[i]] {
			k++
		}
		if k < m && cells[(i+1)*(m+1)+k+1]+1 == cells[i*(m+1)+j] {
			c.pair(int(x[i]), int(y[k]))
			j = k + 1
		}
	}
	return true
}

// shared lists the places in ids whose id occurs on the other side.
func (c *comparison) shared(ids, first []int32) []int32 {
	list, n := c.w.ints.alloc(len(ids)), 0
	for k, id := range ids {
		if first[id] != 0 {
			list[n] = int32(k)
			n++
		}
	}
	return list[:n]
}

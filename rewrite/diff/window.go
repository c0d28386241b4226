package diff

import "optimist/rewrite/tree"

// AlignWindows changes the scripts of two sides to those of a window that slides, for example of the last ten ratings: it drops elements at
// its one end, and gets others at its other end. An element that it gets may be equal to one that it drops, and is another one all the
// same. AlignWindows returns false, and changes nothing, if the two sides don't look so. Both windows must slide to the same end. Half of
// the shorter array must have stayed, and hardly less than what the longest common subsequence pairs: among many elements, some are equal
// by chance.
func (w *Workspace) AlignWindows(x, y *Alignment) bool {
	mark := w.Ints.Mark()
	defer w.Ints.Cut(mark)
	w.Table.Reset(len(x.A) + len(x.B) + len(y.B))
	a, bx, by := w.numbers(x.A), w.numbers(x.B), w.numbers(y.B)
	borders := w.Ints.Alloc(max(len(a), len(bx), len(by)))
	toEnd := [2]int{overlap(a, bx, borders), overlap(a, by, borders)}
	toBegin := [2]int{overlap(bx, a, borders), overlap(by, a, borders)}
	slide := func(stay [2]int) bool { return x.mayBeWindow(stay[0]) && y.mayBeWindow(stay[1]) }
	sum := func(stay [2]int) int { return stay[0] + stay[1] }
	switch {
	case slide(toEnd) && !(slide(toBegin) && sum(toBegin) > sum(toEnd)):
		x.pairRun(len(a)-toEnd[0], 0, toEnd[0])
		y.pairRun(len(a)-toEnd[1], 0, toEnd[1])
	case slide(toBegin):
		x.pairRun(0, len(bx)-toBegin[0], toBegin[0])
		y.pairRun(0, len(by)-toBegin[1], toBegin[1])
	default:
		return false
	}
	return true
}

// numbers gives the elements their numbers.
func (w *Workspace) numbers(elements []tree.Value) []int32 {
	list := w.Ints.Alloc(len(elements))
	for k, e := range elements {
		list[k] = w.Table.Number(e)
	}
	return list
}

// mayBeWindow reports whether B may be a window that has slid over A, in which so many elements have stayed. One may be equal by chance, to
// one that was dropped and put in.
func (al *Alignment) mayBeWindow(stayed int) bool {
	byChance := min(1, al.Removed(), al.Inserted())
	pairs := len(al.A) - al.Removed()
	return stayed < len(al.B) && 2*stayed >= min(len(al.A), len(al.B)) && stayed+byChance >= pairs
}

// pairRun pairs n elements of A from place i on with those of B from place j on, and no others.
func (al *Alignment) pairRun(i, j, n int) {
	al.unpair(0)
	for k := range n {
		al.pair(int32(i+k), int32(j+k))
	}
}

// overlap returns how many elements at the end of x are those at the beginning of y, at most. It is the search of Knuth, Morris and Pratt
// (Fast Pattern Matching in Strings, 1977) for y in x, which ends within a match. borders has room for y.
func overlap(x, y, borders []int32) (n int) {
	if len(y) == 0 {
		return 0
	}
	borders[0] = 0
	for k := 1; k < len(y); k++ {
		n = extended(y, borders, n, y[k])
		borders[k] = int32(n)
	}
	n = 0
	for _, e := range x {
		n = extended(y, borders, n, e)
	}
	return n
}

// extended returns how many elements of y are matched after the next one, if n were before it.
func extended(y, borders []int32, n int, next int32) int {
	for n > 0 && (n == len(y) || y[n] != next) {
		n = int(borders[n-1])
	}
	if y[n] == next {
		n++
	}
	return n
}

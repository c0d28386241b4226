package merge

import (
	"bytes"
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// edits are the scripts from the base's array to the client's and to current's.
type edits struct {
	sides
	sent, cur     diff.Alignment
	bySent, byCur []diff.Edit
	windows       bool    // they slide, and nothing was moved
	drop          []int32 // 1 for an element of sent that is left out: see dropMoves, dropCopies and dropEchoes
	dropCur       []int32 // 1 for an element of current that is left out: the client has removed it, and others have moved it
}

// edits aligns the arrays. ok is false if that is over the limit.
//
// If some elements are equal, or are arrays of numbers, they say little about which is which. Two kinds of such arrays are known. In a
// window that slides, what one side has put in is never what the other has put in, or has dropped. A row is as long as ever, and its
// elements have places: if the client has moved one, that must not shift others. If no two elements are equal, and current has most of them
// at other places, they are no row: somebody has put one in, and taken another one out.
func (r *run) edits(b, s, c tree.Value, sc scope) (e edits, ok bool) {
	e.sides = sides{b, s, c}
	log := r.strategy(sc) == Append // and no row
	row := !log && b.Len() == s.Len() && b.Len() == c.Len()
	if row && r.countsByPlace(sc) {
		e.sent, e.cur, ok = r.AlignByPlace(b, s), r.AlignByPlace(b, c), true
	} else {
		var fits bool
		e.sent, fits = r.Align(b, s)
		e.cur, ok = r.Align(b, c)
		ok = ok && fits
	}
	if !ok {
		return e, false
	}
	repeats := r.Repeats(e.sent.A)
	if repeats || slices.ContainsFunc(e.sent.A, isNameless) || log && !r.TellApart(e.sent.A) {
		e.windows = (log || !e.keepPlaces(row)) && r.AlignWindows(&e.sent, &e.cur)
		if !e.windows && row && (repeats || e.cur.MayKeepPlaces()) && e.isRow() {
			e.sent, e.cur = r.AlignByPlace(b, s), r.AlignByPlace(b, c)
		}
	}
	e.bySent, e.byCur = r.Edits(&e.sent), r.Edits(&e.cur)
	e.drop, e.dropCur = r.Ints.Alloc(len(e.sent.B)), r.Ints.Alloc(len(e.cur.B))
	return e, true
}

// isNameless reports whether an element is an array without a text, such as a point, or a row of numbers. It may equal another one by
// chance.
func isNameless(e tree.Value) bool {
	return e.Kind() == tree.Array && !e.Any(func(v tree.Value) bool { return v.Kind() == tree.String })
}

// keepPlaces reports whether the two sides say more of a row than of two windows: neither moves an element, or both change few places. A
// window in which nearly all elements are equal looks so, too. If the client moves an element, a clash at a place tells that it is no row.
func (e *edits) keepPlaces(row bool) bool {
	sent, cur := e.sent.KeepsPlaces(), e.cur.KeepsPlaces()
	return sent && cur || row && e.sent.MayKeepPlaces() && e.cur.MayKeepPlaces() && (sent || !e.clashByPlace())
}

// isRow reports whether elements that are no window have places. If the client moves one, and a place clashes, arrays are none: their
// cells would mix.
func (e *edits) isRow() bool {
	isArray := func(v tree.Value) bool { return v.Kind() == tree.Array }
	return e.sent.MayKeepPlaces() && (e.sent.KeepsPlaces() || !e.clashByPlace() ||
		e.cur.MayKeepPlaces() && !slices.ContainsFunc(e.sent.A, isArray))
}

// clashByPlace reports whether some place has one new element on the one side, and another one on the other. All three arrays have the same
// length.
func (e *edits) clashByPlace() bool {
	for k, was := range e.sent.A {
		if s, c := e.sent.B[k], e.cur.B[k]; !was.Equal(s) && !was.Equal(c) && !s.Equal(c) {
			return true
		}
	}
	return false
}

// countsByPlace reports whether a rule makes each element of the array at sc a number of its own, which has no other place.
func (r *run) countsByPlace(sc scope) bool {
	st, ruled := r.ofElements(sc)
	return ruled && st.calculates()
}

// ofElements returns the strategy for the elements of the array at sc, and whether a rule gives it.
func (r *run) ofElements(sc scope) (st Strategy, ruled bool) {
	if sc.lo == sc.hi {
		return r.strategy(sc), false
	}
	element := r.enter(sc, tree.Place{})
	defer r.leave(sc)
	return r.strategy(element), element.rule != 0
}

// maxPoint is how many numbers a point has at most.
const maxPoint = 3

// isPoint reports whether both sides changed arrays that are as long as ever, and hold two or three numbers, some of them decimals: the
// coordinates of a place, or the ends of a range. One number of one side and one of the other would make a place where neither has put it.
// With a rule about the elements, it is no point.
func (r *run) isPoint(b, s, c tree.Value, sc scope) bool {
	n := b.Len()
	if n < 2 || n > maxPoint || s.Len() != n || c.Len() != n || b.Equal(s) || b.Equal(c) {
		return false
	}
	decimals := false
	for _, side := range [...]tree.Value{b, s, c} {
		for e := side.First(); e.Exists(); e = e.Next() {
			if e.Kind() != tree.Number {
				return false
			}
			decimals = decimals || bytes.ContainsAny(e.Raw(), ".eE")
		}
	}
	_, ruled := r.ofElements(sc)
	return decimals && !ruled
}

// array merges arrays of the base (which may be missing), of the client and of current.
func (r *run) array(b, s, c tree.Value, sc scope) {
	mark := r.Mark()
	defer r.Cut(mark)
	if p, ok := r.combine(b, s, c, &sc); ok {
		r.carryOut(p, c, sc)
		return
	}
	if r.strategy(sc).calculates() {
		sc.unfit()
	}
	e, ok := r.edits(b, s, c, sc)
	if !ok || r.isPoint(b, s, c, sc) { // one value, as a whole
		if r.takes(b, s, c, sc) {
			r.replace(c, s.Raw())
		}
		return
	}
	r.account.edited(r, e.sides)
	if len(e.bySent) == 0 && e.sent.Removed() == 0 {
		return
	}
	if p, ok := r.byIdentity(&e, sc); ok {
		r.carryOut(p, c, sc)
		return
	}
	r.failElements(&e, sc)
	e.dropCopies()
	r.dropMoves(&e)
	r.dropEchoes(&e)
	r.writeElements(&e, sc)
}

// dropCopies notes of which elements both sides have others instead, and leaves out what the client has inserted beside such a one if
// current has the same elements there: both made the same change.
func (e *edits) dropCopies() {
	byCur := e.byCur
	for x := range e.bySent {
		s := &e.bySent[x]
		for len(byCur) > 0 && byCur[0].I < s.I {
			byCur = byCur[1:]
		}
		if len(byCur) == 0 || byCur[0].I != s.I || !s.Replaces() || !byCur[0].Replaces() {
			continue
		}
		c := &byCur[0]
		s.Both, c.Both = true, true
		if !e.sameElements(s, c) {
			continue
		}
		for j := s.J; j < s.J+s.K; j++ {
			if j != s.Instead {
				e.drop[j] = 1
			}
		}
	}
}

// sameElements reports whether two edits insert the same.
func (e *edits) sameElements(s, c *diff.Edit) bool {
	if s.K != c.K || s.Instead-s.J != c.Instead-c.J {
		return false
	}
	for x := range s.K {
		if !e.sent.B[s.J+x].Equal(e.cur.B[c.J+x]) {
			return false
		}
	}
	return true
}

// dropMoves leaves out what was put in again of the elements that both sides removed. One that both moved is still one element: it is where
// current has it. A string or an object that one side moved and the other removed is gone, if the base has it once: numbers are equal
// by chance.
func (r *run) dropMoves(e *edits) {
	if e.windows || !e.bothRemove() {
		return
	}
	mark, ids := r.Ints.Mark(), &r.Table
	defer r.Ints.Cut(mark)
	n := len(e.sent.A)
	ids.Reset(n)
	inBase, gone, bySent, byCur := r.Ints.Alloc(n), r.Ints.Alloc(n), r.Ints.Alloc(n), r.Ints.Alloc(n)
	for i, a := range e.sent.A {
		id := ids.Number(a)
		inBase[id]++
		if e.sent.To[i] == diff.None && e.cur.To[i] == diff.None {
			gone[id]++
		}
	}
	again := func(by []diff.Edit, elements []tree.Value, visit func(id, x int32)) {
		inserted(by, func(x int32) {
			if id, ok := ids.Find(elements[x]); ok && gone[id] > 0 {
				visit(id, x)
			}
		})
	}
	moved := func(id int32, v tree.Value) bool {
		return inBase[id] == 1 && v.Kind().HasIdentity()
	}
	again(e.bySent, e.sent.B, func(id, _ int32) { bySent[id]++ })
	again(e.byCur, e.cur.B, func(id, _ int32) { byCur[id]++ })
	again(e.byCur, e.cur.B, func(id, x int32) {
		if bySent[id] == 0 && byCur[id] == 1 && moved(id, e.cur.B[x]) {
			e.dropCur[x] = 1
		}
	})
	again(e.bySent, e.sent.B, func(id, x int32) {
		switch {
		case byCur[id] > 0:
			gone[id], byCur[id], e.drop[x] = gone[id]-1, byCur[id]-1, 1
		case bySent[id] == 1 && moved(id, e.sent.B[x]):
			e.drop[x] = 1
		}
	})
}

// inserted calls visit for the places of the inserted elements that replace none.
func inserted(by []diff.Edit, visit func(x int32)) {
	for i := range by {
		for x := by[i].J; x < by[i].J+by[i].K; x++ {
			if x != by[i].Instead {
				visit(x)
			}
		}
	}
}

// writeElements writes the merged array: gap by gap current's insertions, then the client's, then the base's next element
// if it is still there, or what stands for it.
func (r *run) writeElements(e *edits, sc scope) {
	out, n := r.edit(e.c), int32(len(e.sent.A))
	bySent, byCur := e.bySent, e.byCur
	for i := range n + 1 {
		s, c := at(&bySent, i), at(&byCur, i)
		sent, cur, target := s.J+s.K, c.J+c.K, diff.None
		if s.Replaces() {
			sent = s.Instead
		}
		if c.Replaces() {
			cur, target = c.Instead, c.Instead
		} else if i < n {
			target = e.cur.To[i]
		}
		e.writeCur(&out, c.J, cur)
		e.writeSent(&out, s.J, sent)
		if s.Replaces() && target != diff.None && e.drop[s.Instead] == 0 {
			out.keep(e.cur.B[target])
			r.element(e.sent.A[i], e.sent.B[s.Instead], e.cur.B[target], int(target), sc)
			sent, cur = sent+1, cur+1
		} else if i < n {
			e.writeNext(i, &out)
		}
		e.writeCur(&out, cur, c.J+c.K)
		e.writeSent(&out, sent, s.J+s.K)
	}
}

// at takes the first of the edits if it is at gap i, else none.
func at(by *[]diff.Edit, i int32) diff.Edit {
	if len(*by) == 0 || (*by)[0].I != i {
		return diff.Edit{Instead: diff.None}
	}
	e := (*by)[0]
	*by = (*by)[1:]
	return e
}

// writeCur writes what current has inserted from one place to before another.
func (e *edits) writeCur(out *container, from, to int32) {
	for j := from; j < to; j++ {
		out.keepOrRemove(e.cur.B[j], e.dropCur[j] == 0)
	}
}

// writeSent writes what the client has inserted from one place to before another.
func (e *edits) writeSent(out *container, from, to int32) {
	for j := from; j < to; j++ {
		if e.drop[j] == 0 {
			out.insert(e.sent.B[j].Raw())
		}
	}
}

// writeNext writes the base's element i if it is still there.
func (e *edits) writeNext(i int32, out *container) {
	if j := e.cur.To[i]; j != diff.None {
		out.keepOrRemove(e.cur.B[j], e.sent.To[i] != diff.None)
	}
}

// element merges one element; index is its place in current.
func (r *run) element(b, s, c tree.Value, index int, sc scope) {
	r.value(b, s, c, r.enter(sc, tree.Place{Index: index}))
	r.leave(sc)
}

package merge

import (
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// What becomes of a hunk's insertions, as its Note.
const (
	kept    = iota
	dropped // the other side's stand instead
	paired  // its one element is merged with the other side's
)

// edits are the scripts from the base's array to the client's and to current's.
type edits struct {
	sides
	sent, cur     diff.Alignment
	bySent, byCur []diff.Hunk
	regions       []diff.Hunk // [I, I+R) of the base is as one side has it: K is 1 for the client's, 0 for current's
	drop          []int32     // 1 for an element of sent that is left out: see dropMoves and dropEchoes
	dropCur       []int32     // 1 for an element of current that is left out: the client has removed it, and others have moved it
}

// edits aligns the arrays. ok is false if that is over the limit.
func (r *run) edits(b, s, c tree.Value, sc scope) (e edits, ok bool) {
	e.sides = sides{b, s, c}
	row := b.Len() == s.Len() && b.Len() == c.Len() // as long as ever
	if row && r.countsByPlace(sc) {
		e.sent, e.cur, ok = r.AlignByPlace(b, s), r.AlignByPlace(b, c), true
	} else {
		var fits bool
		e.sent, fits = r.Align(b, s)
		e.cur, ok = r.Align(b, c)
		ok = ok && fits
	}
	if ok && row && e.sent.KeepsPlaces() && !e.cur.KeepsPlaces() && r.OnlyPlaces(e.sent.A) {
		e.cur = r.AlignByPlace(b, c)
	}
	if ok {
		e.bySent, e.byCur = r.Script(&e.sent), r.Script(&e.cur)
		r.findMoves(&e.sent, e.bySent)
		r.findMoves(&e.cur, e.byCur)
		e.drop, e.dropCur = r.Ints.Alloc(len(e.sent.B)), r.Ints.Alloc(len(e.cur.B))
	}
	return e, ok
}

// findMoves leaves of the replacements what isn't moved: elements that the same side has put in elsewhere aren't replaced, and elements
// that come from elsewhere replace nothing. Else, where clients keep an array in an order, the entry of one would stand in the place of
// another's. Where no element has another place than before, nothing was moved, unless the elements are told apart.
func (r *run) findMoves(al *diff.Alignment, hunks []diff.Hunk) {
	if !slices.ContainsFunc(hunks, func(h diff.Hunk) bool { return h.Replaces() }) || al.KeepsPlaces() && !r.TellApart(al.A) {
		return
	}
	mark, ids := r.Ints.Mark(), &r.Table
	defer r.Ints.Cut(mark)
	ids.Reset(len(al.A))
	away, in := r.Ints.Alloc(len(al.A)), r.Ints.Alloc(len(al.A)) // how many equal elements were moved
	for i, a := range al.A {
		if id := ids.Number(a); al.To[i] == diff.None {
			away[id]++
		}
	}
	inserted(hunks, func(x int32) {
		if id, ok := ids.Find(al.B[x]); ok {
			in[id]++
		}
	})
	for id := range away {
		away[id] = min(away[id], in[id])
		in[id] = away[id]
	}
	for i := range hunks {
		h := &hunks[i]
		at, gone := r.unmoved(al.A[h.I:h.I+h.R], away)
		if _, fresh := r.unmoved(al.B[h.J:h.J+h.K], in); gone == 0 || fresh == 0 {
			h.R = 0
		} else {
			h.I, h.R = h.I+at, gone
		}
	}
}

// unmoved returns the first n elements in a row that are none of those that were moved, and takes all others from moved.
func (r *run) unmoved(elements []tree.Value, moved []int32) (at, n int32) {
	for i, e := range elements {
		switch id, ok := r.Table.Find(e); {
		case ok && moved[id] > 0:
			moved[id]--
		case n == 0:
			at, n = int32(i), 1
		case at+n == int32(i):
			n++
		}
	}
	return at, n
}

// countsByPlace reports whether a rule makes each element of the array at sc a number of its own, which has no other place.
func (r *run) countsByPlace(sc scope) bool {
	if sc.lo == sc.hi {
		return false
	}
	element := r.enter(sc, tree.Place{})
	defer r.leave(sc)
	return element.rule != 0 && r.strategy(element).calculates()
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
	if !ok { // one value, as a whole
		if r.takes(b, s, c, sc) {
			r.replace(c, s.Raw())
		}
		return
	}
	r.observer.edited(r, e.sides)
	if len(e.bySent) == 0 {
		return
	}
	if p, ok := r.byIdentity(&e, sc); ok {
		r.carryOut(p, c, sc)
		return
	}
	r.overlaps(&e, sc)
	r.dropMoves(&e)
	r.dropEchoes(&e)
	r.writeElements(&e, sc)
}

// overlaps finds the regions in which both scripts replace, and decides about them.
func (r *run) overlaps(e *edits, sc scope) {
	x, y := 0, 0
	for x < len(e.bySent) && y < len(e.byCur) {
		s, c := &e.bySent[x], &e.byCur[y]
		switch {
		case !s.Replaces() || s.I+s.R <= c.I:
			x++
			continue
		case !c.Replaces() || c.I+c.R <= s.I:
			y++
			continue
		}
		lo, hi := min(s.I, c.I), max(s.I+s.R, c.I+c.R)
		toX, toY := x+1, y+1
		for grown := true; grown; {
			for ; toX < len(e.bySent) && e.bySent[toX].I < hi; toX++ {
				reach(&e.bySent[toX], &hi)
			}
			grown = false
			for ; toY < len(e.byCur) && e.byCur[toY].I < hi; toY++ {
				grown = reach(&e.byCur[toY], &hi) || grown
			}
		}
		r.region(e, e.bySent[x:toX], e.byCur[y:toY], diff.Hunk{I: lo, R: hi - lo}, sc)
		x, y = toX, toY
	}
}

// reach extends a region to the end of h, if h replaces.
func reach(h *diff.Hunk, hi *int32) bool {
	if !h.Replaces() || h.I+h.R <= *hi {
		return false
	}
	*hi = h.I + h.R
	return true
}

// region decides about the base's elements in reg, which hunks of both sides replace.
func (r *run) region(e *edits, bySent, byCur []diff.Hunk, reg diff.Hunk, sc scope) {
	s, c := &bySent[0], &byCur[0]
	if len(bySent) == 1 && len(byCur) == 1 {
		if s.One() && c.One() {
			s.Note, c.Note = paired, paired
			return
		}
		if s.I == c.I && s.R == c.R && s.K == c.K && e.sameRun(s, c) {
			s.Note = dropped // both made the same change
			return
		}
	}
	v, losers := r.byStrategy(sc), bySent
	r.observer.overlapped(r, v, sc)
	if r.note(v) {
		reg.K, losers = 1, byCur
	}
	for i := range losers {
		if losers[i].Replaces() {
			losers[i].Note = dropped
		}
	}
	e.regions = append(e.regions, reg)
}

// sameRun reports whether two hunks of the same length insert the same elements.
func (e *edits) sameRun(s, c *diff.Hunk) bool {
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
	if !e.bothRemove() {
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
	again := func(hunks []diff.Hunk, elements []tree.Value, visit func(id, x int32)) {
		inserted(hunks, func(x int32) {
			if id, ok := ids.Find(elements[x]); ok && gone[id] > 0 {
				visit(id, x)
			}
		})
	}
	moved := func(id int32, v tree.Value) bool {
		return inBase[id] == 1 && (v.Kind() == tree.String || v.Kind() == tree.Object)
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

// inserted calls visit for the places of the elements that hunks insert on their own.
func inserted(hunks []diff.Hunk, visit func(x int32)) {
	for i := range hunks {
		h := &hunks[i]
		for x := h.J; h.Note == kept && x < h.J+h.K; x++ {
			visit(x)
		}
	}
}

// writeElements writes the merged array: gap by gap current's insertions, then the client's, then the base's next element
// if it is still there.
func (r *run) writeElements(e *edits, sc scope) {
	out, n := r.edit(e.c), int32(len(e.sent.A))
	bySent, byCur := e.bySent, e.byCur
	for i := range n + 1 {
		s, c := at(&bySent, i), at(&byCur, i)
		for j := c.J; j < c.J+c.K; j++ {
			out.keepOrRemove(e.cur.B[j], c.Note != dropped && e.dropCur[j] == 0)
			if c.Note == paired && e.drop[s.J] == 0 {
				r.element(e.sent.A[i], e.sent.B[s.J], e.cur.B[j], int(j), sc)
			}
		}
		if s.One() && s.Note == kept && e.cur.To[i] != diff.None && e.drop[s.J] == 0 { // only the client has changed the element
			j := e.cur.To[i]
			out.keep(e.cur.B[j])
			r.element(e.sent.A[i], e.sent.B[s.J], e.cur.B[j], int(j), sc)
			continue
		}
		for j := s.J; s.Note == kept && j < s.J+s.K; j++ {
			if e.drop[j] == 0 {
				out.insert(e.sent.B[j].Raw())
			}
		}
		if i < n {
			e.writeNext(i, &out)
		}
	}
}

// at takes the first of the hunks if it is at gap i, else none.
func at(hunks *[]diff.Hunk, i int32) (h diff.Hunk) {
	if len(*hunks) > 0 && (*hunks)[0].I == i {
		h, *hunks = (*hunks)[0], (*hunks)[1:]
	}
	return h
}

// writeNext writes the base's element i if it is still there.
func (e *edits) writeNext(i int32, out *container) {
	for len(e.regions) > 0 && e.regions[0].I+e.regions[0].R <= i {
		e.regions = e.regions[1:]
	}
	inRegion := len(e.regions) > 0 && e.regions[0].I <= i
	switch inCur, inSent := e.cur.To[i], e.sent.To[i]; {
	case inCur != diff.None:
		out.keepOrRemove(e.cur.B[inCur], inSent != diff.None || inRegion && e.regions[0].K == 0)
	case inSent != diff.None && inRegion && e.regions[0].K == 1:
		out.insert(e.sent.B[inSent].Raw())
	}
}

// element merges one element; index is its place in current.
func (r *run) element(b, s, c tree.Value, index int, sc scope) {
	r.value(b, s, c, r.enter(sc, tree.Place{Index: index}))
	r.leave(sc)
}

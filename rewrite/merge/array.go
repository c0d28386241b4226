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
	drop          []int32     // 1 for an element of sent that is left out: current has made the same move, or it is an echo
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
		e.drop = r.Ints.Alloc(len(e.sent.B))
	}
	return e, ok
}

// findMoves makes insertions of the replacements whose elements the same side has put in elsewhere: what stands where an element was
// moved away replaces nothing. Else, where clients keep an array in an order, the entry of one would stand in the place of another's.
// Where no element has another place than before, nothing was moved.
func (r *run) findMoves(al *diff.Alignment, hunks []diff.Hunk) {
	if !slices.ContainsFunc(hunks, func(h diff.Hunk) bool { return h.Replaces() }) || al.KeepsPlaces() {
		return
	}
	mark, ids := r.Ints.Mark(), &r.Table
	defer r.Ints.Cut(mark)
	ids.Reset(len(al.B))
	put := r.Ints.Alloc(len(al.B)) // how often each element was put in, and not yet found to be moved
	inserted(hunks, func(x int32) { put[ids.Number(al.B[x])]++ })
	for i := range hunks {
		h := &hunks[i]
		elements := al.A[h.I : h.I+h.R]
		moved := 0
		for _, a := range elements {
			id, ok := ids.Find(a)
			if !ok || put[id] == 0 {
				break
			}
			put[id]--
			moved++
		}
		if moved == len(elements) {
			h.R = 0
			continue
		}
		for _, a := range elements[:moved] {
			id, _ := ids.Find(a)
			put[id]++
		}
	}
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

// dropMoves leaves out what the client inserted where both sides moved the same element: an element that both removed, and
// both inserted elsewhere, is still one element. It is where current has it.
func (r *run) dropMoves(e *edits) {
	gone := r.List(len(e.sent.A))
	for i, a := range e.sent.A {
		if e.sent.To[i] == diff.None && e.cur.To[i] == diff.None {
			gone = append(gone, a)
		}
	}
	if len(gone) == 0 {
		return
	}
	mark, ids := r.Ints.Mark(), &r.Table
	defer r.Ints.Cut(mark)
	ids.Reset(len(gone))
	removed, again := r.Ints.Alloc(len(gone)), r.Ints.Alloc(len(gone))
	for _, a := range gone {
		removed[ids.Number(a)]++
	}
	inserted(e.byCur, func(x int32) {
		if id, ok := ids.Find(e.cur.B[x]); ok {
			again[id]++
		}
	})
	inserted(e.bySent, func(x int32) {
		if id, ok := ids.Find(e.sent.B[x]); ok && removed[id] > 0 && again[id] > 0 {
			removed[id], again[id], e.drop[x] = removed[id]-1, again[id]-1, 1
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
			out.keepOrRemove(e.cur.B[j], c.Note != dropped)
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

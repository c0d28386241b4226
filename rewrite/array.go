package rewrite

// array merges arrays of the base (which may be none), of the client and of current.
func (r *run) array(b, s, c int32, sc scope) {
	mark := r.mark()
	defer r.cut(mark)
	if r.setsDecide(b, s, c, sc) {
		if plan, ok := r.plan(b, s, c, &sc); ok {
			if r.trace != nil {
				r.applied(r.strategy(sc), b, s, c, sc)
			}
			r.carryOut(plan, c, sc)
			return
		}
	}
	if st := r.strategy(sc); st >= Sum && st <= Min {
		sc.rule, sc.inherit = 0, Fail
	}
	var e edits
	var fits [2]bool
	e.sent, fits[0] = r.align(&r.base, b, &r.sent, s)
	e.cur, fits[1] = r.align(&r.base, b, &r.cur, c)
	if !fits[0] || !fits[1] {
		// One value, as a whole.
		if r.settle(r.judge(b, s, c, sc)) {
			n := &r.cur.nodes[c]
			r.splice(n.start, n.end, r.sent.raw(s))
		}
		return
	}
	e.bySent = r.script(&e.sent)
	if r.trace != nil {
		r.edited(b, s, c)
	}
	if len(e.bySent) == 0 {
		return
	}
	e.byCur = r.script(&e.cur)
	e.drop = r.ints.alloc(len(e.sent.b))
	r.overlaps(&e, sc)
	r.dropMoves(&e)
	r.writeElements(&e, c, sc)
}

// A hunk is one edit of a script: the base's elements [i, i+r) are removed, and the other array's elements [j, j+k) stand
// in their place. Where as many are inserted as removed, each has its own hunk.
type hunk struct {
	i, r, j, k int32
	fate       fate
}

// replaces reports whether h both removes and inserts.
func (h *hunk) replaces() bool { return h.r > 0 && h.k > 0 }

func (h *hunk) one() bool { return h.r == 1 && h.k == 1 }

// fate is what becomes of a hunk's insertions.
type fate uint8

const (
	kept    fate = iota
	dropped      // the other side's stand instead
	paired       // its one element is merged with the other side's
)

// edits are two scripts that start at the same array.
type edits struct {
	sent, cur     alignment
	bySent, byCur []hunk
	regions       []hunk  // [i, i+r) of the base is as one side has it: k is 1 for the client's, 0 for current's
	drop          []int32 // 1 for an element of sent whose insertion is left out: current has made the same move
}

// script lists the hunks of an alignment.
func (w *workspace) script(al *alignment) []hunk {
	n, m := int32(len(al.a)), int32(len(al.b))
	count := 0
	list := w.hunks.alloc(alone(al.to) + alone(al.from))
	for i, j := int32(0), int32(0); i < n || j < m; {
		if i < n && al.to[i] == j {
			i, j = i+1, j+1
			continue
		}
		h := hunk{i: i, j: j}
		for i < n && al.to[i] == none {
			i++
		}
		for j < m && al.from[j] == none {
			j++
		}
		h.r, h.k = i-h.i, j-h.j
		if h.r != h.k {
			list[count] = h
			count++
			continue
		}
		for x := range h.r {
			list[count] = hunk{i: h.i + x, r: 1, j: h.j + x, k: 1}
			count++
		}
	}
	return list[:count]
}

// alone counts the elements without a partner.
func alone(partners []int32) (n int) {
	for _, p := range partners {
		if p == none {
			n++
		}
	}
	return n
}

// overlaps finds the regions in which both scripts replace, and decides about them.
func (r *run) overlaps(e *edits, sc scope) {
	x, y := 0, 0
	for x < len(e.bySent) && y < len(e.byCur) {
		s, c := &e.bySent[x], &e.byCur[y]
		switch {
		case !s.replaces() || s.i+s.r <= c.i:
			x++
			continue
		case !c.replaces() || c.i+c.r <= s.i:
			y++
			continue
		}
		lo, hi := min(s.i, c.i), max(s.i+s.r, c.i+c.r)
		toX, toY := x+1, y+1
		for grown := true; grown; {
			for ; toX < len(e.bySent) && e.bySent[toX].i < hi; toX++ {
				e.bySent[toX].reach(&hi)
			}
			grown = false
			for ; toY < len(e.byCur) && e.byCur[toY].i < hi; toY++ {
				grown = e.byCur[toY].reach(&hi) || grown
			}
		}
		r.region(e, e.bySent[x:toX], e.byCur[y:toY], hunk{i: lo, r: hi - lo}, sc)
		x, y = toX, toY
	}
}

// reach extends a region to the end of h, if h replaces.
func (h *hunk) reach(hi *int32) bool {
	if !h.replaces() || h.i+h.r <= *hi {
		return false
	}
	*hi = h.i + h.r
	return true
}

// region decides about the base's elements in reg, which hunks of both sides replace.
func (r *run) region(e *edits, bySent, byCur []hunk, reg hunk, sc scope) {
	s, c := &bySent[0], &byCur[0]
	if len(bySent) == 1 && len(byCur) == 1 {
		if s.one() && c.one() {
			s.fate, c.fate = paired, paired
			return
		}
		if s.i == c.i && s.r == c.r && s.k == c.k && r.sameRun(e, s, c) {
			s.fate = dropped // both made the same change
			return
		}
	}
	v := conflicts
	switch r.strategy(sc) {
	case Sent:
		v = overwrite
	case Current:
		v = stays
	}
	if r.trace != nil {
		r.overlapped(v, sc)
	}
	losers := bySent
	if r.settle(v) {
		reg.k, losers = 1, byCur
	}
	for i := range losers {
		if losers[i].replaces() {
			losers[i].fate = dropped
		}
	}
	e.regions = append(e.regions, reg)
}

// sameRun reports whether two hunks of the same length insert the same elements.
func (r *run) sameRun(e *edits, s, c *hunk) bool {
	for x := range s.k {
		if !equal(&r.sent, e.sent.b[s.j+x], &r.cur, e.cur.b[c.j+x]) {
			return false
		}
	}
	return true
}

// dropMoves leaves out what the client inserted where both sides moved the same element: an element that both removed, and
// both inserted elsewhere, is still one element. It is where current has it.
func (r *run) dropMoves(e *edits) {
	gone := 0
	for i, to := range e.sent.to {
		if to == none && e.cur.to[i] == none {
			gone++
		}
	}
	bySent, byCur := inserted(e.bySent), inserted(e.byCur)
	if gone == 0 || bySent == 0 || byCur == 0 {
		return
	}
	mark := r.mark()
	defer r.cut(mark)
	ids := r.newTable(gone)
	removed, again := r.ints.alloc(gone), r.ints.alloc(gone)
	for i, to := range e.sent.to {
		if to == none && e.cur.to[i] == none {
			removed[ids.id(&r.base, e.sent.a[i])]++
		}
	}
	for _, h := range e.byCur {
		for x := h.j; h.fate == kept && x < h.j+h.k; x++ {
			if _, id := ids.lookup(&r.cur, e.cur.b[x]); id != none {
				again[id]++
			}
		}
	}
	for _, h := range e.bySent {
		for x := h.j; h.fate == kept && x < h.j+h.k; x++ {
			_, id := ids.lookup(&r.sent, e.sent.b[x])
			if id != none && removed[id] > 0 && again[id] > 0 {
				removed[id], again[id], e.drop[x] = removed[id]-1, again[id]-1, 1
			}
		}
	}
}

// inserted counts the elements that hunks insert on their own.
func inserted(hunks []hunk) (n int32) {
	for i := range hunks {
		if hunks[i].fate == kept {
			n += hunks[i].k
		}
	}
	return n
}

// writeElements writes the merged array: gap by gap current's insertions, then the client's, then the base's next element
// if it is still there.
func (r *run) writeElements(e *edits, c int32, sc scope) {
	out := r.edit(c)
	x, y, g := 0, 0, 0
	for i := int32(0); i <= int32(len(e.sent.a)); i++ {
		for g < len(e.regions) && e.regions[g].i+e.regions[g].r <= i {
			g++
		}
		var s, cur hunk // those at this gap
		if y < len(e.byCur) && e.byCur[y].i == i {
			cur, y = e.byCur[y], y+1
		}
		if x < len(e.bySent) && e.bySent[x].i == i {
			s, x = e.bySent[x], x+1
		}
		r.writeCurrent(e, cur, s, sc, &out)
		inPlace := i < int32(len(e.sent.a)) && s.one() && s.fate == kept && e.cur.to[i] != none && e.drop[s.j] == 0
		for j := s.j; s.fate == kept && !inPlace && j < s.j+s.k; j++ {
			if e.drop[j] == 0 {
				out.insert(r.sent.raw(e.sent.b[j]))
			}
		}
		if i == int32(len(e.sent.a)) {
			break
		}
		inRegion := g < len(e.regions) && e.regions[g].i <= i
		switch to, sTo := e.cur.to[i], e.sent.to[i]; {
		case inPlace:
			out.keep(e.cur.b[to])
			r.element(e.sent.a[i], e.sent.b[s.j], e.cur.b[to], to, sc)
		case inRegion && e.regions[g].k == 1 && sTo != none && to == none:
			out.insert(r.sent.raw(e.sent.b[sTo]))
		case to != none && (sTo != none || inRegion && e.regions[g].k == 0):
			out.keep(e.cur.b[to])
		case to != none:
			out.remove(e.cur.b[to])
		}
	}
}

// writeCurrent writes what current inserted at one gap.
func (r *run) writeCurrent(e *edits, cur, s hunk, sc scope, out *container) {
	for j := cur.j; j < cur.j+cur.k; j++ {
		switch cur.fate {
		case dropped:
			out.remove(e.cur.b[j])
		case paired:
			out.keep(e.cur.b[j])
			r.element(e.sent.a[cur.i], e.sent.b[s.j], e.cur.b[j], j, sc)
		default:
			out.keep(e.cur.b[j])
		}
	}
}

// element merges one element; index is its place in current.
func (r *run) element(b, s, c, index int32, sc scope) {
	r.value(b, s, c, r.enter(sc, place{&r.cur, none, index}))
	r.leave(sc)
}

package diff

import (
	"slices"

	"optimist/rewrite/tree"
)

// An Edit is what a script inserts at one gap of the base: the other array's elements [J, J+K). Removals that nothing stands for have none.
type Edit struct {
	I, J, K int32
	Instead int32 // the one of the inserted elements that stands for the base's element I; None: all stand before it
	Both    bool  // the other side's script has an element that stands for the base's element I, too
}

// Replaces reports whether an element stands for one of the base.
func (e *Edit) Replaces() bool { return e.Instead != None }

// Edits lists the edits of an alignment, of which no two are at the same gap.
//
// What was removed and what was inserted between the same two neighbours stands for each other, one by one, but for what was only moved:
// a removed element that was inserted elsewhere isn't replaced, and what comes from elsewhere replaces nothing. Else, where clients keep an
// array in an order, the entry of one would stand in the place of another's. Those stand for each other, in their order, that are most
// alike; in a row, those at the same places. Objects with different ids never do.
func (w *Workspace) Edits(al *Alignment) []Edit {
	list := w.edits.Alloc(al.Inserted())[:0]
	mark := w.Ints.Mark()
	defer w.Ints.Cut(mark)
	row := al.Removed() > 0 && al.Inserted() > 0 && al.KeepsPlaces() && !w.TellApart(al.A)
	gone, fresh := w.changed(al, row)
	n, m := int32(len(al.A)), int32(len(al.B))
	for i, j := int32(0), int32(0); i < n || j < m; {
		if i < n && al.To[i] == j {
			i, j = i+1, j+1
			continue
		}
		at, from := i, j
		for i < n && al.To[i] == None {
			i++
		}
		for j < m && al.From[j] == None {
			j++
		}
		var g, f []int32
		g, gone = until(gone, i)
		f, fresh = until(fresh, j)
		if !row || len(g) != len(f) {
			g, f = w.partners(al, g, f)
		}
		g, f = al.sameObjects(g, f)
		list = appendEdits(list, Edit{I: at, J: from, K: j - from, Instead: None}, g, f)
	}
	return list
}

// until cuts off the beginning of a list of places that are before end.
func until(places []int32, end int32) (before, after []int32) {
	n := 0
	for n < len(places) && places[n] < end {
		n++
	}
	return places[:n], places[n:]
}

// appendEdits appends the edits between two neighbours. The elements fresh stand for the base's elements gone, one by one.
func appendEdits(list []Edit, all Edit, gone, fresh []int32) []Edit {
	if len(gone) == 0 {
		if all.K > 0 {
			list = append(list, all)
		}
		return list
	}
	end := all.J + all.K
	for k, i := range gone {
		e := Edit{I: i, J: all.J, K: fresh[k] + 1 - all.J, Instead: fresh[k]}
		if k == len(gone)-1 {
			e.K = end - e.J
		}
		all.J += e.K
		list = append(list, e)
	}
	return list
}

const (
	// maxShift bounds how far an element may be from the place where one of two rows of elements would have it if the other one was laid
	// beside its beginning, or its end.
	maxShift = 8
	// maxValues bounds how many values of an element are looked at.
	maxValues = 64
	// weightOfText is how many numbers an equal text is worth.
	weightOfText = 4
	// weightOfPair is what it is worth that two elements stand for each other at all.
	weightOfPair = weightOfText / 2
)

// IdentityNames are the members that say which object an element is: an element with another value there is another object, also where all
// else is the same. Other members may be changed, too.
var IdentityNames = [...]string{"id", "_id", "uuid", "guid", "key", "sku"}

// KeyOf returns the value by which an element is told from others, or nothing.
func KeyOf(e tree.Value, key string) tree.Value {
	k := e.Get(key)
	if k.Kind() == tree.Null || k.Kind().IsContainer() {
		return tree.Value{}
	}
	return k
}

// sameObjects leaves out the pairs of elements that say that they are different objects.
func (al *Alignment) sameObjects(gone, fresh []int32) (g, f []int32) {
	g, f = gone[:0], fresh[:0]
	for k, i := range gone {
		j := fresh[k]
		if !slices.ContainsFunc(IdentityNames[:], func(name string) bool {
			a, b := KeyOf(al.A[i], name), KeyOf(al.B[j], name)
			return a.Exists() && b.Exists() && !a.Equal(b)
		}) {
			g, f = append(g, i), append(f, j)
		}
	}
	return g, f
}

// A pairing finds which of the elements that were removed and of those that were inserted between two neighbours stand for each other: in
// their order, those that have most in common together.
type pairing struct {
	al          *Alignment
	gone, fresh []int32
	shifts      []int   // by how many places an element of fresh may be behind its partner in gone
	most        []int32 // for each place in gone and each shift: how much the elements from there on have in common at most
}

// partners pairs the elements one by one, and leaves out the others.
func (w *Workspace) partners(al *Alignment, gone, fresh []int32) (g, f []int32) {
	n := min(len(gone), len(fresh))
	if n == 0 || len(gone) == 1 && len(fresh) == 1 {
		return gone[:n], fresh[:n]
	}
	p := pairing{al: al, gone: gone, fresh: fresh, shifts: shifts(len(fresh) - len(gone))}
	p.most = w.Ints.Alloc((len(gone) + 1) * len(p.shifts))
	for i := len(gone) - 1; i >= 0; i-- {
		for x := len(p.shifts) - 1; x >= 0; x-- {
			p.most[i*len(p.shifts)+x] = max(p.paired(i, x), p.at(i, x+1), p.withoutGone(i, x))
		}
	}
	g, f = w.Ints.Alloc(n)[:0], w.Ints.Alloc(n)[:0]
	for i, x := 0, slices.Index(p.shifts, 0); i < len(gone) && x < len(p.shifts) && i+p.shifts[x] < len(fresh); {
		switch p.at(i, x) {
		case p.paired(i, x):
			g, f = append(g, gone[i]), append(f, fresh[i+p.shifts[x]])
			i++
		case p.at(i, x+1):
			x++
		default:
			i += p.shifts[x] - p.shifts[x-1]
			x--
		}
	}
	return g, f
}

// shifts lists those that are tried if fresh has so many elements more than gone.
func shifts(more int) (list []int) {
	for s := min(more, 0) - maxShift; s <= max(more, 0)+maxShift; s++ {
		if s <= min(more, 0)+maxShift || s >= max(more, 0)-maxShift {
			list = append(list, s)
		}
	}
	return list
}

func (p *pairing) at(i, x int) int32 {
	if i >= len(p.gone) || x < 0 || x >= len(p.shifts) {
		return 0
	}
	return p.most[i*len(p.shifts)+x]
}

// paired is what is most if gone's element i has a partner at shift x; less than anything if there is none.
func (p *pairing) paired(i, x int) int32 {
	j := i + p.shifts[x]
	if j < 0 || j >= len(p.fresh) {
		return -1
	}
	left := maxValues
	return weightOfPair + int32(inCommon(p.al.A[p.gone[i]], p.al.B[p.fresh[j]], &left)) + p.at(i+1, x)
}

// withoutGone is what is most if the elements of gone from i on have no partner until there is one at a smaller shift.
func (p *pairing) withoutGone(i, x int) int32 {
	if x == 0 {
		return 0
	}
	return p.at(i+p.shifts[x]-p.shifts[x-1], x-1)
}

// inCommon says how much a and b have in common: the values below them that are equal, and at the same places. A text says more than a
// number. It looks at no more than left values, or a tree of elements would be looked at anew at each of its levels.
func inCommon(a, b tree.Value, left *int) (n int) {
	if *left--; *left < 0 {
		return 0
	}
	switch {
	case a.Kind() != b.Kind():
	case a.Kind() == tree.Object:
		members := a.Finder()
		for y := b.First(); y.Exists() && *left > 0; y = y.Next() {
			if x := members.Like(y); x.Exists() {
				n += inCommon(x, y, left)
			}
		}
	case a.Kind() == tree.Array:
		for x, y := a.First(), b.First(); x.Exists() && y.Exists() && *left > 0; x, y = x.Next(), y.Next() {
			n += inCommon(x, y, left)
		}
	case !a.Equal(b):
	case a.Kind() == tree.String:
		n = weightOfText
	default:
		n = 1
	}
	return n
}

// changed lists the places of the elements that were removed, and of those that were inserted, but for those that were moved. Where no
// element has another place than before, nothing was moved, unless the elements are told apart: it is a row.
func (w *Workspace) changed(al *Alignment, row bool) (gone, fresh []int32) {
	gone, fresh = w.Ints.Alloc(len(al.A))[:0], w.Ints.Alloc(len(al.B))[:0]
	var away, in []int32
	if !row && al.Removed() > 0 && al.Inserted() > 0 {
		away, in = w.moved(al)
	}
	for i, a := range al.A {
		if al.To[i] == None && !w.take(away, a) {
			gone = append(gone, int32(i))
		}
	}
	for j, b := range al.B {
		if al.From[j] == None && !w.take(in, b) {
			fresh = append(fresh, int32(j))
		}
	}
	return gone, fresh
}

// moved returns, by the elements' numbers, how often each was moved; twice.
func (w *Workspace) moved(al *Alignment) (away, in []int32) {
	w.Table.Reset(len(al.A))
	away, in = w.Ints.Alloc(len(al.A)), w.Ints.Alloc(len(al.A))
	for i, a := range al.A {
		if id := w.Table.Number(a); al.To[i] == None {
			away[id]++
		}
	}
	for j, b := range al.B {
		if al.From[j] != None {
			continue
		}
		if id, ok := w.Table.Find(b); ok && away[id] > in[id] {
			in[id]++
		}
	}
	copy(away, in)
	return away, in
}

// take takes one element from those that were moved, and reports whether it is one of them.
func (w *Workspace) take(moved []int32, e tree.Value) bool {
	if len(moved) == 0 {
		return false
	}
	id, ok := w.Table.Find(e)
	if !ok || moved[id] == 0 {
		return false
	}
	moved[id]--
	return true
}

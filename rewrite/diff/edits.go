package diff

import "optimist/rewrite/tree"

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
// array in an order, the entry of one would stand in the place of another's. If they are not equally many, those in a row stand for
// each other that are most alike.
func (w *Workspace) Edits(al *Alignment) []Edit {
	list := w.edits.Alloc(al.Inserted())[:0]
	mark := w.Ints.Mark()
	defer w.Ints.Cut(mark)
	gone, fresh := w.changed(al)
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
		list = al.appendEdits(list, Edit{I: at, J: from, K: j - from, Instead: None}, g, f)
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

// appendEdits appends the edits between two neighbours. Of the base's elements gone were removed, and fresh are those that were inserted.
func (al *Alignment) appendEdits(list []Edit, all Edit, gone, fresh []int32) []Edit {
	gone, fresh = al.partners(gone, fresh)
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
	// maxShifts bounds in how many ways a short row of elements is laid beside a long one.
	maxShifts = 16
	// weightOfText is how many numbers an equal text is worth.
	weightOfText = 4
)

// partners makes the lists equally long, and pairs their elements one by one. Of the longer list it keeps the elements in a row that are
// most alike; among equals the first.
func (al *Alignment) partners(gone, fresh []int32) (g, f []int32) {
	n := min(len(gone), len(fresh))
	shifts, most := max(len(gone), len(fresh))-n, -1
	for shift := 0; n > 0 && shift <= shifts; shift++ {
		if shift == maxShifts {
			shift = shifts // the end, where most are put in
		}
		a, b := gone[min(shift, len(gone)-n):], fresh[min(shift, len(fresh)-n):]
		common := 0
		if shifts > 0 {
			common = al.alike(a[:n], b[:n])
		}
		if common > most {
			g, f, most = a[:n], b[:n], common
		}
	}
	return g, f
}

// alike says how much elements that would stand for each other have in common.
func (al *Alignment) alike(gone, fresh []int32) (n int) {
	for k := range gone {
		n += inCommon(al.A[gone[k]], al.B[fresh[k]])
	}
	return n
}

// inCommon says how much a and b have in common: the values below them that are equal, and at the same places. A text says more than a
// number. The recursion is as deep as a document may be.
func inCommon(a, b tree.Value) (n int) {
	switch {
	case a.Kind() != b.Kind():
	case a.Kind() == tree.Object:
		members := a.Finder()
		for y := b.First(); y.Exists(); y = y.Next() {
			if x := members.Like(y); x.Exists() {
				n += inCommon(x, y)
			}
		}
	case a.Kind() == tree.Array:
		for x, y := a.First(), b.First(); x.Exists() && y.Exists(); x, y = x.Next(), y.Next() {
			n += inCommon(x, y)
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
// element has another place than before, nothing was moved, unless the elements are told apart.
func (w *Workspace) changed(al *Alignment) (gone, fresh []int32) {
	gone, fresh = w.Ints.Alloc(len(al.A))[:0], w.Ints.Alloc(len(al.B))[:0]
	away, in := w.moved(al)
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

// moved returns, by the elements' numbers, how often each was moved; twice. Nothing was if they are empty.
func (w *Workspace) moved(al *Alignment) (away, in []int32) {
	if al.Removed() == 0 || al.Inserted() == 0 || al.KeepsPlaces() && !w.TellApart(al.A) {
		return nil, nil
	}
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

// Package diff finds the change between two documents: which elements of their arrays correspond, each edit, and the number of
// edits. A merge, a patch and the choice of a base see the same change. It does no I/O.
//
// # Arrays
//
// The script from the base to another array is the longest common subsequence of the two. Of several it is the one whose elements
// all keep their places, else the leftmost, whose pairs come first in the base, and then in the other. Between two pairs lies a
// hunk: r elements of the base are removed, and k others are inserted in their place. With k = 0 it is a removal, with r = 0 an
// insertion at a gap, else a replacement. A replacement of r by as many counts as r replacements of one by one.
package diff

import "optimist/rewrite/tree"

// A Visitor is called for what differs between two documents, in the order of the base, and then of what was added.
type Visitor interface {
	// Edit is called for one value: old is removed where new isn't there, new is added where old isn't, else new stands in old's
	// place. The walk's trail leads to it.
	Edit(old, new tree.Value)
	// Unaligned is called for arrays whose comparison is over the limit. At least a common beginning is known: unshared is how many
	// elements of both are not in it.
	Unaligned(old, new tree.Value, unshared int)
	// Element is called for an element in the place of another, which the visitor may have walked. only says that its hunk has no
	// other.
	Element(old, new tree.Value, only bool)
	// Enough ends the walk.
	Enough() bool
}

// A Walk goes through two documents and calls its Visitor for each difference. It belongs to one goroutine.
type Walk struct {
	Workspace
	Visitor Visitor
	// Whole takes arrays that differ for one value.
	Whole bool
	// Trail is the path of what the visitor is called for. An index is that in the document as the edits before it have left it.
	Trail tree.Trail
}

// Value walks two values, of which neither is missing.
func (w *Walk) Value(old, new tree.Value) {
	k := old.Kind()
	switch {
	case old.SameBytes(new):
	case k == tree.Object && new.Kind() == k:
		w.object(old, new)
	case k == tree.Array && new.Kind() == k && !w.Whole:
		w.array(old, new)
	case !old.Equal(new):
		w.Visitor.Edit(old, new)
	}
}

func (w *Walk) object(old, new tree.Value) {
	at := len(w.Trail)
	matched, members, rest := 0, new.Finder(), new.First()
	for m := old.First(); m.Exists(); m = m.Next() {
		c := members.Like(m)
		if c.Exists() {
			matched++
		}
		if c == rest {
			rest = rest.Next() // what is before it is in both
		}
		if m.SameBytes(c) {
			continue
		}
		w.Trail = append(w.Trail[:at], tree.Place{Member: m})
		if c.Exists() {
			w.Value(m, c)
		} else {
			w.Visitor.Edit(m, c)
		}
		if w.Visitor.Enough() {
			return
		}
	}
	if matched < new.Len() {
		members = old.Finder()
		for c := rest; c.Exists(); c = c.Next() {
			if m := members.Like(c); !m.Exists() && !w.Visitor.Enough() {
				w.Trail = append(w.Trail[:at], tree.Place{Member: c})
				w.Visitor.Edit(m, c)
			}
		}
	}
	w.Trail = w.Trail[:at]
}

func (w *Walk) array(old, new tree.Value) {
	mark := w.Mark()
	defer w.Cut(mark)
	al, fits := w.Align(old, new)
	if !fits {
		w.Visitor.Unaligned(old, new, al.Removed()+al.Inserted())
		return
	}
	at, shift := len(w.Trail), int32(0)
	for _, h := range w.Script(&al) {
		for x := range max(h.R, h.K) {
			if w.Visitor.Enough() {
				break
			}
			w.Trail = append(w.Trail[:at], tree.Place{Index: int(h.I + shift + min(x, h.K))})
			switch {
			case x >= h.K: // the rest moves up to where this one was
				w.Visitor.Edit(al.A[h.I+x], tree.Value{})
			case x >= h.R:
				w.Visitor.Edit(tree.Value{}, al.B[h.J+x])
			default:
				w.Visitor.Element(al.A[h.I+x], al.B[h.J+x], h.One())
			}
		}
		shift += h.K - h.R
	}
	w.Trail = w.Trail[:at]
}

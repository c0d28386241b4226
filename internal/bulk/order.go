package bulk

import "slices"

// readAll gives each write the result in its place. It reports false unless there are as many.
func (r *results) readAll(writes []*parkedWrite) (whole bool) {
	for _, w := range writes {
		if w.res, w.members, whole = r.next(w.asIs); !whole {
			return false
		}
	}
	return r.end()
}

// document is the document that an item names.
type document struct{ index, id string }

// document is the document that the item names.
func (it *Item) document() document { return document{it.Index, it.ID} }

// mayBeMixedUp reports whether a result may be that of another write. It may if it has another id than the write, or none although the
// write has one. It also may if it has another index, and the writes name several indices.
func mayBeMixedUp(writes []*parkedWrite) bool {
	several := slices.ContainsFunc(writes, func(w *parkedWrite) bool { return w.doc.index != writes[0].doc.index })
	return slices.ContainsFunc(writes, func(w *parkedWrite) bool {
		return w.doc.id != "" && (!w.members.HasID(w.doc.id) || several && string(w.members.Index) != w.doc.index)
	})
}

// order assigns the elements of an answer to the writes.
type order struct {
	writes  []*parkedWrite
	several map[string]bool // the ids that the writes have in several indices
	element []int           // of each write, from 1; 0: none yet
	taken   []bool          // which elements have a write
}

// inOrder returns the writes in the order of the answer's elements. The elements were read as if they had the order of the writes.
// OpenSearch orders them in another way if an ingest pipeline refuses or drops some of the items. The elements of these items name the
// index in the client's words. All others are in their places, and name the index for which the words stand. OpenSearch also leaves out the
// id of an update whose upsert a pipeline refuses. If a pipeline has given documents other ids, the order stays. ok is false if nobody can
// make the order out.
func inOrder(writes []*parkedWrite) (ordered []*parkedWrite, ok bool) {
	o := order{writes, make(map[string]bool), make([]int, len(writes)), make([]bool, len(writes))}
	first := make(map[string]string, len(writes))
	for _, w := range writes {
		index, found := first[w.doc.id]
		if first[w.doc.id] = w.doc.index; found && index != w.doc.index {
			o.several[w.doc.id] = true
		}
	}
	if !o.byDocument() || !o.byPlace() {
		return writes, false
	}
	ordered = make([]*parkedWrite, len(writes))
	for k, n := range o.element {
		ordered[n-1] = writes[k]
	}
	return ordered, true
}

func (o *order) take(write, element int) { o.element[write], o.taken[element] = element+1, true }

// known is the document without its index, if the index tells nothing. It tells nothing if all writes of the id are in one index, which may
// have several names.
func (o *order) known(d document) document {
	if !o.several[d.id] {
		d.index = ""
	}
	return d
}

// byDocument gives writes the elements that name their documents. It reports false if a document has more elements than writes: one of
// these elements is then of a write that has another name for the index.
func (o *order) byDocument() (ok bool) {
	wanted := make(map[document]int, len(o.writes)) // how many writes there are of each document
	for _, w := range o.writes {
		wanted[o.known(w.doc)]++
	}
	found := make(map[document][]int) // the elements that aren't in their places
	for k, w := range o.writes {
		d := o.known(document{string(w.members.Index), w.members.ID()})
		if d.id != "" && d.id == w.doc.id && (d == o.known(w.doc) || wanted[d] == 0) {
			o.take(k, k)
			continue
		}
		found[d] = append(found[d], k)
	}
	left := make(map[document][]int) // the writes whose elements aren't in their places
	for k, w := range o.writes {
		if d := o.known(w.doc); o.element[k] == 0 && d.id != "" {
			left[d] = append(left[d], k)
		}
	}
	for d, writes := range left {
		elements := found[d]
		if o.several[d.id] && len(elements) > len(writes) {
			return false
		}
		for i := range min(len(elements), len(writes)) {
			o.take(writes[i], elements[i])
		}
	}
	return true
}

// byPlace gives all other writes the elements in their places. If one write is left, it gets the element that is left. byPlace reports
// false if several are left.
func (o *order) byPlace() (ok bool) {
	var writes, elements []int // that are left
	for k := range o.writes {
		switch {
		case o.element[k] == 0 && !o.taken[k]:
			o.take(k, k)
		case o.element[k] == 0:
			writes = append(writes, k)
		case !o.taken[k]:
			elements = append(elements, k)
		}
	}
	if len(writes) == 1 {
		o.take(writes[0], elements[0])
	}
	return len(writes) < 2
}

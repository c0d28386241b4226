package bulk

import "slices"

// readAll gives each write the result in its place. It reports false unless there are as many.
func (r *results) readAll(writes []*parkedWrite) (whole bool) {
	for _, w := range writes {
		if w.res, w.said, whole = r.next(w.asIs); !whole {
			return false
		}
	}
	return r.end()
}

// document is what an item names.
type document struct{ index, id string }

// document is what the item names.
func (it *Item) document() document { return document{it.Index, it.ID} }

// mayBeMixedUp reports whether a result may be another write's: it has another id, or none though the write has one, or it has another
// index, and the writes name several.
func mayBeMixedUp(writes []*parkedWrite) bool {
	several := slices.ContainsFunc(writes, func(w *parkedWrite) bool { return w.doc.index != writes[0].doc.index })
	return slices.ContainsFunc(writes, func(w *parkedWrite) bool {
		return w.doc.id != "" && (!w.said.HasID(w.doc.id) || several && string(w.said.Index) != w.doc.index)
	})
}

// order is which element of the answer is whose.
type order struct {
	writes  []*parkedWrite
	several map[string]bool // the ids that the writes have in several indices
	element []int           // of each write, from 1; 0: none yet
	taken   []bool          // the elements that have their write
}

// inOrder returns the writes in the order of the answer's elements, which have been read in the order of the writes. OpenSearch has them in
// another order if an ingest pipeline refuses or drops some of the items. Those name the index in the client's words. All others are in
// their places, and name the index that these words stand for. OpenSearch also leaves out the id of an update whose upsert a pipeline
// refuses. If a pipeline has given documents other ids, the order stays. ok is false if it can't be made out.
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

// known is the document as far as its index tells anything. If the writes have the id in one index, that has many names.
func (o *order) known(d document) document {
	if !o.several[d.id] {
		d.index = ""
	}
	return d
}

// byDocument gives writes the elements that name their documents. It reports false if there are more such elements than writes: one of them
// is of a write that has another name for the index.
func (o *order) byDocument() (ok bool) {
	wanted := make(map[document]int, len(o.writes)) // by how many writes
	for _, w := range o.writes {
		wanted[o.known(w.doc)]++
	}
	found := make(map[document][]int) // the elements that aren't in their places
	for k, w := range o.writes {
		d := o.known(document{string(w.said.Index), w.said.ID()})
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

// byPlace gives all other writes the elements in their places, and the last one the element that is left. It reports false if several are.
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

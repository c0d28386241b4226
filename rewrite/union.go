package rewrite

// union adds to the array at p what it does not have of the step's value: an array's elements, or the one value. v is what is
// there; nil is an empty array.
func (a *application) union(p slot, v *value) error {
	if v != nil && v.kind == kindArray && v.open {
		// What was edited is read again: its elements can be compared only as they were read.
		var err error
		if v, err = a.reread(v); err != nil {
			return err
		}
		if err := a.put(p, v); err != nil {
			return err
		}
	}
	array, err := a.arrayAt(p, v)
	if err != nil {
		return err
	}
	wanted := []reference{a.val}
	if t := a.val.t; t.nodes[a.val.node].kind == kindArray {
		wanted = wanted[:0]
		for c := t.firstChild(a.val.node); c != none; c = t.nextChild(a.val.node, c) {
			wanted = append(wanted, reference{t, c})
		}
	}
	missing, err := a.missing(array, wanted)
	if err != nil {
		return err
	}
	for _, r := range missing {
		if err := a.push(array, r); err != nil {
			return err
		}
	}
	return nil
}

// fewPairs is how many comparisons of two elements cost less than a table.
const fewPairs = 256

// missing returns those of the wanted values that an array, whose elements are as they were read, does not have; of equal ones
// the first.
func (a *application) missing(array *value, wanted []reference) ([]reference, error) {
	if err := a.spend(workOfElement*(len(array.items)+len(wanted)) + workOfByte*len(array.t.raw(array.node))); err != nil {
		return nil, err
	}
	has := make([]reference, 0, len(array.items)+len(wanted))
	for _, it := range array.items {
		has = append(has, reference{it.v.t, it.v.node})
	}
	var isNew func(r reference) bool
	if cap(has)*len(wanted) <= fewPairs { // what is new is compared with, too
		isNew = func(r reference) bool {
			for _, h := range has {
				if equal(h.t, h.node, r.t, r.node) {
					return false
				}
			}
			has = append(has, r)
			return true
		}
	} else {
		table := newValueTable(cap(has))
		for _, h := range has {
			table.id(h.t, h.node)
		}
		isNew = func(r reference) bool {
			known := table.n
			return table.id(r.t, r.node) == known
		}
	}
	kept := wanted[:0]
	for _, r := range wanted {
		if isNew(r) {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

// newValueTable is newTable without a workspace.
func newValueTable(n int) valueTable {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return valueTable{slots: make([]int32, size), refs: make([]valueRef, n)}
}

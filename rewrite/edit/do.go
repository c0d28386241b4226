package edit

import (
	"strconv"

	"optimist/rewrite/tree"
)

// do does what the step does with the value at p.
func (r *run) do(p slot) error {
	var n *node // what is there
	if p.it != nil {
		n = p.it.node
	}
	switch r.s.Action {
	case OpAdd, OpMove, OpCopy:
		if !p.star && p.parent != nil && p.parent.kind == tree.Array {
			p.it = nil // what is there moves up
		}
		return r.set(p)
	case OpNow:
		return r.set(p)
	case OpReplace:
		if n == nil {
			return r.nothing(p, len(r.s.path))
		}
		return r.set(p)
	case OpDefault:
		if n != nil && n.kind != tree.Null {
			return nil
		}
		return r.set(p)
	case OpRemove:
		if n == nil {
			return r.nothing(p, len(r.s.path))
		}
		return r.remove(p)
	case OpRemoveEmpty:
		return r.removeEmpty(p)
	case OpTest:
		return r.test(p, n)
	case OpMerge:
		return r.merge(p, n)
	}
	if n != nil && n.kind == tree.Null {
		n = nil
	}
	return r.calculate(p, n)
}

// calculate is do for what takes null for nothing.
func (r *run) calculate(p slot, n *node) error {
	switch r.s.Action {
	case OpIncrement:
		return r.increment(p, n)
	case OpMax, OpMin:
		return r.limit(p, n)
	case OpAppend:
		array, err := r.arrayAt(p, n)
		if err != nil {
			return err
		}
		return r.push(array, r.val)
	}
	return r.union(p, n)
}

// set makes the step's value, or what was moved, the value at p.
func (r *run) set(p slot) error {
	if r.taken != nil {
		return r.put(p, r.taken)
	}
	n, err := r.copyOf(r.val)
	if err != nil {
		return err
	}
	return r.put(p, n)
}

func (r *run) test(p slot, n *node) error {
	if n == nil {
		return r.nothing(p, len(r.s.path))
	}
	if r.val.Exists() {
		if err := r.spend(workOfByte * len(r.val.Raw())); err != nil {
			return err
		}
		if n.equal(r.val) {
			return nil
		}
	}
	size, _ := n.size()
	if err := r.take(size); err != nil {
		return err
	}
	return r.differs(r.pointer(len(r.s.path)), cut(n.append(nil), maxShown))
}

// increment adds the value to n, exactly; nil is 0.
func (r *run) increment(p slot, n *node) error {
	if r.val.Kind() != tree.Number {
		return r.unfit()
	}
	by, ok := r.val.Decimal()
	if n != nil && n.kind != tree.Number {
		return r.mismatch(n, r.pointer(len(r.s.path)), "number")
	} else if n != nil && ok {
		var current tree.Decimal
		current, ok = n.was.Decimal()
		by = current.Add(by)
	}
	if ok {
		r.buf, ok = by.Append(r.buf[:0])
	}
	if !ok {
		return r.fail("", r.pointer(len(r.s.path)), "would be a number of more than "+strconv.Itoa(tree.MaxDigits)+" digits")
	}
	if err := r.charge(len(r.buf)); err != nil {
		return err
	}
	return r.put(p, r.newNode(r.made(r.buf)))
}

// limit keeps the larger or the smaller of n and the value; nil gives way to any.
func (r *run) limit(p slot, n *node) error {
	k := r.val.Kind()
	switch {
	case !r.s.Action.fits(k):
		return r.unfit()
	case n == nil:
		return r.set(p)
	case n.kind != k:
		return r.mismatch(n, r.pointer(len(r.s.path)), k.String())
	}
	order, ok := r.val.Compare(n.was)
	if !ok {
		return r.fail("", r.pointer(len(r.s.path)), "can't be compared: an exponent is too long")
	}
	if r.s.Action == OpMax && order > 0 || r.s.Action == OpMin && order < 0 {
		return r.set(p)
	}
	return nil
}

// arrayAt returns the array at p, opened; n is what is there, and nil is empty.
func (r *run) arrayAt(p slot, n *node) (*node, error) {
	if n == nil {
		n = r.newNode(emptyArray)
		if err := r.put(p, n); err != nil {
			return nil, err
		}
	}
	if n.kind != tree.Array {
		return nil, r.mismatch(n, r.pointer(len(r.s.path)), "array")
	}
	return n.expand(&r.editor), nil
}

// push puts a copy of a value at the end of an open array.
func (r *run) push(array *node, v tree.Value) error {
	n, err := r.copyOf(v)
	if err != nil {
		return err
	}
	r.above = append(r.above, array)
	err = r.put(slot{parent: array, at: len(array.items)}, n)
	r.above = r.above[:len(r.above)-1]
	return err
}

// merge applies the value to n, which is at p, as a merge patch.
func (r *run) merge(p slot, n *node) error {
	merged, err := r.mergePatch(n, r.val)
	if err != nil {
		return err
	}
	return r.put(p, merged)
}

// union adds to the array at p what it does not have of the step's value: an array's elements, or the one value. n is what is
// there; nil is an empty array.
func (r *run) union(p slot, n *node) error {
	if n != nil && n.kind == tree.Array && n.open {
		// What was edited is read again: its elements can be compared only as they were read.
		v, err := r.reread(n, false)
		if err != nil {
			return err
		}
		n = r.newNode(v)
		if err := r.put(p, n); err != nil {
			return err
		}
	}
	array, err := r.arrayAt(p, n)
	if err != nil {
		return err
	}
	wanted := []tree.Value{r.val}
	if r.val.Kind() == tree.Array {
		wanted = r.val.AppendElements(wanted[:0])
	}
	if err := r.spend(workOfElement*(len(array.items)+len(wanted)) + workOfByte*len(array.was.Raw())); err != nil {
		return err
	}
	r.table.Reset(len(array.items) + len(wanted))
	for _, it := range array.items {
		r.table.Number(it.node.was)
	}
	for _, v := range wanted {
		known := r.table.Len()
		r.table.Number(v)
		if r.table.Len() > known {
			if err := r.push(array, v); err != nil {
				return err
			}
		}
	}
	return nil
}

package rewrite

import "strconv"

// do does what the step does with the value at p.
func (a *application) do(p slot) error {
	var v *value // what is there
	if p.it != nil {
		v = p.it.v
	}
	switch a.s.Action {
	case OpAdd, OpMove, OpCopy:
		if p.it != nil && !p.star && p.parent != nil && p.parent.kind == kindArray {
			p.it = nil // what is there moves up
		}
		return a.set(p)
	case OpReplace:
		if v == nil {
			return a.nothing(len(a.s.path))
		}
		return a.set(p)
	case OpNow:
		return a.set(p)
	case OpDefault:
		if v != nil && v.kind != kindNull {
			return nil
		}
		return a.set(p)
	case OpRemove:
		if v == nil {
			return nil
		}
		return a.remove(p)
	case OpRemoveEmpty:
		return a.removeEmpty(p)
	case OpTest:
		return a.test(v)
	case OpMerge:
		return a.merge(p)
	}
	if v != nil && v.kind == kindNull {
		v = nil
	}
	switch a.s.Action {
	case OpIncrement:
		return a.increment(p, v)
	case OpMax, OpMin:
		return a.limit(p, v)
	case OpAppend:
		return a.appendTo(p, v)
	}
	return a.union(p, v)
}

// set makes the step's value, or what was moved, the value at p.
func (a *application) set(p slot) error {
	if a.taken != nil {
		return a.put(p, a.taken)
	}
	v, err := a.copyOf(a.val)
	if err != nil {
		return err
	}
	return a.put(p, v)
}

// copyOf returns a value of its own that comes to the document.
func (a *application) copyOf(r reference) (*value, error) {
	return a.newValue(r.t, r.node), a.charge(len(r.t.raw(r.node)))
}

func (a *application) test(v *value) error {
	if v == nil {
		return a.nothing(len(a.s.path))
	}
	if a.val.t != nil {
		if err := a.spend(workOfByte * len(a.val.t.raw(a.val.node))); err != nil {
			return err
		}
		if v.equal(a.val.t, a.val.node) {
			return nil
		}
	}
	return a.differs(a.pointer(len(a.s.path)), cut(v.append(nil)))
}

// increment adds the value to v, exactly; nil is 0.
func (a *application) increment(p slot, v *value) error {
	by := a.val
	if by.t.nodes[by.node].kind != kindNumber {
		return a.unfit()
	}
	var current []byte
	if v != nil {
		if v.kind != kindNumber {
			return a.mismatch(v, a.pointer(len(a.s.path)), "number")
		}
		current = v.t.raw(v.node)
	}
	text, ok := sum(nil, by.t.raw(by.node), current)
	if !ok {
		return a.fail("", a.pointer(len(a.s.path)), "would be a number of more than "+strconv.Itoa(maxDigits)+" digits")
	}
	if err := a.charge(len(text)); err != nil {
		return err
	}
	return a.put(p, a.scalar(kindNumber, text))
}

// limit keeps the larger or the smaller of v and the value; nil gives way to any.
func (a *application) limit(p slot, v *value) error {
	by := a.val
	k := by.t.nodes[by.node].kind
	if !a.s.Action.fits(k) {
		return a.unfit()
	}
	if v == nil {
		return a.set(p)
	}
	if v.kind != k {
		return a.mismatch(v, a.pointer(len(a.s.path)), kindNames[k])
	}
	order, ok := orderOf(by.t, by.node, v.t, v.node)
	if !ok {
		return a.fail("", a.pointer(len(a.s.path)), "can't be compared: an exponent is too long")
	}
	if a.s.Action == OpMax && order > 0 || a.s.Action == OpMin && order < 0 {
		return a.set(p)
	}
	return nil
}

// orderOf compares two numbers, or two strings.
func orderOf(s *tree, i int32, t *tree, j int32) (order int, ok bool) {
	if s.nodes[i].kind == kindNumber {
		x, y := readNumber(s.raw(i)), readNumber(t.raw(j))
		return x.compare(&y)
	}
	x, xEsc := s.text(i)
	y, yEsc := t.text(j)
	return compareText(x, y, xEsc, yEsc), true
}

// arrayAt returns the array at p, opened; v is what is there, and nil is empty.
func (a *application) arrayAt(p slot, v *value) (*value, error) {
	if v == nil {
		v = a.newValue(&emptyArray, 0)
		if err := a.put(p, v); err != nil {
			return nil, err
		}
	}
	if v.kind != kindArray {
		return nil, a.mismatch(v, a.pointer(len(a.s.path)), "array")
	}
	return v.expand(&a.memory), nil
}

// push puts a copy of a value at the end of an open array.
func (a *application) push(array *value, r reference) error {
	v, err := a.copyOf(r)
	if err != nil {
		return err
	}
	a.above = append(a.above, array)
	err = a.put(slot{parent: array, at: len(array.items)}, v)
	a.above = a.above[:len(a.above)-1]
	return err
}

func (a *application) appendTo(p slot, v *value) error {
	array, err := a.arrayAt(p, v)
	if err != nil {
		return err
	}
	return a.push(array, a.val)
}

// merge applies the value to what is at p as a merge patch.
func (a *application) merge(p slot) error {
	var v *value
	if p.it != nil {
		v = p.it.v
	}
	merged, err := a.mergePatch(v, a.val)
	if err != nil {
		return err
	}
	return a.put(p, merged)
}

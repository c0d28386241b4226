package rewrite

// MergePatch returns doc with a merge patch (RFC 7396) applied to it. Both may be any JSON value. What the patch doesn't name
// keeps its bytes; what it sets is spelled as in the patch.
//
// Errors: *SyntaxError, ErrTooDeep, ErrTooLarge.
func MergePatch(doc, patch []byte, l Limits) ([]byte, error) {
	e := newEditor(l)
	defer e.free()
	if err := e.read(doc); err != nil {
		return nil, err
	}
	t := e.tree()
	if err := t.parse(patch, e.limits); err != nil {
		return nil, err
	}
	v, err := e.mergePatch(e.root.v, reference{t, 0})
	if err != nil {
		return nil, err
	}
	e.root.v = v
	return e.render(), nil
}

// mergePatch returns what a merge patch makes of v, which may be nil. What is above v must be in e.above; the caller puts the
// result there.
func (e *editor) mergePatch(v *value, patch reference) (*value, error) {
	t := patch.t
	if t.nodes[patch.node].kind != kindObject || v == nil || v.kind != kindObject {
		v = e.newValue(t, patch.node)
		if err := e.charge(len(t.raw(patch.node))); err != nil {
			return nil, err
		}
		e.dropNulls(v)
		return v, nil
	}
	t.prepare(patch.node)
	v.expand(&e.memory)
	e.above = append(e.above, v)
	for c := t.firstChild(patch.node); c != none; c = t.nextChild(patch.node, c) {
		if t.shadowed(c) {
			continue
		}
		if err := e.mergeMember(v, t, c); err != nil {
			return nil, err
		}
	}
	e.above = e.above[:len(e.above)-1]
	return v, nil
}

// mergeMember applies member c of a merge patch to an open object.
func (e *editor) mergeMember(v *value, t *tree, c int32) error {
	key, esc := t.keyText(c)
	name := string(appendText(nil, key, esc))
	it := v.member(name)
	if t.nodes[c].kind == kindNull {
		if it != nil {
			v.removeMember(it)
		}
		return nil
	}
	if it != nil {
		merged, err := e.mergePatch(it.v, reference{t, c})
		if err != nil {
			return err
		}
		it.v = merged
		return e.deepen(merged)
	}
	merged, err := e.mergePatch(nil, reference{t, c})
	if err != nil {
		return err
	}
	if err := e.charge(len(name) + len(`,"":`)); err != nil {
		return err
	}
	v.addMember(&e.memory, name, merged)
	return e.deepen(merged)
}

// dropNulls takes the nulls out of an object that a merge patch sets, and out of the objects in it. Those in arrays stay.
func (e *editor) dropNulls(v *value) {
	if v.kind != kindObject || !v.t.holdsNullMember(v.node) {
		return
	}
	v.expand(&e.memory)
	goes := e.lists.alloc(len(v.items))[:0]
	for _, it := range v.items {
		if it.hidden {
			continue
		}
		if it.v.kind == kindNull {
			goes = append(goes, it)
		}
		e.dropNulls(it.v)
	}
	for _, it := range goes {
		v.removeMember(it)
	}
}

// holdsNullMember reports whether below value i there is a member, of whatever object, that is null.
func (t *tree) holdsNullMember(i int32) bool {
	for c := i + 1; c < t.nodes[i].skip; c++ {
		if t.nodes[c].kind == kindNull && t.nodes[c].keyEnd != 0 {
			return true
		}
	}
	return false
}

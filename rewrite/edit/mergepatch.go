package edit

import (
	"bytes"
	"cmp"
	"math"
	"strconv"

	"optimist/rewrite/tree"
)

// MergePatch returns doc with a merge patch (RFC 7396) applied to it. Both may be any JSON value. Members that the patch doesn't name
// keep their bytes; values that it sets are spelled as in the patch.
//
// Errors: *tree.SyntaxError, tree.ErrTooDeep, tree.ErrTooLarge.
func MergePatch(doc, patch []byte, l tree.Limits) ([]byte, error) {
	r := newRun(nil)
	defer r.end()
	if err := r.read(doc, l); err != nil {
		return nil, err
	}
	p, err := r.parse(patch, 0)
	if err != nil {
		return nil, err
	}
	if r.root.node, err = r.mergePatch(r.root.node, p); err != nil {
		return nil, err
	}
	return r.render()
}

// EngineMerge returns doc after an _update with part as its `doc`; both are objects. The engine merges objects key by key, and everything
// else replaces the old value; null, too, is stored. Values that the engine takes for unchanged keep their bytes. If all are unchanged,
// the engine answers a noop, and the result is doc itself. The engine refuses duplicate keys; here the last one counts.
//
// Errors: those of tree.Tree.ParseObject for either.
func EngineMerge(doc, part []byte, l tree.Limits) ([]byte, error) {
	r := newRun(nil)
	defer r.end()
	if err := r.read(doc, l); err != nil {
		return nil, err
	}
	p, err := r.parse(part, 0)
	switch {
	case err != nil:
		return nil, err
	case r.root.node.kind != tree.Object || p.Kind() != tree.Object:
		return nil, tree.ErrNotObject
	}
	if err := r.mergeMembers(r.root.node, p, (*run).engineMember); err != nil || r.short != nil || !r.changed {
		return doc, cmp.Or(err, r.short)
	}
	return r.render()
}

// mergeMembers makes of each member of an object what merge makes of it, where there is one, and of the member of part with the same key;
// nil is nothing. What is above the object must be in r.above.
func (r *run) mergeMembers(n *node, part tree.Value, merge func(r *run, n *node, part tree.Value) (*node, error)) error {
	n.expand(&r.editor)
	r.above = append(r.above, n)
	for c := part.First(); c.Exists(); c = c.Next() {
		name, old := c.Key(), (*node)(nil)
		it := n.member(name)
		if it != nil {
			old = it.node
		}
		merged, err := merge(r, old, c)
		switch {
		case err != nil:
			return err
		case merged == old:
			continue
		case merged == nil:
			n.remove(it)
			continue
		case it != nil:
			it.node = merged
		default:
			if err := r.charge(len(name) + len(`,"":`)); err != nil {
				return err
			}
			n.addMember(&r.editor, name, merged)
		}
		r.changed = true
		if err := r.deepen(merged); err != nil {
			return err
		}
	}
	r.above = r.above[:len(r.above)-1]
	return nil
}

// mergePatch returns what a merge patch makes of n, which may be nil. What is above n must be in r.above; the caller puts the
// result there.
func (r *run) mergePatch(n *node, patch tree.Value) (*node, error) {
	if patch.Kind() == tree.Object && n != nil && n.kind == tree.Object {
		return n, r.mergeMembers(n, patch, (*run).patchMember)
	}
	n, err := r.copyOf(patch)
	if err == nil {
		r.dropNulls(n)
		err = r.short
	}
	return n, err
}

// patchMember is mergePatch for a member, which null takes away.
func (r *run) patchMember(n *node, patch tree.Value) (*node, error) {
	if patch.Kind() == tree.Null {
		return nil, nil
	}
	return r.mergePatch(n, patch)
}

// dropNulls takes the nulls out of an object that a merge patch sets, and out of the objects in it. Those in arrays stay.
func (r *run) dropNulls(n *node) {
	isNull := func(v tree.Value) bool { return v.Kind() == tree.Null && v.IsMember() }
	if n.kind != tree.Object || !n.was.Any(isNull) {
		return
	}
	n.expand(&r.editor)
	goes := r.lists.Alloc(len(n.items))[:0]
	for _, it := range n.items {
		if it.hidden {
			continue
		}
		if it.node.kind == tree.Null {
			goes = append(goes, it)
		}
		r.dropNulls(it.node)
	}
	for _, it := range goes {
		n.remove(it)
	}
}

// engineMember returns what the engine makes of a member.
func (r *run) engineMember(n *node, part tree.Value) (*node, error) {
	switch {
	case n == nil:
	case n.kind == tree.Object && part.Kind() == tree.Object:
		return n, r.mergeMembers(n, part, (*run).engineMember)
	case sameToEngine(n.was, part):
		return n, nil
	}
	return r.copyOf(part)
}

// sameToEngine compares as the engine does when it looks for a noop: by what Java makes of the two. Keys are in any order; 1 and 1.0
// differ, 1.0 and 1.00 don't, nor do two decimals that only a double takes for equal.
func sameToEngine(a, b tree.Value) bool {
	k := a.Kind()
	if k != b.Kind() || a.Len() != b.Len() {
		return false
	}
	members, d := b.Finder(), b.First()
	switch k {
	case tree.Number:
		return sameNumberToEngine(a.Raw(), b.Raw())
	case tree.Object:
		for c := a.First(); c.Exists(); c = c.Next() {
			if !sameToEngine(c, members.Like(c)) {
				return false
			}
		}
		return true
	case tree.Array:
		for c := a.First(); c.Exists(); c, d = c.Next(), d.Next() {
			if !sameToEngine(c, d) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

func sameNumberToEngine(a, b []byte) bool {
	isDecimal := bytes.ContainsAny(a, ".eE")
	switch {
	case isDecimal != bytes.ContainsAny(b, ".eE"):
		return false
	case !isDecimal:
		return string(a) == string(b) || isZero(a) && isZero(b)
	}
	x, _ := strconv.ParseFloat(string(a), 64) // what is too large becomes infinite there, too
	y, _ := strconv.ParseFloat(string(b), 64)
	return math.Float64bits(x) == math.Float64bits(y)
}

// isZero reports whether a whole number is 0, for which the engine takes -0, too.
func isZero(n []byte) bool { return string(bytes.TrimPrefix(n, []byte("-"))) == "0" }

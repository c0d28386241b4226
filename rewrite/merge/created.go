package merge

import (
	"slices"

	"optimist/rewrite/tree"
)

// AfterCreation returns the Merger with the same strategies for a client that found no document, where another client has made one
// meanwhile. made returns the document as it was made, and then what further clients have sent that found none, either. It returns nothing
// if that isn't known. All these clients begin with the same defaults. So a value or an entry of a list that the document was made with, or
// that most of these clients have sent, counts as unchanged. Otherwise the client's defaults would undo later changes of others.
//
// Values with a rule that calculates count from nothing. So do those that two clients must not both set: see Fail.
func (m *Merger) AfterCreation(made func() [][]byte) *Merger {
	with := *m
	with.made = made
	return &with
}

// untouched is the base of a client that found no document; nil: it has changed all that it sent.
func (m *Merger) untouched(sent []byte) []byte {
	if m.made == nil {
		return nil
	}
	made := m.made()
	if len(made) == 0 {
		return nil
	}
	r, err := m.begin([]byte("{}"), sent, nil)
	defer r.end()
	if err != nil {
		return nil // as it is for the merge
	}
	roots := make([]tree.Value, 0, len(made))
	for _, source := range made {
		t := tree.Borrow()
		defer t.Return()
		if t.ParseObject(source, m.limits) == nil {
			roots = append(roots, t.Root())
		}
	}
	return r.untouched(nil, roots, len(roots) == len(made), r.sent.Root(), r.root())
}

// untouched appends to out the object of an object's defaults. made are the same object of other clients. isFirst says that the first of
// them is of the document as it was made.
func (r *run) untouched(out []byte, made []tree.Value, isFirst bool, sent tree.Value, sc scope) []byte {
	finders := make([]tree.Finder, len(made))
	for i := range made {
		finders[i] = made[i].Finder()
	}
	var members [][]byte
	for m := sent.First(); m.Exists(); m = m.Next() {
		var like []tree.Value // of the same kind or, if it is no container, of the same value
		first := false
		for i := range finders {
			if v := finders[i].Like(m); v.Exists() && v.Kind() == m.Kind() && (m.Kind().IsContainer() || v.Equal(m)) {
				like, first = append(like, v), first || isFirst && i == 0
			}
		}
		sub := r.enter(sc, tree.Place{Member: m})
		switch key := slices.Clone(m.KeyAndColon()); {
		case len(like) == 0:
		case m.Kind() == tree.Object:
			members = append(members, r.untouched(key, like, first, m, sub))
		case m.Kind() == tree.Array:
			members = append(members, r.defaults(key, like, first, m))
		case r.strategy(sub) < Fail && isDefault(first, len(like), len(made)):
			members = append(members, append(key, m.Raw()...))
		}
		r.leave(sc)
	}
	return enclose(out, '{', members, '}')
}

// isDefault reports whether some content of a client's new document is a default. first says that the document was made with it, and n of
// all other clients have sent it.
func isDefault(first bool, n, all int) bool { return first || 2*n > all }

// defaults appends to out the list of a list's entries that are defaults. made and isFirst are as for untouched.
func (r *run) defaults(out []byte, made []tree.Value, isFirst bool, sent tree.Value) []byte {
	entries, ids := sent.AppendElements(nil), &r.Table
	ids.Reset(len(entries))
	numbers := make([]int32, len(entries))
	for i, e := range entries {
		numbers[i] = ids.Number(e)
	}
	counts := make([]map[int32]int, len(made)) // how often each of them has an entry
	for i, list := range made {
		counts[i] = map[int32]int{}
		for e := list.First(); e.Exists(); e = e.Next() {
			if id, ok := ids.Find(e); ok {
				counts[i][id]++
			}
		}
	}
	var common [][]byte
	for i, e := range entries {
		id, n := numbers[i], 0
		first := isFirst && counts[0][id] > 0
		for _, has := range counts {
			if has[id] > 0 {
				has[id]--
				n++
			}
		}
		if isDefault(first, n, len(made)) {
			common = append(common, e.Raw())
		}
	}
	return enclose(out, '[', common, ']')
}

// enclose appends to out an object or list of some members.
func enclose(out []byte, open byte, members [][]byte, shut byte) []byte {
	out = append(out, open)
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, m...)
	}
	return append(out, shut)
}

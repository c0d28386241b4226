package merge

import (
	"slices"

	"optimist/rewrite/tree"
)

// Repeatable reports whether the change base→sent may be applied to current although it may have been applied before (an
// answer was lost, and somebody else has written since): it only sets and removes values, or changes them under Union, Max
// or Min, or inside of elements and whole elements under ByKey, or their order; and every path that it touches is in current still as in
// the base. Insertions into an array, removals from it and sums count twice when they are applied twice, so they never are
// repeatable. A change of nothing is.
//
// Errors are those of Merge for a document.
func (m *Merger) Repeatable(base, sent, current []byte) (bool, error) {
	r, err := m.begin(base, sent, current)
	defer r.end()
	return err == nil && r.repeatable(r.base.Root(), r.sent.Root(), r.cur.Root(), r.root()), err
}

// Repeatable is Merger.Repeatable without any rules.
func Repeatable(base, sent, current []byte) (bool, error) {
	m := Merger{rules: make([]ruleNode, 1)}
	return m.Repeatable(base, sent, current)
}

func (r *run) repeatable(b, s, c tree.Value, sc scope) bool {
	st, from, to := r.strategy(sc), b.Kind(), s.Kind()
	switch {
	case b.Equal(s):
		return true
	case from == tree.Object && to == tree.Object:
		return c.Kind() == tree.Object && r.membersRepeatable(b, s, c, sc)
	case st == ByKey && from == tree.Array && to == tree.Array && c.Kind() == tree.Array:
		return r.elementsRepeatable(b, s, c, sc)
	case !b.Equal(c), st == Sum && to == tree.Number:
		return false
	}
	return st == Union || from != tree.Array || to != tree.Array
}

func (r *run) membersRepeatable(b, s, c tree.Value, sc scope) bool {
	base, sent, cur := b.Finder(), s.Finder(), c.Finder()
	for m := s.First(); m.Exists(); m = m.Next() {
		ok := r.repeatable(base.Like(m), m, cur.Like(m), r.enter(sc, tree.Place{Member: m}))
		r.leave(sc)
		if !ok {
			return false
		}
	}
	for m := b.First(); m.Exists(); m = m.Next() {
		if !sent.Like(m).Exists() && !m.Equal(cur.Like(m)) {
			return false
		}
	}
	return true
}

// elementsRepeatable is membersRepeatable for arrays whose elements have keys.
func (r *run) elementsRepeatable(b, s, c tree.Value, sc scope) bool {
	mark := r.Mark()
	defer r.Cut(mark)
	key, base, sent, cur := r.rules[sc.rule].key, r.Elements(b), r.Elements(s), r.Elements(c)
	in, ok := r.match(base, sent, cur, key)
	if !ok {
		return false
	}
	if bySent, byCur := r.orders(base, key, r.places(sent, key), r.places(cur, key)); !slices.IsSorted(bySent) && !slices.IsSorted(byCur) {
		return false
	}
	for id := range r.Table.Len() {
		if !in.base[id].Exists() && !in.sent[id].Exists() {
			continue // somebody else's
		}
		ok := r.repeatable(in.base[id], in.sent[id], in.cur[id], r.enter(sc, tree.Place{Index: id}))
		r.leave(sc)
		if !ok {
			return false
		}
	}
	return true
}

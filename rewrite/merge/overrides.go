package merge

import "optimist/rewrite/tree"

// Overrides reports whether a part of a document only sets values, all of them other than base's, and whether each replaces any value
// that another client writes there. Such a part means the same from any base, and doesn't show that its client has read one.
//
// A nil base is the absent document. Errors are those of Merge for a document.
func (m *Merger) Overrides(base, part []byte) (bool, error) {
	r, err := m.begin(base, part, base)
	defer r.end()
	return err == nil && r.overrides(r.base.Root(), r.sent.Root(), r.root()), err
}

func (r *run) overrides(b, s tree.Value, sc scope) bool {
	switch s.Kind() {
	case tree.Array:
		return false // its elements are merged
	case tree.Object:
	default:
		return r.strategy(sc) == Sent && !b.Equal(s)
	}
	base := b.Finder()
	for m := s.First(); m.Exists(); m = m.Next() {
		ok := r.overrides(base.Like(m), m, r.enter(sc, tree.Place{Member: m}))
		r.leave(sc)
		if !ok {
			return false
		}
	}
	return true
}

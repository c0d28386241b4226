package merge

import "optimist/rewrite/tree"

// AfterCreation returns the Merger with the same strategies for a client that found no document, where another client has made one
// meanwhile: created returns the document as it was created, or nil if that isn't known. Both clients begin with the same defaults. So a
// value that is equal in both counts as unchanged. Otherwise the client's defaults would undo later changes of others.
//
// Values with a rule that calculates count from nothing, and lists merge by their elements: two clients may well add the same.
func (m *Merger) AfterCreation(created func() []byte) *Merger {
	with := *m
	with.created = created
	return &with
}

// untouched is the base of a client that found no document; nil: it has changed all that it sent.
func (m *Merger) untouched(sent []byte) []byte {
	if m.created == nil {
		return nil
	}
	created := m.created()
	if created == nil {
		return nil
	}
	r, err := m.begin(created, sent, nil, silence{})
	defer r.end()
	if err != nil {
		return nil // as it is for the merge
	}
	return r.untouched(nil, r.base.Root(), r.sent.Root(), r.root())
}

// untouched appends to out the object of what two objects have in common.
func (r *run) untouched(out []byte, made, sent tree.Value, sc scope) []byte {
	finder, first := made.Finder(), true
	out = append(out, '{')
	for m := sent.First(); m.Exists(); m = m.Next() {
		was, sub := finder.Like(m), r.enter(sc, tree.Place{Member: m})
		switch inner := was.Kind() == tree.Object && m.Kind() == tree.Object; {
		case !was.Exists(), !inner && (m.Kind().IsContainer() || r.strategy(sub) >= Sum || !was.Equal(m)):
		default:
			if !first {
				out = append(out, ',')
			}
			first = false
			if out = append(out, m.KeyAndColon()...); inner {
				out = r.untouched(out, was, m, sub)
			} else {
				out = append(out, m.Raw()...)
			}
		}
		r.leave(sc)
	}
	return append(out, '}')
}

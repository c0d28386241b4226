package merge

import (
	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// Fail refuses what both sides changed, also if they changed it to the same: "claimed" of two clients are two claims, as two equal steps of
// a sum are two. Other strategies needn't look at what neither side has any more. This file does that for Fail.

// fails reports whether the rule at sc says so. A strategy that can't be applied to its values decides like Fail only where the values
// differ.
func (s *scopes) fails(sc scope) bool { return s.decisive(sc).strategy == Fail }

// failAt is a conflict about the base's value at a place, if the rule there says fail. The others, which may be missing, aren't in that
// place.
func (r *run) failAt(p tree.Place, of sides, sc scope) {
	if sub := r.enter(sc, p); r.fails(sub) {
		r.takes(of.b, of.s, of.c, sub)
	}
	r.leave(sc)
}

// failMembers is for the members of the base that both sides removed.
func (r *run) failMembers(b, s, c tree.Value, sc scope) {
	sent, cur := s.Finder(), c.Finder()
	for m := b.First(); m.Exists(); m = m.Next() {
		if !sent.Like(m).Exists() && !cur.Like(m).Exists() {
			r.failAt(tree.Place{Member: m}, sides{b: m}, sc)
		}
	}
}

// failKeyed is for the elements of the base whose key neither side has any more. It needs the numbers of match.
func (r *run) failKeyed(in *keyed, base []tree.Value, key string, sc scope) {
	for k, e := range base {
		if id := r.Table.Number(diff.KeyOf(e, key)); !in.sent[id].Exists() && !in.cur[id].Exists() {
			r.failAt(tree.Place{Index: k}, sides{b: e}, sc)
		}
	}
}

// failElements is for the elements of the base that both sides took out, or that one side took out and the other replaced. Those that both
// replaced are merged like other values. An element that a side moved is still there.
func (r *run) failElements(e *edits, sc scope) {
	if !e.bothRemove() {
		return
	}
	mark, ids := r.Ints.Mark(), &r.Table
	defer r.Ints.Cut(mark)
	ids.Reset(len(e.sent.A))
	numbers, moved := r.Ints.Alloc(len(e.sent.A)), r.Ints.Alloc(len(e.sent.A))
	for i, b := range e.sent.A {
		numbers[i] = ids.Number(b)
	}
	for _, side := range [...]struct {
		by       []diff.Edit
		elements []tree.Value
	}{{e.bySent, e.sent.B}, {e.byCur, e.cur.B}} {
		inserted(side.by, func(x int32) {
			if id, ok := ids.Find(side.elements[x]); ok {
				moved[id] = 1
			}
		})
	}
	for i, of := range e.removals {
		if moved[numbers[i]] == 0 && (!of.s.Exists() || !of.c.Exists()) {
			r.failAt(tree.Place{Index: i}, of, sc)
		}
	}
}

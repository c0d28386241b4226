package merge

import (
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// maxIdentities is how many members of an element are tried as what tells it from others.
const maxIdentities = 16

// byIdentity merges the elements of arrays of objects as ByKey does, by a member that no rule names, where the scripts would take
// elements apart: one side moved and changed an element that the other side touched, too, or both replaced it, and not by the same
// object. ok is false where the scripts do as well, and where nothing tells the elements apart.
func (r *run) byIdentity(e *edits, sc scope) (p plan, ok bool) {
	if !e.bothRemove() {
		return plan{}, false
	}
	mark := r.Mark()
	key, named := r.named(e)
	ok = named
	if !named {
		key, ok = r.identity(e, sc)
		ok = ok && !r.counts(e.sent.A[0].Get(key), sc)
	}
	if ok {
		var in keyed
		in, ok = r.match(e.sent.A, e.sent.B, e.cur.B, key)
		ok = ok && r.scattered(e, in, key, named) && (named || !r.staysItself(e, in, key))
	}
	r.Cut(mark)
	if !ok {
		return plan{}, false
	}
	p.cur = e.cur.B
	p.keep = r.Ints.Alloc(len(p.cur))
	return p, r.byKey(&p, e.sent.A, e.sent.B, key, sc)
}

// removals yields the elements that both scripts remove, with what each side has in their place, if anything.
func (e *edits) removals(yield func(i int, of sides) bool) {
	bySent, byCur := e.bySent, e.byCur
	for i, b := range e.sent.A {
		if e.sent.To[i] != diff.None || e.cur.To[i] != diff.None {
			continue
		}
		of := sides{b: b}
		if s := over(&bySent, int32(i)); s.Replaces() {
			of.s = e.sent.B[s.Instead]
		}
		if c := over(&byCur, int32(i)); c.Replaces() {
			of.c = e.cur.B[c.Instead]
		}
		if !yield(i, of) {
			return
		}
	}
}

// bothRemove reports whether both scripts remove an element.
func (e *edits) bothRemove() bool {
	for range e.removals {
		return true
	}
	return false
}

// staysItself reports whether each element that both sides removed stands in its place still, and the members that neither side has changed
// in these elements tell the elements of each array apart. Two members may do that together, such as a product and a size. Each side has
// then changed something else in the same element, such as a stock. That is no identity, even if all stocks happen to differ.
//
// But if both sides still have the keys of all these elements, the keys say where the elements are. What stays in its place may then be
// the number of the place, such as a rank, which a client writes anew when it moves elements.
func (r *run) staysItself(e *edits, in keyed, key string) bool {
	var same []tree.Value
	first, kept := true, true
	for _, of := range e.removals {
		if !of.s.Exists() || !of.c.Exists() {
			return false
		}
		id := r.Table.Number(diff.KeyOf(of.b, key))
		kept = kept && in.sent[id].Exists() && in.cur[id].Exists()
		if first {
			same, first = r.members(of.b), false
		}
		inBase, inSent, inCur := of.b.Finder(), of.s.Finder(), of.c.Finder()
		same = slices.DeleteFunc(same, func(m tree.Value) bool {
			was := inBase.Like(m)
			return !was.Exists() || !was.Equal(inSent.Like(m)) || !was.Equal(inCur.Like(m))
		})
	}
	return !kept && len(same) > 0 && tellApart(same, e.sent.A) && tellApart(same, e.sent.B) && tellApart(same, e.cur.B)
}

// members lists the first members of an object.
func (r *run) members(v tree.Value) []tree.Value {
	list := r.List(maxIdentities)
	for m := v.First(); m.Exists() && m.IsMember() && len(list) < maxIdentities; m = m.Next() {
		list = append(list, m)
	}
	return list
}

// tellApart reports whether no two elements have the same values in all of the members.
func tellApart(members, elements []tree.Value) bool {
	seen := make(map[uint64]bool, len(elements))
	for _, e := range elements {
		var all uint64
		in := e.Finder()
		for _, m := range members {
			all *= 31
			if v := in.Like(m); v.Exists() {
				all += v.Hash()
			}
		}
		if seen[all] {
			return false
		}
		seen[all] = true
	}
	return true
}

// identity finds the member that tells the elements of each array apart, and of which the base has the most values in common with the
// other two. Of several it is the first that no rule counts.
func (r *run) identity(e *edits, sc scope) (key string, ok bool) {
	most, n := 0, 0
	for m := e.sent.A[0].First(); m.Exists() && m.IsMember() && n < maxIdentities; m = m.Next() {
		n++
		mark := r.Mark()
		if in, fits := r.match(e.sent.A, e.sent.B, e.cur.B, m.Key()); fits {
			common := 2 * in.common()
			if common > 0 && !r.counts(m, sc) {
				common++
			}
			if common > most {
				most, key = common, m.Key()
			}
		}
		r.Cut(mark)
	}
	return key, most > 0
}

// counts reports whether a rule makes member m of each element of the array at sc a number that it calculates. Such numbers differ by
// chance.
func (r *run) counts(m tree.Value, sc scope) bool {
	if sc.lo == sc.hi {
		return false
	}
	element := r.enter(sc, tree.Place{})
	defer r.leave(sc)
	member := r.enter(element, tree.Place{Member: m})
	defer r.leave(element)
	return member.rule != 0 && r.strategy(member).calculates()
}

// named finds the first of diff.IdentityNames that tells the elements of each array apart.
func (r *run) named(e *edits) (key string, ok bool) {
	for _, name := range diff.IdentityNames {
		if !diff.KeyOf(e.sent.A[0], name).Exists() {
			continue
		}
		mark := r.Mark()
		_, fits := r.match(e.sent.A, e.sent.B, e.cur.B, name)
		r.Cut(mark)
		if fits {
			return name, true
		}
	}
	return "", false
}

// common counts the keys of the base that the two others have.
func (in *keyed) common() (n int) {
	for id, b := range in.base {
		if !b.Exists() {
			continue
		}
		if in.sent[id].Exists() {
			n++
		}
		if in.cur[id].Exists() {
			n++
		}
	}
	return n
}

// scattered reports whether the scripts disagree with the identities of an element that both remove. named says that an element with
// another key is another object.
func (r *run) scattered(e *edits, in keyed, key string, named bool) bool {
	for _, of := range e.removals {
		own := diff.KeyOf(of.b, key)
		id := r.Table.Number(own)
		toSent, toCur := in.sent[id], in.cur[id]
		switch {
		case of.s.Exists() && of.c.Exists():
			sentStays, curStays := toSent == of.s || !toSent.Exists(), toCur == of.c || !toCur.Exists()
			keySent, keyCur := diff.KeyOf(of.s, key), diff.KeyOf(of.c, key)
			renamed := !toSent.Exists() && !toCur.Exists() && !keySent.Equal(keyCur)
			other := named && !(keySent.Equal(own) && keyCur.Equal(own))
			if !sentStays || !curStays || renamed || other {
				return true
			}
		case !toSent.Exists() && !toCur.Exists(): // both removed it
		case !toSent.Equal(of.b) || !toCur.Equal(of.b): // not both moved it as it is
			return true
		}
	}
	return false
}

// over takes the edits before the base's element i, and returns the one of which an element stands for it, if there is one.
func over(by *[]diff.Edit, i int32) diff.Edit {
	for len(*by) > 0 && (*by)[0].I < i {
		*by = (*by)[1:]
	}
	return at(by, i)
}

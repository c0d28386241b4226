package merge

import (
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// A transfer is an object that at least one side has moved from one list of the base to another list, such as a card of a board. List by
// list, that is a removal and an insertion. If the other side has changed the object, too, or has moved it elsewhere, it would be there
// twice: so transfers are settled before the lists merge. See run.settle.
type transfer struct {
	b, s, c       tree.Value // the object; the client or current may have removed it
	bySent, byCur bool       // who has moved it
	together      bool       // both have moved it to the same list
}

// transfers finds the transfers that have to be settled. Its keys are the object's values, one for each document that has the object. It
// returns none if one such object is in another one: they can't be settled one by one.
func (r *run) transfers() map[tree.Value]transfer {
	if !r.mayTransfer() {
		return nil
	}
	in := map[tree.Value]transfer{}
	base, sent, cur := r.takeInventory(&r.base), r.takeInventory(&r.sent), r.takeInventory(&r.cur)
	for id, b := range base.objects {
		s, c := sent.objects[id], cur.objects[id]
		if b.twice || s.twice || c.twice || base.there[b.list] > 1 || r.parts && !isInPart(b, s, c) {
			continue
		}
		t := transfer{b: b.object, s: s.object, c: c.object, bySent: sent.movedFrom(b, s), byCur: cur.movedFrom(b, c), together: s.list == c.list}
		if (t.bySent || sent.leaves(b, s)) && (t.byCur || cur.leaves(b, c)) && t.touchedByBoth() {
			for _, v := range [...]tree.Value{t.b, t.s, t.c} {
				if v.Exists() {
					in[v] = t
				}
			}
		}
	}
	outermost := 0
	r.visit(in, func(tree.Value, scope) { outermost++ })
	if outermost < len(in) {
		return nil
	}
	return in
}

// mayTransfer reports whether a side has grouped objects in lists anew: most changes are within objects, or in one list.
func (r *run) mayTransfer() bool {
	names := diff.IdentityNames[:]
	for i := range r.rules {
		if n := &r.rules[i]; n.strategy == ByKey {
			names = append(slices.Clip(names), n.key)
		}
	}
	for _, side := range [...]tree.Value{r.sent.Root(), r.cur.Root()} {
		if base := r.base.Root(); !slices.Equal(grouping(base, side, names), grouping(side, base, names)) {
			return true
		}
	}
	return false
}

// grouping is which objects are in which list, in members that another document hasn't. Of a single list only its place counts.
func grouping(doc, other tree.Value, names []string) (ids []uint64) {
	lists, end, others := 0, 0, other.Finder()
	add := func(v tree.Value) bool {
		if !v.Kind().IsContainer() {
			return false
		}
		ids = append(ids, v.KeyHash())
		if v.Kind() == tree.Array && v.FirstOfAll().Kind() == tree.Object {
			lists, end = lists+1, len(ids)
		} else if _, id := identityOf(v, names); id.Exists() && !v.IsMember() {
			ids[len(ids)-1] = id.Hash()
		}
		return false
	}
	for m := doc.First(); m.Exists(); m = m.Next() {
		if !others.Like(m).SameBytes(m) {
			add(m)
			m.Any(add)
		}
	}
	if lists == 1 {
		return ids[:end]
	}
	return ids
}

// identityOf returns the first of some members that an element of a list has and that may say which one it is.
func identityOf(e tree.Value, names []string) (name string, id tree.Value) {
	for _, name := range names {
		if id := diff.KeyOf(e, name); id.Exists() {
			return name, id
		}
	}
	return "", tree.Value{}
}

// touchedByBoth reports whether the lists can't merge the transfer one by one. If only one side has touched the object, they do.
func (t *transfer) touchedByBoth() bool {
	return (t.bySent || t.byCur) && (t.bySent || !t.b.Equal(t.s)) && (t.byCur || !t.b.Equal(t.c))
}

// settle decides where each of the objects is, and merges the two sides' changes in it. It rewrites the three documents so that the object
// is new there in one of them, and nowhere else. Then the lists merge as if one side had put it in.
//
// If one side moved it, it goes where that side has it. If both moved it to the same list, it stays where current has it; if to two lists,
// the strategy decides. If one side removed it, the strategy decides, too: the other side may mean its list, and not the one it was in.
func (r *run) settle(in map[tree.Value]transfer) (base, sent, cur []byte) {
	to := map[tree.Value][]byte{} // what stands in the place of each of the values; nil is nothing
	for v := range in {
		to[v] = nil
	}
	r.visit(in, func(v tree.Value, sc scope) {
		switch t := in[v]; {
		case v == t.b:
			if r.fails(sc) {
				r.ruled(t, sc)
			}
		case v == t.c || !t.c.Exists():
			at, text := r.home(t, sc)
			to[at] = text
		}
	})
	return rewrite(r.base.Root(), to), rewrite(r.sent.Root(), to), rewrite(r.cur.Root(), to)
}

// home decides where the object of a transfer is, and merges the two sides' changes in it. The object takes the place of the value at, and
// its text there is text. A nil text says that the object is gone.
func (r *run) home(t transfer, sc scope) (at tree.Value, text []byte) {
	if !t.c.Exists() {
		if r.ruled(t, sc) {
			text = t.s.Raw()
		}
		return t.s, text
	}
	at = t.c
	switch {
	case t.s.Exists():
		if t.bySent && (!t.byCur || !t.together && r.ruled(t, sc)) {
			at = t.s
		}
		r.value(t.b, t.s, t.c, sc)
	case r.ruled(t, sc):
		r.replace(t.c, nil)
	}
	text = r.result(t.c)
	r.account.merged(r, t.c)
	r.splices = nil
	return at, text
}

// ruled has the strategy decide where a transfer is, and reports whether it is where the client has it.
func (r *run) ruled(t transfer, sc scope) bool {
	by := ruling{verdict: r.byStrategy(sc), both: true}
	r.account.decided(r, by, sides{t.b, t.s, t.c}, sc)
	return r.note(by.verdict)
}

// visit calls do for each of the values that is in no other one: for those of the base, then of current, then of sent.
func (r *run) visit(in map[tree.Value]transfer, do func(v tree.Value, sc scope)) {
	if len(in) == 0 {
		return
	}
	for _, doc := range [...]*tree.Tree{&r.base, &r.cur, &r.sent} {
		r.visitBelow(doc.Root(), r.root(), in, do)
	}
}

func (r *run) visitBelow(v tree.Value, sc scope, in map[tree.Value]transfer, do func(v tree.Value, sc scope)) {
	if _, ok := in[v]; ok {
		do(v, sc)
		return
	}
	i := 0
	for c := v.First(); c.Exists(); c = c.Next() {
		if c.Kind().IsContainer() {
			p := tree.Place{Index: i}
			if c.IsMember() {
				p = tree.Place{Member: c}
			}
			r.visitBelow(c, r.enter(sc, p), in, do)
			r.leave(sc)
		}
		i++
	}
}

// rewrite returns a document with other texts in the place of some elements.
func rewrite(root tree.Value, texts map[tree.Value][]byte) []byte {
	s := splicer{src: root.Source()}
	s.rewrite(root, texts)
	return s.render()
}

func (s *splicer) rewrite(v tree.Value, texts map[tree.Value][]byte) {
	out := s.edit(v)
	for c := v.FirstOfAll(); c.Exists(); c = c.NextOfAll() {
		text, other := texts[c]
		if !out.keepOrRemove(c, !other || text != nil) {
			continue
		}
		if other {
			s.replace(c, text)
		} else if c.Kind().IsContainer() {
			s.rewrite(c, texts)
		}
	}
}

// settleTransfers has the merge go on with documents in which transfers are settled.
func (r *run) settleTransfers(l tree.Limits) error {
	in := r.transfers()
	if len(in) == 0 {
		return nil
	}
	if l.Room != nil {
		if err := l.Room.Take(int64(len(r.base.Bytes()) + len(r.sent.Bytes()) + len(r.cur.Bytes()))); err != nil {
			return err
		}
	}
	if r.steps != nil {
		r.sight() // while the three documents are as they were
	}
	base, sent, cur := r.settle(in)
	r.Release()
	r.gone = nil
	return r.read(base, sent, cur, l)
}

package merge

import (
	"cmp"
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

// objectID says which object an element of a list is.
type objectID struct {
	name string // of the member that has the id
	hash uint64 // of the id
}

// An address says where in a document a list or an object is, as a hash. It doesn't hold the places of elements, which others may shift: an
// object has its id there, or else its texts, such as the name of a board's column. An object with an id has the same address wherever it
// is.
type address uint64

func (a address) step(hash uint64) address {
	a = (a ^ address(hash)) * 0x9E3779B97F4A7C15
	return a ^ a>>32
}

// An inventory lists the objects with an id in the lists of one document.
type inventory struct {
	order   []objectID
	objects map[objectID]listed
	there   map[address]int // how many lists, or objects, have the address
}

// A position is where a list is.
type position struct {
	list   address
	holder address // of the object that has the list
	outer  address // of the outermost list around it
}

// listed is an object in a list.
type listed struct {
	object, id tree.Value
	position
	twice bool // another one has the same id
}

// transfers finds what has to be settled, in the base's order. If one such object is in another, there is nothing that can be.
func (r *run) transfers() (list []transfer) {
	if !r.mayTransfer() {
		return nil
	}
	var objects [3][]tree.Value // of the list, in each document
	base, sent, cur := r.takeInventory(&r.base), r.takeInventory(&r.sent), r.takeInventory(&r.cur)
	for _, id := range base.order {
		b, s, c := base.objects[id], sent.objects[id], cur.objects[id]
		if b.twice || s.twice || c.twice || base.there[b.list] > 1 || r.parts && !isInPart(b, s, c) {
			continue
		}
		t := transfer{b: b.object, s: s.object, c: c.object, bySent: sent.movedFrom(b, s), byCur: cur.movedFrom(b, c), together: s.list == c.list}
		if (t.bySent || sent.leaves(b, s)) && (t.byCur || cur.leaves(b, c)) && t.touchedByBoth() {
			list = append(list, t)
			for i, v := range [...]tree.Value{t.b, t.s, t.c} {
				if v.Exists() {
					objects[i] = append(objects[i], v)
				}
			}
		}
	}
	if slices.ContainsFunc(objects[:], nested) {
		return nil
	}
	return list
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

// isInPart reports whether the part that the client sends holds the list in which current has an object. A part holds lists whole.
func isInPart(b, s, c listed) bool {
	return !c.object.Exists() || c.outer == b.outer || c.outer == s.outer
}

// leaves reports whether the document has left the base's object b, as l, in its list, or has removed it there. If it has removed the whole
// list, that decides nothing about an object that the other side has taken out of the list.
func (in *inventory) leaves(b, l listed) bool {
	return l.list == b.list || !l.object.Exists() && in.there[b.list] == 1
}

// touchedByBoth reports whether the lists can't merge the transfer one by one. If only one side has touched the object, they do.
func (t *transfer) touchedByBoth() bool {
	return (t.bySent || t.byCur) && (t.bySent || !t.b.Equal(t.s)) && (t.byCur || !t.b.Equal(t.c))
}

// nested reports whether one object of a document is in another.
func nested(all []tree.Value) bool {
	slices.SortFunc(all, func(a, b tree.Value) int {
		x, _ := a.Span()
		y, _ := b.Span()
		return cmp.Compare(x, y)
	})
	end := 0
	for _, v := range all {
		from, to := v.Span()
		if from < end {
			return true
		}
		end = to
	}
	return false
}

func (r *run) takeInventory(t *tree.Tree) *inventory {
	in := &inventory{objects: map[objectID]listed{}, there: map[address]int{}}
	r.trail, r.states = r.trail[:0], r.states[:0]
	r.addObject(in, t.Root(), position{}, r.root())
	return in
}

// addObject lists what is in an object, which is at at.list.
func (r *run) addObject(in *inventory, v tree.Value, at position, sc scope) {
	in.there[at.list]++
	at.holder = at.list
	for m := v.First(); m.Exists(); m = m.Next() {
		if !m.Kind().IsContainer() {
			continue
		}
		to, sub := at, r.enter(sc, tree.Place{Member: m})
		to.list = at.list.step(m.KeyHash())
		if m.Kind() == tree.Object {
			r.addObject(in, m, to, sub)
		} else if first := m.FirstOfAll(); !first.Exists() || first.Kind() == tree.Object {
			r.addElements(in, m, to, sub)
		}
		r.leave(sc)
	}
}

func (r *run) addElements(in *inventory, v tree.Value, at position, sc scope) {
	names := diff.IdentityNames[:]
	if r.strategy(sc) == ByKey {
		names = []string{r.rules[sc.rule].key}
	}
	if at.outer == 0 {
		at.outer = at.list
	}
	in.there[at.list]++
	i := 0
	for e := v.First(); e.Exists(); e = e.Next() {
		if e.Kind() == tree.Object {
			of := at
			if name, id := identityOf(e, names); id.Exists() {
				key := objectID{name, id.Hash()}
				_, twice := in.objects[key]
				in.order = append(in.order, key)
				in.objects[key] = listed{e, id, at, twice}
				of.list = address(0).step(key.hash)
			} else {
				of.list = at.list.step(hashOfTexts(e))
			}
			r.addObject(in, e, of, r.enter(sc, tree.Place{Index: i}))
			r.leave(sc)
		}
		i++
	}
}

// hashOfTexts is the hash of an object's texts and their names.
func hashOfTexts(e tree.Value) (hash uint64) {
	for m := e.First(); m.Exists(); m = m.Next() {
		if m.Kind() == tree.String {
			hash += uint64(address(m.KeyHash()).step(m.Hash()))
		}
	}
	return hash
}

// movedFrom reports whether the document has the base's object b in another list, as l, and still has the list where it was, or has left it
// out because nothing is in it. Otherwise the list may have moved, too. An object that has little but its id in common with b is another
// one: a user and an order may have the same number and a name, but hardly the same name.
func (in *inventory) movedFrom(b, l listed) bool {
	if l.list == b.list || !b.id.Equal(l.id) || in.there[b.list] > 1 || in.there[b.holder] != 1 || in.there[l.list] != 1 {
		return false
	}
	was, names, same := b.object.Finder(), 0, 0
	for m := l.object.First(); m.Exists(); m = m.Next() {
		if w := was.Like(m); w.Exists() {
			names++
			if w.Equal(m) {
				same++
			}
		}
	}
	n := min(b.object.Len(), l.object.Len())
	return 2*names > n && same >= min(n, 2) // one of them is the id
}

// settle decides where each of the objects is, and merges the two sides' changes in it. It rewrites the three documents so that the object
// is new there in one of them, and nowhere else. Then the lists merge as if one side had put it in.
//
// If one side moved it, it goes where that side has it. If both moved it to the same list, it stays where current has it; if to two lists,
// the strategy decides. If one side removed it, the strategy decides, too: the other side may mean its list, and not the one it was in.
func (r *run) settle(list []transfer) (base, sent, cur []byte) {
	// in has the objects of the base, and of current or, if they aren't there, of sent. to is what stands in the place of objects: nil is
	// nothing.
	in, to := map[tree.Value]transfer{}, map[tree.Value][]byte{}
	for _, t := range list {
		in[t.b], to[t.b] = t, nil
		if t.c.Exists() {
			in[t.c] = t
		} else {
			in[t.s] = t
		}
	}
	r.visit(r.base.Root(), r.root(), in, func(t transfer, sc scope) {
		if r.fails(sc) {
			r.ruled(t, sc)
		}
	})
	r.visit(r.cur.Root(), r.root(), in, func(t transfer, sc scope) {
		if t.s.Exists() {
			r.settleBoth(t, sc, to)
		} else if r.ruled(t, sc) {
			to[t.c] = nil
			r.replace(t.c, nil)
		}
		r.account.merged(r, t.c)
		r.splices = nil
	})
	r.visit(r.sent.Root(), r.root(), in, func(t transfer, sc scope) {
		if !r.ruled(t, sc) {
			to[t.s] = nil
		}
	})
	return rewrite(r.base.Root(), to), rewrite(r.sent.Root(), to), rewrite(r.cur.Root(), to)
}

// settleBoth is settle for an object that both sides have.
func (r *run) settleBoth(t transfer, sc scope, to map[tree.Value][]byte) {
	follow := t.bySent && (!t.byCur || !t.together && r.ruled(t, sc))
	r.value(t.b, t.s, t.c, sc)
	to[t.s], to[t.c] = nil, r.result(t.c)
	if follow {
		to[t.s], to[t.c] = to[t.c], nil
	}
}

// ruled has the strategy decide where a transfer is, and reports whether it is where the client has it.
func (r *run) ruled(t transfer, sc scope) bool {
	by := ruling{verdict: r.byStrategy(sc), both: true}
	r.account.decided(r, by, sides{t.b, t.s, t.c}, sc)
	return r.note(by.verdict)
}

// visit calls do for the transfers in v, which is at sc. It looks at each value once: there may be many of them.
func (r *run) visit(v tree.Value, sc scope, in map[tree.Value]transfer, do func(t transfer, sc scope)) {
	if t, ok := in[v]; ok {
		do(t, sc)
		return
	}
	i := 0
	for c := v.First(); c.Exists(); c = c.Next() {
		if c.Kind().IsContainer() {
			p := tree.Place{Index: i}
			if c.IsMember() {
				p = tree.Place{Member: c}
			}
			r.visit(c, r.enter(sc, p), in, do)
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

// settleTransfers has the merge go on with documents in which transfers are settled. It reports whether there are any.
func (r *run) settleTransfers(l tree.Limits) (found bool, err error) {
	list := r.transfers()
	if len(list) == 0 {
		return false, nil
	}
	if l.Room != nil {
		if err := l.Room.Take(int64(len(r.base.Bytes()) + len(r.sent.Bytes()) + len(r.cur.Bytes()))); err != nil {
			return true, err
		}
	}
	if r.steps != nil {
		r.sight() // while the three documents are as they were
	}
	base, sent, cur := r.settle(list)
	r.Release()
	r.gone = nil
	return true, r.read(base, sent, cur, l)
}

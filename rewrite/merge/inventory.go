package merge

import (
	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

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

// isInPart reports whether the part that the client sends holds the list in which current has an object. A part holds lists whole.
func isInPart(b, s, c listed) bool {
	return !c.object.Exists() || c.outer == b.outer || c.outer == s.outer
}

// leaves reports whether the document has left the base's object b, as l, in its list, or has removed it there. If it has removed the whole
// list, that decides nothing about an object that the other side has taken out of the list.
func (in *inventory) leaves(b, l listed) bool {
	return l.list == b.list || !l.object.Exists() && in.there[b.list] == 1
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

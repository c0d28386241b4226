package tree

import (
	"slices"
	"sync"
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds. Missing is that of a value that isn't there.
const (
	Missing Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "false", "true", "number", "string", "array", "object"}

// String is the kind in a word.
func (k Kind) String() string { return kindNames[k] }

// IsContainer reports whether values of the kind have others in them.
func (k Kind) IsContainer() bool { return k >= Array }

// HasIdentity reports whether values of the kind mostly say which one they are, as names do: strings and objects. Numbers are equal by
// chance, and arrays are rows of a table, or points.
func (k Kind) HasIdentity() bool { return k == String || k == Object }

const (
	flagEscaped    = 1 << iota // a string that contains a backslash
	flagKeyEscaped             // the member's key contains a backslash
	flagLast                   // the last child of its container
	flagPrepared               // an object whose duplicate keys are marked, see prepare
	flagHidden                 // a member that a later one with the same key hides
	flagHashed                 // hash is valid
)

// none stands for a node that is not there.
const none int32 = -1

// A node is one value of a document. Nodes lie in document order: the first child of node i is i+1, its next sibling is
// skip. Offsets are into Tree.src.
type node struct {
	start, end  int32 // the value's bytes
	key, keyEnd int32 // the key's bytes with their quotes; keyEnd is 0 for what isn't a member
	skip        int32 // index of the first node after this one and all below it
	count       int32 // elements; members, once prepared without the hidden ones
	table       int32 // 1 + the object's place in Tree.tables; 0 is none
	kind        Kind
	flags       uint8
	height      uint16 // 0 for what is no container, else one more than its highest child
	hash        uint64 // see Value.hash
}

// A table is where in Tree.slots the lookup table of a large object lies. Its length is a power of two.
type table struct{ at, length int32 }

// A Tree is a parsed document: the bytes, and where in them what is. It belongs to one goroutine, because looking into it may
// write to it, unless it is frozen. The zero Tree is ready for Parse.
type Tree struct {
	src    []byte
	nodes  []node
	tables []table
	slots  []int32 // node indexes plus 1; 0 is a free slot
	depth  int     // Limits.Depth, Limits.Values and Limits.Room of Parse
	values int
	room   Room
}

// Bytes are those of the document.
func (t *Tree) Bytes() []byte { return t.src }

// Root is the document as a value.
func (t *Tree) Root() Value { return Value{t, 0} }

// Len is how many values the document has.
func (t *Tree) Len() int { return len(t.nodes) }

// Grow makes room for that many values.
func (t *Tree) Grow(n int) { t.nodes = slices.Grow(t.nodes[:0], n) }

// Release drops the document and keeps the memory for the next, unless that is more than is worth keeping.
func (t *Tree) Release() {
	const keepNodes, keepSlots = 1 << 14, 1 << 16
	t.src, t.room = nil, nil
	if cap(t.nodes) > keepNodes || cap(t.slots) > keepSlots {
		*t = Tree{}
	}
}

var trees = sync.Pool{New: func() any { return new(Tree) }}

// Borrow returns a Tree for one call, with the memory of those before it. Return it.
func Borrow() *Tree {
	t, _ := trees.Get().(*Tree)
	return t
}

// Return is Release of a Tree that was borrowed. Neither it nor any of its values may be used afterwards.
func (t *Tree) Return() {
	t.Release()
	trees.Put(t)
}

// Freeze does all that looking into the tree would do to it, so that several goroutines may look at the same time.
func (t *Tree) Freeze() {
	for i := range t.nodes {
		Value{t, int32(i)}.prepare()
	}
	for i := range t.nodes {
		Value{t, int32(i)}.Hash()
	}
}

// tableFrom is the number of members from which an object gets a lookup table; below it a scan is faster.
const tableFrom = 12

// prepare marks duplicate keys of an object and gives a large one its lookup table. It isn't done while parsing, because most
// objects are found to be unchanged by their bytes and never looked into.
func (v Value) prepare() {
	t, n := v.t, &v.t.nodes[v.i]
	if n.kind != Object || n.flags&flagPrepared != 0 {
		return
	}
	n.flags |= flagPrepared
	switch {
	case n.count >= tableFrom:
		t.buildTable(v.i)
		return
	case t.keysDiffer(v.i):
		return
	}
	for c := v.i + 1; c < n.skip; c = t.nodes[c].skip {
		key, esc := t.keyText(c)
		for d := t.nodes[c].skip; d < n.skip; d = t.nodes[d].skip {
			if t.keyIs(d, key, esc) {
				t.nodes[c].flags |= flagHidden
				n.count--
				break
			}
		}
	}
}

// keysDiffer reports whether the keys of object i differ at a glance: in their lengths, first and last bytes.
func (t *Tree) keysDiffer(i int32) bool {
	var seen [4]uint64
	for c := i + 1; c < t.nodes[i].skip; c = t.nodes[c].skip {
		m := &t.nodes[c]
		look := uint(m.keyEnd-m.key)*31 + uint(t.src[m.key+1])*5 + uint(t.src[m.keyEnd-2])
		word, bit := &seen[look>>6&3], uint64(1)<<(look&63)
		if *word&bit != 0 || m.flags&flagKeyEscaped != 0 {
			return false
		}
		*word |= bit
	}
	return true
}

// buildTable fills a table by open addressing. The keyed hash keeps a document from choosing its own collisions.
func (t *Tree) buildTable(i int32) {
	n := &t.nodes[i]
	length := int32(32)
	for length < 2*n.count {
		length *= 2
	}
	at := int32(len(t.slots))
	t.slots = growZero(t.slots, int(length))
	t.tables = append(t.tables, table{at, length})
	n.table = int32(len(t.tables))
	slots := t.slots[at:]
	for c := i + 1; c < n.skip; c = t.nodes[c].skip {
		key, esc := t.keyText(c)
		slot := t.slotOf(slots, key, esc)
		if old := slots[slot]; old != 0 {
			t.nodes[old-1].flags |= flagHidden
			n.count--
		}
		slots[slot] = c + 1
	}
}

// growZero appends n zeros.
func growZero(s []int32, n int) []int32 {
	at := len(s)
	if cap(s)-at < n {
		s = append(make([]int32, 0, 2*cap(s)+n), s...)
	}
	s = s[:at+n]
	clear(s[at:])
	return s
}

// slotOf returns the slot that holds key, or the free one where it would go.
func (t *Tree) slotOf(slots []int32, key []byte, esc bool) int {
	mask := len(slots) - 1
	at := int(hashText(key, esc)) & mask
	for slots[at] != 0 && !t.keyIs(slots[at]-1, key, esc) {
		at = (at + 1) & mask
	}
	return at
}

// keyText returns what is between the quotes of member i's key, still escaped, and whether it has escapes.
func (t *Tree) keyText(i int32) (text []byte, esc bool) {
	n := &t.nodes[i]
	return t.src[n.key+1 : n.keyEnd-1], n.flags&flagKeyEscaped != 0
}

func (t *Tree) keyIs(c int32, key []byte, esc bool) bool {
	other, otherEsc := t.keyText(c)
	return sameText(key, esc, other, otherEsc)
}

// find returns the member of a prepared object that has the key, or none; of several the last.
func (t *Tree) find(i int32, key []byte, esc bool) int32 {
	n := &t.nodes[i]
	if n.table != 0 {
		tab := t.tables[n.table-1]
		slots := t.slots[tab.at : tab.at+tab.length]
		return slots[t.slotOf(slots, key, esc)] - 1
	}
	for c := i + 1; c < n.skip; c = t.nodes[c].skip {
		if t.nodes[c].flags&flagHidden == 0 && t.keyIs(c, key, esc) {
			return c
		}
	}
	return none
}

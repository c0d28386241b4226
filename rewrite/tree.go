package rewrite

// kind is the type of a JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

const (
	flagEscaped    = 1 << iota // a string that contains a backslash
	flagKeyEscaped             // the member's key contains a backslash
	flagPrepared               // an object whose duplicate keys are marked, see prepare
	flagShadowed               // a member that a later one with the same key hides
	flagHashed                 // hash is valid
	flagJudged                 // a member of current that the client removed: flagGone is valid
	flagGone                   // it goes, and what it hides with it
)

// none stands for a value that is not there.
const none int32 = -1

// A node is one value of a document. Nodes lie in document order: the first child of node i is i+1, its next sibling is
// skip. Offsets are into tree.src.
type node struct {
	start, end  int32 // the value's bytes
	key, keyEnd int32 // the key's bytes with their quotes; keyEnd is 0 for what isn't a member
	skip        int32 // index of the first node after this one and all below it
	count       int32 // elements; members, once prepared without the shadowed ones
	table       int32 // 1 + the object's place in tree.tables; 0 is none
	kind        kind
	flags       uint8
	height      uint16 // 0 for what is no container, else one more than its highest child
	hash        uint64 // see hashOf
}

// A table is where in tree.slots the lookup table of a large object lies. Its length is a power of two.
type table struct{ at, length int32 }

// A tree is a parsed document: the bytes, and where in them what is. It belongs to one goroutine; looking into it may
// write to it.
type tree struct {
	src    []byte
	nodes  []node
	tables []table
	slots  []int32 // node indexes plus 1; 0 is a free slot
	depth  int     // Limits.Depth and Limits.Values of the call
	values int
}

// release drops what the tree knows and keeps its memory, unless that is more than is worth keeping.
func (t *tree) release() {
	const keepNodes, keepSlots = 1 << 14, 1 << 16
	t.src, t.nodes, t.tables, t.slots = nil, t.nodes[:0], t.tables[:0], t.slots[:0]
	if cap(t.nodes) > keepNodes {
		t.nodes = nil
	}
	if cap(t.slots) > keepSlots {
		t.slots, t.tables = nil, nil
	}
}

// raw returns the bytes of value i, as they stand in the document.
func (t *tree) raw(i int32) []byte { return t.src[t.nodes[i].start:t.nodes[i].end] }

// text returns what is between the quotes of string i, still escaped, and whether it has escapes.
func (t *tree) text(i int32) ([]byte, bool) {
	n := &t.nodes[i]
	return t.src[n.start+1 : n.end-1], n.flags&flagEscaped != 0
}

// keyText returns what is between the quotes of member i's key, still escaped, and whether it has escapes.
func (t *tree) keyText(i int32) ([]byte, bool) {
	n := &t.nodes[i]
	return t.src[n.key+1 : n.keyEnd-1], n.flags&flagKeyEscaped != 0
}

// member returns the bytes of member i: key and value with what is between them. Of an element it returns the value.
func (t *tree) member(i int32) []byte {
	n := &t.nodes[i]
	if n.keyEnd == 0 {
		return t.src[n.start:n.end]
	}
	return t.src[n.key:n.end]
}

// is reports whether value i is there and of kind k.
func (t *tree) is(i int32, k kind) bool { return i != none && t.nodes[i].kind == k }

// firstChild returns the first child of container i, or none.
func (t *tree) firstChild(i int32) int32 {
	if t.nodes[i].skip == i+1 {
		return none
	}
	return i + 1
}

// nextChild returns the sibling after child c of container i, or none.
func (t *tree) nextChild(i, c int32) int32 {
	if next := t.nodes[c].skip; next < t.nodes[i].skip {
		return next
	}
	return none
}

// shadowed reports whether member c is hidden by a later one with the same key. Its object must be prepared.
func (t *tree) shadowed(c int32) bool { return t.nodes[c].flags&flagShadowed != 0 }

// tableFrom is the number of members from which an object gets a lookup table; below it a scan is faster.
const tableFrom = 12

// prepare marks duplicate keys and gives a large object its lookup table. It isn't done while parsing, because most
// objects are found to be unchanged by their bytes and never looked into.
func (t *tree) prepare(i int32) {
	n := &t.nodes[i]
	if n.flags&flagPrepared != 0 {
		return
	}
	n.flags |= flagPrepared
	if n.count >= tableFrom {
		t.buildTable(i)
		return
	}
	for c := i + 1; c < n.skip; c = t.nodes[c].skip {
		key, esc := t.keyText(c)
		for d := t.nodes[c].skip; d < n.skip; d = t.nodes[d].skip {
			if t.keyIs(d, key, esc) {
				t.nodes[c].flags |= flagShadowed
				n.count--
				break
			}
		}
	}
}

// buildTable fills a table by open addressing. The keyed hash keeps a document from choosing its own collisions.
func (t *tree) buildTable(i int32) {
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
			t.nodes[old-1].flags |= flagShadowed
			n.count--
		}
		slots[slot] = c + 1
	}
}

// slotOf returns the slot that holds key, or the free one where it would go.
func (t *tree) slotOf(slots []int32, key []byte, esc bool) int {
	mask := len(slots) - 1
	at := int(hashText(key, esc)) & mask
	for slots[at] != 0 && !t.keyIs(slots[at]-1, key, esc) {
		at = (at + 1) & mask
	}
	return at
}

func (t *tree) keyIs(c int32, key []byte, esc bool) bool {
	other, otherEsc := t.keyText(c)
	return sameText(key, esc, other, otherEsc)
}

// find returns the member of object i that has the key, or none; of several the last. hint is the member to try first, or
// none: documents that are compared mostly have their keys in one order.
func (t *tree) find(i int32, key []byte, esc bool, hint int32) int32 {
	if i == none {
		return none
	}
	t.prepare(i)
	if hint != none && !t.shadowed(hint) && t.keyIs(hint, key, esc) {
		return hint
	}
	n := &t.nodes[i]
	if n.table != 0 {
		tab := t.tables[n.table-1]
		slots := t.slots[tab.at : tab.at+tab.length]
		return slots[t.slotOf(slots, key, esc)] - 1
	}
	for c := i + 1; c < n.skip; c = t.nodes[c].skip {
		if !t.shadowed(c) && t.keyIs(c, key, esc) {
			return c
		}
	}
	return none
}

// after returns the hint for the key that follows the one found at c in object i: the sibling, or none.
func (t *tree) after(i, c int32) int32 {
	if c == none {
		return none
	}
	return t.nextChild(i, c)
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

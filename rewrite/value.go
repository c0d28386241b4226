package rewrite

import "slices"

// A value is one value of a document that is edited. It is its bytes until something in it is looked up: only then it is
// opened, one level.
type value struct {
	t      *tree
	node   int32
	kind   kind
	open   bool
	height int // at least that of what is in it
	// Of an open value:
	items  []*item
	read   int              // how many of the items, the first ones, were read: the others are new
	live   int              // elements; members, without hidden and removed ones
	gone   int              // members that were removed, but are in items
	byName map[string]*item // the new members, if they are many
	lead   []byte           // white space from the opening bracket to the first item
	tail   []byte           // from the last item to the closing bracket
}

// An item is a member or an element.
type item struct {
	gap    []byte // what is between the item before and this one; nil for the first, and for new ones
	key    []byte // a member's key and colon, as they stand
	name   []byte // the content of a new member's key
	node   int32  // of a member that was read, in the tree of its object; else none
	v      *value
	gone   bool  // a removed member, which is taken out of the list later, with others
	hidden bool  // a later member has the same key
	hides  *item // the last of those before it that have the same key
}

// byNameFrom is the number of new members from which a lookup goes through a map.
const byNameFrom = 16

// expand opens a container.
func (v *value) expand(m *memory) *value {
	if v.open || v.kind < kindArray {
		return v
	}
	v.open = true
	t, n := v.t, &v.t.nodes[v.node]
	isObject := v.kind == kindObject
	if isObject {
		t.prepare(v.node)
	}
	count := 0 // n.count is without the shadowed ones
	for c := t.firstChild(v.node); c != none; c = t.nextChild(v.node, c) {
		count++
	}
	m.opened += count
	const room = 2 // for what is added
	values, items := m.values.alloc(count), m.items.alloc(count)
	v.items = m.lists.alloc(count + room)[:count]
	at, c := n.start+1, t.firstChild(v.node)
	for i := range items {
		child, it := &t.nodes[c], &items[i]
		values[i] = value{t: t, node: c, kind: child.kind, height: int(child.height)}
		it.v, it.node = &values[i], none
		start := child.start
		if isObject {
			start, it.key = child.key, t.src[child.key:child.start]
			it.node, it.hidden = c, t.shadowed(c)
		}
		if i == 0 {
			v.lead = t.src[at:start]
		} else {
			it.gap = t.src[at:start]
		}
		v.items[i] = it
		at, c = child.end, t.nextChild(v.node, c)
	}
	v.tail, v.live, v.read = t.src[at:n.end-1], int(n.count), count
	if v.live < count {
		v.linkDuplicates()
	}
	return v
}

// linkDuplicates notes which members each member hides.
func (v *value) linkDuplicates() {
	last := make(map[string]*item, len(v.items))
	for _, it := range v.items {
		key, esc := v.t.keyText(it.node)
		name := string(appendText(nil, key, esc))
		it.hides, last[name] = last[name], it
	}
}

// child returns the item that a token names, or why there is none.
func (v *value) child(m *memory, token string) (it *item, reason string) {
	v.expand(m)
	switch v.kind {
	case kindObject:
		if it := v.member(token); it != nil {
			return it, ""
		}
		return nil, "names no member of the object"
	case kindArray:
		at, reason := arrayIndex(token, len(v.items))
		if reason != "" {
			return nil, reason
		}
		return v.items[at], ""
	}
	return nil, leadsNowhere
}

// member returns the member of an open object that has the name, or nil.
func (v *value) member(name string) *item {
	if c := v.t.find(v.node, []byte(name), false, none); c != none {
		// What was read is in the order of its nodes.
		at, found := slices.BinarySearchFunc(v.items[:v.read], c, func(it *item, c int32) int { return int(it.node) - int(c) })
		if found && !v.items[at].gone {
			return v.items[at]
		}
	}
	if v.byName != nil {
		return v.byName[name]
	}
	for _, it := range v.items[v.read:] {
		if !it.gone && string(it.name) == name {
			return it
		}
	}
	return nil
}

const leadsNowhere = "leads into a value that is neither object nor array"

// arrayIndex reads a token as an array index below n, as RFC 6901 has it: digits without a zero in front. The reason says
// why it is none.
func arrayIndex(token string, n int) (at int, reason string) {
	switch {
	case token == "-":
		return 0, "is the place behind the last element, where there is no value"
	case token == "", len(token) > 1 && token[0] == '0':
		return 0, "is not an array index"
	}
	for i := range len(token) {
		if token[i] < '0' || token[i] > '9' {
			return 0, "is not an array index"
		}
		at = min(at*10+int(token[i]-'0'), n) // does not overflow
	}
	if at >= n {
		return 0, "is beyond the end of the array"
	}
	return at, ""
}

// addMember adds a member to an open object that has none of that name.
func (v *value) addMember(m *memory, name string, child *value) {
	it := m.newItem(child)
	it.name, it.key = []byte(name), append(appendString(make([]byte, 0, len(name)+len(`"":`)), name), ':')
	v.items = append(v.items, it)
	v.live++
	switch {
	case v.byName != nil:
		v.byName[name] = it
	case len(v.items)-v.read >= byNameFrom:
		v.byName = make(map[string]*item, 2*byNameFrom)
		for _, it := range v.items[v.read:] {
			if !it.gone {
				v.byName[string(it.name)] = it
			}
		}
	}
}

// removeMember takes out a member, and those that it hides: they would come to light.
func (v *value) removeMember(it *item) {
	v.live--
	if v.byName != nil && it.node == none {
		delete(v.byName, string(it.name))
	}
	for ; it != nil; it = it.hides {
		it.gone = true
		v.gone++
	}
	if v.gone > byNameFrom && v.gone > len(v.items)/2 {
		read := 0
		for _, it := range v.items[:v.read] {
			if !it.gone {
				read++
			}
		}
		v.items = slices.DeleteFunc(v.items, func(it *item) bool { return it.gone })
		v.gone, v.read = 0, read
	}
}

// keyText returns what is between the quotes of a member's key, and whether that has escapes.
func (v *value) keyText(it *item) (key []byte, esc bool) {
	if it.node == none {
		return it.name, false
	}
	return v.t.keyText(it.node)
}

// append appends the value's bytes: all that it had, but for what was changed.
func (v *value) append(dst []byte) []byte {
	if !v.open {
		return append(dst, v.t.raw(v.node)...)
	}
	dst = append(append(dst, v.t.src[v.t.nodes[v.node].start]), v.lead...)
	first := true
	for _, it := range v.items {
		switch {
		case it.gone:
			continue
		case first:
		case it.gap == nil:
			dst = append(dst, ',')
		default:
			dst = append(dst, it.gap...)
		}
		first = false
		dst = it.v.append(append(dst, it.key...))
	}
	return append(append(dst, v.tail...), v.t.src[v.t.nodes[v.node].end-1])
}

// equal compares with value j of t, at a cost that depends on its size only.
func (v *value) equal(t *tree, j int32) bool {
	if !v.open {
		return equal(v.t, v.node, t, j)
	}
	if t.nodes[j].kind != v.kind {
		return false
	}
	if v.kind == kindObject {
		t.prepare(j)
	}
	if int(t.nodes[j].count) != v.live {
		return false
	}
	c := t.firstChild(j)
	for _, it := range v.items {
		if it.gone || it.hidden {
			continue
		}
		if v.kind == kindObject {
			key, esc := v.keyText(it)
			c = t.find(j, key, esc, none)
		}
		if c == none || !it.v.equal(t, c) {
			return false
		}
		if v.kind == kindArray {
			c = t.nextChild(j, c)
		}
	}
	return true
}

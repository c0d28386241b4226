package rewrite

import "slices"

// A value is one value of a document that a patch is applied to. It is its bytes until something in it is looked up: only
// then it is opened, one level.
type value struct {
	t      *tree
	node   int32
	kind   kind
	open   bool
	height int // at least that of what is in it
	// Of an open value:
	items  []*item
	live   int              // elements; members, without hidden and removed ones
	gone   int              // members that were removed, but are in items
	byName map[string]*item // of a large object
	lead   []byte           // white space from the opening bracket to the first item
	tail   []byte           // from the last item to the closing bracket
}

// An item is a member or an element.
type item struct {
	gap    []byte // what is between the item before and this one; nil for the first, and for new ones
	key    []byte // a member's key and colon, as they stand
	name   string // the key's content
	v      *value
	gone   bool  // a removed member, which is taken out of the list later, with others
	hidden bool  // a later member has the same key
	hides  *item // the last of those before it that have the same key
}

// byNameFrom is the number of members from which a lookup goes through a map.
const byNameFrom = 16

func newValue(t *tree, node int32) *value {
	return &value{t: t, node: node, kind: t.nodes[node].kind, height: int(t.nodes[node].height)}
}

// expand opens a container.
func (v *value) expand() *value {
	if v.open || v.kind < kindArray {
		return v
	}
	v.open = true
	t, n := v.t, v.t.nodes[v.node]
	values, items := make([]value, n.count), make([]item, n.count)
	at := n.start + 1
	c := t.firstChild(v.node)
	for i := range items {
		m, it := t.nodes[c], &items[i]
		values[i] = value{t: t, node: c, kind: m.kind, height: int(m.height)}
		start := m.start
		if m.keyEnd != 0 {
			start, it.key = m.key, t.src[m.key:m.start]
			key, esc := t.keyText(c)
			it.name = string(appendText(nil, key, esc))
		}
		it.v = &values[i]
		if i == 0 {
			v.lead = t.src[at:start]
		} else {
			it.gap = t.src[at:start]
		}
		v.items = append(v.items, it)
		at, c = m.end, t.nextChild(v.node, c)
	}
	v.tail, v.live = t.src[at:n.end-1], len(items)
	if v.kind == kindObject {
		t.prepare(v.node)
		if v.live >= byNameFrom || int(t.nodes[v.node].count) < v.live {
			v.index()
		}
	}
	return v
}

// index finds duplicate keys, and gives a large object its map.
func (v *value) index() {
	byName := make(map[string]*item, len(v.items))
	for _, it := range v.items {
		if before := byName[it.name]; before != nil {
			before.hidden, it.hides = true, before
			v.live--
		}
		byName[it.name] = it
	}
	if len(v.items) >= byNameFrom {
		v.byName = byName
	}
}

// child returns the item that a token names, or why there is none.
func (v *value) child(token string) (it *item, reason string) {
	v.expand()
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

func (v *value) member(name string) *item {
	if v.byName != nil {
		return v.byName[name]
	}
	for _, it := range v.items {
		if !it.gone && !it.hidden && it.name == name {
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

func (v *value) addMember(name string, child *value) {
	it := &item{key: append(appendString(nil, name), ':'), name: name, v: child}
	v.items = append(v.items, it)
	v.live++
	switch {
	case v.byName != nil:
		v.byName[name] = it
	case len(v.items) >= byNameFrom:
		v.byName = make(map[string]*item, 2*len(v.items))
		for _, it := range v.items {
			if !it.gone && !it.hidden {
				v.byName[it.name] = it
			}
		}
	}
}

// removeMember takes out a member, and those that it hides: they would come to light.
func (v *value) removeMember(it *item) {
	v.live--
	if v.byName != nil {
		delete(v.byName, it.name)
	}
	for ; it != nil; it = it.hides {
		it.gone = true
		v.gone++
	}
	if v.gone > byNameFrom && v.gone > len(v.items)/2 {
		v.items = slices.DeleteFunc(v.items, func(it *item) bool { return it.gone })
		v.gone = 0
	}
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
			c = t.find(j, []byte(it.name), false, none)
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

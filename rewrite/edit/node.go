package edit

import (
	"slices"

	"optimist/rewrite/tree"
)

// A node is one value of a document that is edited. It is its bytes until something in it is looked up: only then it is
// opened, one level.
type node struct {
	was    tree.Value // as it was read
	kind   tree.Kind
	open   bool
	height int // at least that of what is in it
	// Of an open node:
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
	gap    []byte     // what is between the item before and this one; nil for the first, and for new ones
	key    []byte     // a member's key and colon, as they stand
	was    tree.Value // of a member that was read
	name   string     // the content of a new member's key
	node   *node
	gone   bool  // a removed member, which is taken out of the list later, with others
	hidden bool  // a later member has the same key
	hides  *item // the last of those before it that have the same key
}

// byNameFrom is the number of new members from which a lookup goes through a map.
const byNameFrom = 16

// expand opens a container. Without memory for that it stays closed, and the edits end: see editor.short.
func (n *node) expand(e *editor) *node {
	if n.open || !n.kind.IsContainer() {
		return n
	}
	all := 0
	for c := n.was.FirstOfAll(); c.Exists(); c = c.NextOfAll() {
		all++ // with the hidden ones
	}
	e.opened += all
	if e.take(all*roomOfOpening) != nil {
		return n
	}
	n.open, n.live, n.read = true, n.was.Len(), all
	const room = 2 // for what is added
	nodes, items := e.nodes.Alloc(n.read), e.items.Alloc(n.read)
	n.items = e.lists.Alloc(n.read + room)[:n.read]
	start, end := n.was.Span()
	src, at, c := n.was.Source(), start+1, n.was.FirstOfAll()
	for i := range items {
		nodes[i].set(c)
		it := &items[i]
		it.node, n.items[i] = &nodes[i], it
		if n.kind == tree.Object {
			it.was, it.key, it.hidden = c, c.KeyAndColon(), c.Hidden()
		}
		from, to := c.Outer()
		if i == 0 {
			n.lead = src[at:from]
		} else {
			it.gap = src[at:from]
		}
		at, c = to, c.NextOfAll()
	}
	n.tail = src[at : end-1]
	if n.kind == tree.Object && n.live < n.read {
		n.linkDuplicates()
	}
	return n
}

func (n *node) set(v tree.Value) { *n = node{was: v, kind: v.Kind(), height: v.Height()} }

// linkDuplicates notes which members each member hides.
func (n *node) linkDuplicates() {
	last := make(map[string]*item, len(n.items))
	for _, it := range n.items {
		name := it.was.Key()
		it.hides, last[name] = last[name], it
	}
}

// member returns the member of an open object that has the name, or nil.
func (n *node) member(name string) *item {
	if c := n.was.Get(name); c.Exists() {
		start, _ := c.Span()
		at, found := slices.BinarySearchFunc(n.items[:n.read], start, func(it *item, start int) int {
			at, _ := it.was.Span()
			return at - start
		})
		if found && !n.items[at].gone {
			return n.items[at]
		}
	}
	if n.byName != nil {
		return n.byName[name]
	}
	for _, it := range n.items[n.read:] {
		if !it.gone && it.name == name {
			return it
		}
	}
	return nil
}

// addMember adds a member to an open object that has none of that name.
func (n *node) addMember(e *editor, name string, child *node) {
	it := e.newItem(child)
	it.name, it.key = name, append(tree.AppendString(make([]byte, 0, len(name)+len(`"":`)), name), ':')
	n.items = append(n.items, it)
	n.live++
	switch {
	case n.byName != nil:
		n.byName[name] = it
	case len(n.items)-n.read >= byNameFrom:
		n.byName = make(map[string]*item, 2*byNameFrom)
		for _, it := range n.items[n.read:] {
			if !it.gone {
				n.byName[it.name] = it
			}
		}
	}
}

// remove takes out a member, and those that it hides: they would come to light. Out of an array it must be cut then.
func (n *node) remove(it *item) {
	n.live--
	if n.byName != nil && !it.was.Exists() {
		delete(n.byName, it.name)
	}
	for ; it != nil; it = it.hides {
		it.gone = true
		n.gone++
	}
	if n.gone > byNameFrom && n.gone > len(n.items)/2 {
		for _, it := range n.items[:n.read] {
			if it.gone {
				n.read--
			}
		}
		n.items, n.gone = slices.DeleteFunc(n.items, func(it *item) bool { return it.gone }), 0
	}
}

// visible reports whether the item is neither removed nor hidden.
func (it *item) visible() bool { return !it.gone && !it.hidden }

// size is how many bytes append appends at most, and how many values are in them.
func (n *node) size() (bytes, values int) {
	if !n.open {
		return len(n.was.Raw()), n.was.Size()
	}
	bytes, values = len("[]")+len(n.lead)+len(n.tail), 1
	for _, it := range n.items {
		if !it.gone {
			b, v := it.node.size()
			bytes, values = bytes+max(len(it.gap), len(","))+len(it.key)+b, values+v
		}
	}
	return bytes, values
}

// append appends the node's bytes: all that it had, but for what was changed.
func (n *node) append(dst []byte) []byte {
	raw := n.was.Raw()
	if !n.open {
		return append(dst, raw...)
	}
	dst = append(append(dst, raw[0]), n.lead...)
	first := true
	for _, it := range n.items {
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
		dst = it.node.append(append(dst, it.key...))
	}
	return append(append(dst, n.tail...), raw[len(raw)-1])
}

// equal compares with a value, at a cost that depends on its size only.
func (n *node) equal(v tree.Value) bool {
	if !n.open {
		return n.was.Equal(v)
	}
	if v.Kind() != n.kind || v.Len() != n.live {
		return false
	}
	members, c := v.Finder(), v.First()
	for _, it := range n.items {
		switch {
		case !it.visible():
			continue
		case n.kind == tree.Array:
		case it.was.Exists():
			c = members.Like(it.was)
		default:
			c = v.Get(it.name)
		}
		if !c.Exists() || !it.node.equal(c) {
			return false
		}
		if n.kind == tree.Array {
			c = c.Next()
		}
	}
	return true
}

package rewrite

import "bytes"

// memory is where the values of one call come from. It is kept between calls.
type memory struct {
	values arena[value]
	items  arena[item]
	lists  arena[*item]
	trees  []*tree // the first inUse of them are somebody's
	inUse  int
	made   tree // scalars that were made, not read
	opened int  // elements and members of what was opened, in all
}

// tree returns an empty tree that lives until the memory is given back.
func (m *memory) tree() *tree {
	if m.inUse == len(m.trees) {
		m.trees = append(m.trees, new(tree))
	}
	m.inUse++
	return m.trees[m.inUse-1]
}

// reset gives back everything. It keeps no reference to any document, and no more memory than most calls need.
func (m *memory) reset() {
	const keepValues, keepTrees, keepMade = 1 << 11, 8, 1 << 12
	m.values.wipe(keepValues)
	m.items.wipe(keepValues)
	m.lists.wipe(keepValues)
	for _, t := range m.trees[:m.inUse] {
		t.release()
	}
	if len(m.trees) > keepTrees {
		m.trees = append([]*tree(nil), m.trees[:keepTrees]...)
	}
	m.inUse, m.opened = 0, 0
	made := m.made.src[:0]
	m.made.release()
	if cap(made) <= keepMade {
		m.made.src = made
	}
}

func (m *memory) newValue(t *tree, node int32) *value {
	v := &m.values.alloc(1)[0]
	*v = value{t: t, node: node, kind: t.nodes[node].kind, height: int(t.nodes[node].height)}
	return v
}

func (m *memory) newItem(v *value) *item {
	it := &m.items.alloc(1)[0]
	it.v, it.node = v, none
	return it
}

// scalar returns the value of a JSON text that is neither object nor array. It copies the text.
func (m *memory) scalar(k kind, text []byte) *value {
	t := &m.made
	n := node{start: int32(len(t.src)), end: int32(len(t.src) + len(text)), skip: int32(len(t.nodes) + 1), kind: k}
	if k == kindString && bytes.IndexByte(text, '\\') >= 0 {
		n.flags = flagEscaped
	}
	t.src, t.nodes = append(t.src, text...), append(t.nodes, n)
	return m.newValue(t, int32(len(t.nodes)-1))
}

package embedded

import "strings"

// fieldFilter keeps the fields of a document that patterns select. A pattern names a field by its path with dots; `*`
// stands for any characters, dots too. It selects what it matches and everything below that.
type fieldFilter struct{ includes, excludes []string }

func newFieldFilter(includes, excludes []string) *fieldFilter {
	return &fieldFilter{includes, excludes}
}

// object returns what is left of an object; ok is false if nothing of it was selected.
func (f *fieldFilter) object(n *node, prefix []byte) (node, bool) {
	out := node{kind: kindObject, key: n.key, name: n.name}
	for i := range n.kids {
		kid := &n.kids[i]
		path := append(append(prefix[:len(prefix):len(prefix)], kid.name...), '.')
		if kept, ok := f.value(kid, path); ok {
			out.kids = append(out.kids, kept)
		}
	}
	return out, len(out.kids) > 0
}

// value decides on one value; path ends with a dot.
func (f *fieldFilter) value(n *node, path []byte) (node, bool) {
	name := string(path[:len(path)-1])
	for _, p := range f.excludes {
		if selects(p, name) {
			return node{}, false
		}
	}
	selected := len(f.includes) == 0
	for _, p := range f.includes {
		selected = selected || selects(p, name)
	}
	if n.kind != kindObject && n.kind != kindArray {
		return *n, selected
	}
	if selected && len(f.excludes) == 0 {
		return *n, true
	}
	below := f
	if selected {
		below = &fieldFilter{excludes: f.excludes}
	}
	if n.kind == kindObject {
		out, any := below.object(n, path)
		return out, any || selected
	}
	out := node{kind: kindArray, key: n.key, name: n.name}
	for i := range n.kids {
		if kept, ok := below.element(&n.kids[i], path); ok {
			out.kids = append(out.kids, kept)
		}
	}
	return out, len(out.kids) > 0 || selected
}

// element decides on an element of an array, which has its array's path.
func (f *fieldFilter) element(n *node, path []byte) (node, bool) {
	switch n.kind {
	case kindObject:
		out, any := f.object(n, path)
		return out, any || len(f.includes) == 0
	case kindArray:
		return f.value(n, path)
	default:
		return *n, len(f.includes) == 0
	}
}

// selects reports whether a pattern matches a path or one of the objects that it is in.
func selects(pattern, path string) bool {
	for {
		if wildcard(pattern, path) {
			return true
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

// wildcard matches a text with a pattern in which `*` stands for any characters.
func wildcard(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			p = star + 1
			mark++
			i = mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

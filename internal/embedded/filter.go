package embedded

import "strings"

// pathFilter keeps what its patterns select of a JSON value, as filter_path and _source filters do. A pattern is a path
// whose parts are separated by dots; `*` stands for any characters inside a part, `**` for any number of parts. It
// selects what it names and all below. Objects and arrays of which nothing is left are left out themselves.
type pathFilter struct{ include, exclude []pattern }

type pattern []string

func newPathFilter(include, exclude []string) pathFilter {
	return pathFilter{patterns(include), patterns(exclude)}
}

func patterns(paths []string) []pattern {
	var out []pattern
	for _, p := range paths {
		if p != "" {
			out = append(out, strings.Split(p, "."))
		}
	}
	return out
}

// step returns what is left of the patterns below a member, and whether one of them ends there.
func step(in []pattern, name string) (left []pattern, done bool) {
	for _, p := range in {
		if p[0] == "**" {
			left = append(left, p)
			if len(p) == 1 {
				return nil, true
			}
			more, end := step([]pattern{p[1:]}, name)
			if end {
				return nil, true
			}
			left = append(left, more...)
			continue
		}
		if !wildcard(p[0], name) {
			continue
		}
		if len(p) == 1 {
			return nil, true
		}
		left = append(left, p[1:])
	}
	return left, false
}

// apply returns what the filter leaves of a value: an empty object or array if nothing.
func (f pathFilter) apply(n *node) node {
	out, _ := f.walk(n, len(f.include) == 0)
	if out.kind == kindNull && n.kind != kindNull {
		out = node{kind: n.kind}
	}
	return out
}

// walk filters a value; all says that everything below is selected unless it is excluded. ok is false if nothing is left.
func (f pathFilter) walk(n *node, all bool) (out node, ok bool) {
	switch {
	case n.kind != kindObject && n.kind != kindArray:
		return *n, all
	case all && len(f.exclude) == 0:
		return *n, true
	}
	out = node{kind: n.kind, name: n.name}
	for i := range n.kids {
		kid := &n.kids[i]
		below, selected := f, all
		if n.kind == kindObject {
			var done bool
			if below.exclude, done = step(f.exclude, kid.name); done {
				continue
			}
			if !all {
				below.include, selected = step(f.include, kid.name)
				if !selected && len(below.include) == 0 {
					continue
				}
			}
		}
		if kept, ok := below.walk(kid, selected); ok {
			out.kids = append(out.kids, kept)
		}
	}
	return out, len(out.kids) > 0 || all && len(n.kids) == 0
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

package config

import (
	"slices"
)

// pathTree holds the entries of merge.paths by their tokens, so that those that meet a path are found without a look at all others.
type pathTree struct {
	paths   MergePaths
	root    pathNode
	visited int // nodes that were looked at, for the test that their number grows with that of the paths
}

type pathNode struct {
	entry    int // among the paths; -1 if none ends here
	names    []string
	children map[string]*pathNode
	stars    bool     // there is a star below
	starry   []string // those of names with a star below them
}

func newPathTree(paths MergePaths) *pathTree {
	t := &pathTree{paths: paths, root: pathNode{entry: -1}}
	for i := range paths {
		n, tokens := &t.root, pointerTokens(paths[i].Path)
		for j, token := range tokens {
			n = n.child(token, slices.Contains(tokens[j+1:], "*"))
		}
		n.entry = i
	}
	return t
}

// child is the child of that name, made where it is missing. stars is whether a star follows.
func (n *pathNode) child(name string, stars bool) *pathNode {
	c := n.children[name]
	if c == nil {
		if n.children == nil {
			n.children = map[string]*pathNode{}
		}
		c = &pathNode{entry: -1}
		n.children[name], n.names = c, append(n.names, name)
	}
	if stars && !c.stars {
		c.stars, n.starry = true, append(n.starry, name)
	}
	return c
}

// deciding is the entry that decides about values at a path, for whatever its stars stand for; or nil. It is the most exact one: names are
// tried before stars.
func (t *pathTree) deciding(tokens []string) *MergePath {
	if i := t.decide(&t.root, tokens); i >= 0 {
		return &t.paths[i]
	}
	return nil
}

func (t *pathTree) decide(n *pathNode, tokens []string) int {
	t.visited++
	if len(tokens) == 0 {
		return n.entry
	}
	if c := n.children[tokens[0]]; c != nil {
		if i := t.decide(c, tokens[1:]); i >= 0 {
			return i
		}
	}
	if c := n.children["*"]; c != nil && tokens[0] != "*" {
		return t.decide(c, tokens[1:])
	}
	return -1
}

// crossing are the entries before the i-th that take some of the values that it takes, and others, while it takes some that they don't.
func (t *pathTree) crossing(i int) []int {
	c := crossing{t: t, before: i}
	c.from(&t.root, pointerTokens(t.paths[i].Path), false, false)
	slices.Sort(c.found)
	return c.found
}

type crossing struct {
	t      *pathTree
	before int
	found  []int
}

// from follows all that may stand where the tokens do. wider is that a star was met where the path has a name, narrower the reverse:
// paths cross where both were.
func (c *crossing) from(n *pathNode, tokens []string, wider, narrower bool) {
	c.t.visited++
	switch {
	case len(tokens) == 0:
		if wider && narrower && n.entry >= 0 && n.entry < c.before {
			c.found = append(c.found, n.entry)
		}
		return
	case !narrower && !slices.Contains(tokens, "*"):
		return // nothing can become narrower
	}
	if next := n.children[tokens[0]]; next != nil {
		c.from(next, tokens[1:], wider, narrower)
	}
	if tokens[0] != "*" {
		if next := n.children["*"]; next != nil {
			c.from(next, tokens[1:], true, narrower)
		}
		return
	}
	names := n.names
	if !wider {
		names = n.starry
	}
	for _, name := range names {
		if name != "*" {
			c.from(n.children[name], tokens[1:], wider, true)
		}
	}
}

// common is the path of what two paths that cross both take.
func common(p, q []string) []string {
	both := slices.Clone(p)
	for i := range both {
		if both[i] == "*" {
			both[i] = q[i]
		}
	}
	return both
}

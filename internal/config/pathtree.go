package config

import (
	"slices"
)

// pathTree holds the entries of merge.paths by their tokens. So the entries that take a given path are found without a look at all others.
type pathTree struct {
	paths   MergePaths
	root    pathNode
	visited int // how many nodes were looked at; a test checks that it grows no faster than the number of paths
}

type pathNode struct {
	entry    int      // the number of the entry that ends here; -1: none does
	names    []string // of the children
	children map[string]*pathNode
	stars    bool     // there is a star below this node
	starry   []string // the names of the children with stars below them
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

// child returns the child of that name, and makes it if it is missing. stars says that a star follows in the path.
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

// deciding returns the entry that decides about the values at a path, or nil. If several entries take the path, the most exact one decides:
// at each step a name comes before a star. A star of the path itself is taken only by a star.
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

// crossing returns those entries before the i-th that cross it. Two entries cross if both take some value, and each also takes a value that
// the other doesn't: /a/* and /*/b both take /a/b.
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

// from follows the tokens of a path through the tree, along all entries that may take the same values. wider says that on the way an entry
// had a star and the path a name. narrower says that an entry had a name and the path a star. An entry with both crosses the path.
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

// common is the path of the values that both of two crossing paths take.
func common(p, q []string) []string {
	both := slices.Clone(p)
	for i := range both {
		if both[i] == "*" {
			both[i] = q[i]
		}
	}
	return both
}

package merge

import (
	"bytes"
	"sort"

	"optimist/rewrite/tree"
)

// A splice puts text in the place of current's bytes [from, to).
type splice struct {
	from, to int
	text     []byte
}

var comma = []byte(",")

// A splicer edits the bytes of current. Splices must come in their order, and not overlap.
type splicer struct {
	src     []byte
	splices []splice
}

func (s *splicer) splice(from, to int, text []byte) {
	if from != to || len(text) > 0 {
		s.splices = append(s.splices, splice{from, to, text})
	}
}

// replace puts text in the place of a value of current.
func (s *splicer) replace(c tree.Value, text []byte) {
	start, end := c.Span()
	s.splice(start, end, text)
}

// size is the length of the document that render returns.
func (s *splicer) size() int {
	size := len(s.src)
	for _, p := range s.splices {
		size += len(p.text) - (p.to - p.from)
	}
	return size
}

// render returns current with the splices.
func (s *splicer) render() []byte {
	out, at := make([]byte, 0, s.size()), 0
	for _, p := range s.splices {
		out = append(append(out, s.src[at:p.from]...), p.text...)
		at = p.to
	}
	return append(out, s.src[at:]...)
}

// result returns a copy of what stands in the result for a value of current; nil if that is gone.
func (s *splicer) result(c tree.Value) []byte {
	start, end := c.Span()
	first := sort.Search(len(s.splices), func(i int) bool { return s.splices[i].to > start })
	var out []byte
	for _, p := range s.splices[first:] {
		if p.from >= end {
			break
		}
		if p.from <= start && p.to >= end { // replaced, or removed with what stands around it
			return bytes.Clone(p.text)
		}
		out = append(append(out, s.src[start:p.from]...), p.text...)
		start = p.to
	}
	return append(out, s.src[start:end]...)
}

// A container edits the children of one object or array of current. keep or remove must be called for each of its children
// in their order, insert wherever something comes in between; the commas follow by themselves, and all white space around
// what is kept stays.
type container struct {
	s     *splicer
	at    int  // everything before it is done
	seen  bool // a child was kept or removed: the separators behind it are current's own
	wrote bool // something stands in the result: what follows needs a comma
}

func (s *splicer) edit(c tree.Value) container {
	start, _ := c.Span()
	return container{s: s, at: start + 1}
}

// keep leaves a child where it is. What is spliced inside it must come right after.
func (c *container) keep(child tree.Value) {
	start, end := child.Outer()
	switch {
	case c.seen && !c.wrote:
		c.s.splice(c.at, start, nil)
	case c.wrote && !c.seen:
		c.s.splice(c.at, c.at, comma)
	}
	c.at, c.seen, c.wrote = end, true, true
}

// remove takes out a child with the separator before it, or, of the first, leaves the space before it to the next.
func (c *container) remove(child tree.Value) {
	start, end := child.Outer()
	if c.seen || c.wrote {
		start = c.at
	}
	c.s.splice(start, end, nil)
	c.at, c.seen = end, true
}

// keepOrRemove is one of both. It returns keep.
func (c *container) keepOrRemove(child tree.Value, keep bool) bool {
	if keep {
		c.keep(child)
	} else {
		c.remove(child)
	}
	return keep
}

// insert puts text, which is a member or an element, after what was kept or inserted last; no text is nothing.
func (c *container) insert(text []byte) {
	if len(text) == 0 {
		return
	}
	if c.wrote {
		c.s.splice(c.at, c.at, comma)
	}
	c.s.splice(c.at, c.at, text)
	c.wrote = true
}

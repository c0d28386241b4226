package rewrite

// A splice puts text in the place of current's bytes [from, to).
type splice struct {
	from, to int32
	text     []byte
}

var comma = []byte(",")

func (w *workspace) splice(from, to int32, text []byte) {
	if from != to || len(text) > 0 {
		w.splices = append(w.splices, splice{from, to, text})
	}
}

// splicedSize is the length of the document that render returns.
func (w *workspace) splicedSize() int {
	size := len(w.cur.src)
	for _, s := range w.splices {
		size += len(s.text) - int(s.to-s.from)
	}
	return size
}

// render returns current with the splices, which are in the order of its bytes and don't overlap.
func (w *workspace) render() []byte {
	out, at := make([]byte, 0, w.splicedSize()), int32(0)
	for _, s := range w.splices {
		out = append(append(out, w.cur.src[at:s.from]...), s.text...)
		at = s.to
	}
	return append(out, w.cur.src[at:]...)
}

// A container edits the children of one object or array of current. keep or remove must be called for each of its children
// in their order, insert wherever something comes in between; the commas follow by themselves, and all white space around
// what is kept stays.
type container struct {
	w     *workspace
	at    int32 // everything before it is done
	seen  bool  // a child was kept or removed: the separators behind it are current's own
	wrote bool  // something stands in the result: what follows needs a comma
}

func (w *workspace) edit(i int32) container {
	return container{w: w, at: w.cur.nodes[i].start + 1}
}

func (c *container) span(child int32) (start, end int32) {
	n := &c.w.cur.nodes[child]
	if n.keyEnd != 0 {
		return n.key, n.end
	}
	return n.start, n.end
}

// keep leaves a child where it is. What is spliced inside it must come right after.
func (c *container) keep(child int32) {
	start, end := c.span(child)
	switch {
	case c.seen && !c.wrote:
		c.w.splice(c.at, start, nil)
	case c.wrote && !c.seen:
		c.w.splice(c.at, c.at, comma)
	}
	c.at, c.seen, c.wrote = end, true, true
}

// remove takes out a child with the separator before it, or, of the first, leaves the space before it to the next.
func (c *container) remove(child int32) {
	start, end := c.span(child)
	if c.seen || c.wrote {
		start = c.at
	}
	c.w.splice(start, end, nil)
	c.at, c.seen = end, true
}

// insert puts text, which is a member or an element, after what was kept or inserted last.
func (c *container) insert(text []byte) {
	if c.wrote {
		c.w.splice(c.at, c.at, comma)
	}
	c.w.splice(c.at, c.at, text)
	c.wrote = true
}

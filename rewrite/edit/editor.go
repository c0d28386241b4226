package edit

import (
	"fmt"
	"slices"

	"optimist/rewrite/arena"
	"optimist/rewrite/tree"
)

// maxWork bounds what the edits of one call may cost beyond the size of what they are given: elements that are pushed aside,
// values that are compared again and again. Without it a patch of a million insertions at the front of an array of a
// million would keep a processor busy for minutes. A unit is about a nanosecond.
const maxWork = 1 << 28

// What is more than one unit.
const (
	workOfByte    = 4   // that is read again, or compared
	workOfElement = 256 // that is looked up among others
	workOfOpening = 128 // an element or a member, which takes some hundred bytes until the call ends
)

// roomOfOpening is how many bytes an element or a member takes until the call ends.
const roomOfOpening = 400

// errWork reports edits that are over maxWork. It is a tree.ErrTooLarge, and doesn't say that of the document, which may be small.
var errWork error = workError{}

type workError struct{}

func (workError) Error() string {
	return "the edits are too much work for one request: they move, compare or read again too many elements"
}

func (workError) Unwrap() error { return tree.ErrTooLarge }

// An editor is one document that is edited, with the memory for that.
type editor struct {
	limits tree.Limits
	doc    tree.Tree
	root   item
	size   int     // of the document, with all that was ever added
	most   int     // of size
	work   int     // see maxWork
	opened int     // elements and members of what was opened, in all
	short  error   // there was no memory for something, which is therefore missing: what came of the edits since is void
	above  []*node // the containers on the way to what was looked up last

	nodes arena.Arena[node]
	items arena.Arena[item]
	lists arena.Arena[*item]
	texts arena.Arena[byte]
	trees []*tree.Tree // the first inUse of them are somebody's
	inUse int
}

// free gives back everything. It keeps no reference to any document, and no more memory than most calls need.
func (e *editor) free() {
	const keepNodes, keepTrees = 1 << 11, 8
	e.doc.Release()
	for _, t := range e.trees[:e.inUse] {
		t.Release()
	}
	if len(e.trees) > keepTrees {
		e.trees = slices.Clone(e.trees[:keepTrees])
	}
	e.nodes.Reset(keepNodes)
	e.items.Reset(keepNodes)
	e.lists.Reset(keepNodes)
	e.texts.Reset(keepNodes)
	clear(e.above[:cap(e.above)])
	e.root, e.size, e.work, e.opened, e.inUse, e.above = item{}, 0, 0, 0, 0, e.above[:0]
	e.limits, e.short = tree.Limits{}, nil
}

// take takes memory from what calls share. Without it the edits can't go on: see short.
func (e *editor) take(n int) error {
	if e.short == nil && e.limits.Room != nil {
		e.short = e.limits.Room.Take(int64(n))
	}
	return e.short
}

// newTree returns a tree that lives until the editor is given back.
func (e *editor) newTree() *tree.Tree {
	if e.inUse == len(e.trees) {
		e.trees = append(e.trees, new(tree.Tree))
	}
	e.inUse++
	return e.trees[e.inUse-1]
}

func (e *editor) newNode(v tree.Value) *node {
	n := &e.nodes.Alloc(1)[0]
	n.set(v)
	return n
}

func (e *editor) newItem(n *node) *item {
	it := &e.items.Alloc(1)[0]
	it.node = n
	return it
}

// read takes the document in.
func (e *editor) read(src []byte, l tree.Limits) error {
	e.limits = l.WithDefaults()
	if err := e.doc.Parse(src, l); err != nil {
		return err
	}
	e.root = item{node: e.newNode(e.doc.Root())}
	e.size = len(src)
	e.most = min(e.limits.Bytes, len(src)+e.limits.Growth)
	return nil
}

// render returns the document as it is now. White space around it belongs to it.
func (e *editor) render() ([]byte, error) {
	if err := e.take(e.size); err != nil {
		return nil, err
	}
	start, end := e.doc.Root().Span()
	src := e.doc.Bytes()
	out := append(make([]byte, 0, e.size), src[:start]...)
	return append(e.root.node.append(out), src[end:]...), nil
}

// charge notes that n bytes come to the document.
func (e *editor) charge(n int) error {
	err := e.fits(n)
	e.size += n
	return err
}

// fits reports whether n bytes may come to the document.
func (e *editor) fits(n int) error {
	if e.size+n > e.most {
		return fmt.Errorf("%w: edits may make it %d bytes long, with what they take away again", tree.ErrTooLarge, e.most)
	}
	return nil
}

// spend notes work, see maxWork.
func (e *editor) spend(n int) error {
	e.work += n
	return e.bounded()
}

// bounded reports whether there may be more work. What is opened, copied and opened again takes memory each time, though the
// document stays as small.
func (e *editor) bounded() error {
	if e.short != nil {
		return e.short
	}
	if e.work+workOfOpening*e.opened > maxWork {
		return errWork
	}
	return nil
}

// parse reads a text that lives as long as the editor. values is how many it has, if that is known.
func (e *editor) parse(src []byte, values int) (tree.Value, error) {
	t := e.newTree()
	if err := e.take(values * roomOfOpening / 4); err != nil {
		return tree.Value{}, err
	}
	t.Grow(values)
	if err := t.Parse(src, e.limits); err != nil {
		return tree.Value{}, err
	}
	return t.Root(), e.spend(workOfOpening * t.Len())
}

// reread returns what was edited as a value, as if it had just been read. grows says that it is for a copy: one that would be too
// large isn't made.
func (e *editor) reread(n *node, grows bool) (tree.Value, error) {
	if !n.open {
		return n.was, nil
	}
	size, values := n.size()
	if values > e.limits.Values {
		return tree.Value{}, tree.ErrTooLarge
	}
	if grows {
		if err := e.fits(size); err != nil {
			return tree.Value{}, err
		}
	}
	if err := e.spend(workOfByte * size); err != nil {
		return tree.Value{}, err
	}
	if err := e.take(size); err != nil {
		return tree.Value{}, err
	}
	return e.parse(n.append(make([]byte, 0, size)), values)
}

// made returns the value of a JSON text that was made here, and may be overwritten.
func (e *editor) made(text []byte) tree.Value {
	t, own := e.newTree(), e.texts.Alloc(len(text))
	copy(own, text)
	_ = t.Parse(own, e.limits) // it is a number or a string
	return t.Root()
}

// copyOf returns a node of its own, which comes to the document, for a value.
func (e *editor) copyOf(v tree.Value) (*node, error) {
	return e.newNode(v), e.charge(len(v.Raw()))
}

// insert makes n element at of an open array.
func (e *editor) insert(array *node, at int, n *node) error {
	array.items = slices.Insert(array.items, at, e.newItem(n))
	array.live++
	return e.spend(len(array.items) - at)
}

// removeElement takes element at out of an open array.
func (e *editor) removeElement(array *node, at int) error {
	array.items = slices.Delete(array.items, at, at+1)
	array.live--
	return e.spend(len(array.items) - at)
}

// deepen notes that n came into the containers above.
func (e *editor) deepen(n *node) error {
	height := n.height
	if len(e.above)+height > e.limits.Depth {
		return tree.ErrTooDeep
	}
	for i := len(e.above) - 1; i >= 0; i-- {
		height++
		e.above[i].height = max(e.above[i].height, height)
	}
	return nil
}

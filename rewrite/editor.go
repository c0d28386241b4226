package rewrite

import (
	"slices"
	"sync"
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

// An editor is one document that is edited.
type editor struct {
	memory
	limits Limits
	doc    tree
	root   item
	size   int      // of the document, with all that was ever added
	work   int      // see maxWork
	above  []*value // the containers on the way to what was looked up last
}

var editors = sync.Pool{New: func() any { return new(editor) }}

func newEditor(l Limits) *editor {
	e, _ := editors.Get().(*editor)
	e.limits = l.withDefaults()
	return e
}

// free gives the editor back. It keeps no reference to the document.
func (e *editor) free() {
	e.memory.reset()
	e.doc.release()
	clear(e.above[:cap(e.above)])
	e.root, e.size, e.work, e.above = item{}, 0, 0, e.above[:0]
	editors.Put(e)
}

// read takes the document in.
func (e *editor) read(src []byte) error {
	if err := e.doc.parse(src, e.limits); err != nil {
		return err
	}
	e.root = item{v: e.newValue(&e.doc, 0), node: none}
	e.size = len(src)
	return nil
}

// render returns the document as it is now. White space around it belongs to it.
func (e *editor) render() []byte {
	n := &e.doc.nodes[0]
	out := append(make([]byte, 0, e.size), e.doc.src[:n.start]...)
	return append(e.root.v.append(out), e.doc.src[n.end:]...)
}

// charge notes that n bytes come to the document.
func (e *editor) charge(n int) error {
	if e.size += n; e.size > e.limits.Bytes {
		return ErrTooLarge
	}
	return nil
}

// spend notes work, see maxWork.
func (e *editor) spend(n int) error {
	e.work += n
	return e.bounded()
}

// bounded reports whether there may be more work. What is opened, copied and opened again takes memory each time, though the document
// stays as small.
func (e *editor) bounded() error {
	if e.work+workOfOpening*e.opened > maxWork {
		return ErrTooLarge
	}
	return nil
}

// add reads a value that comes to the document.
func (e *editor) add(src []byte) (*value, error) {
	if err := e.charge(len(src)); err != nil {
		return nil, err
	}
	t := e.tree()
	if err := t.parse(src, e.limits); err != nil {
		return nil, err
	}
	return e.newValue(t, 0), e.spend(workOfOpening * len(t.nodes))
}

// clone returns a copy of v that comes to the document. It shares what can't change.
func (e *editor) clone(v *value) (*value, error) {
	if v.open {
		return e.add(v.append(nil))
	}
	return e.newValue(v.t, v.node), e.charge(len(v.t.raw(v.node)))
}

// insert makes v element at of an open array.
func (e *editor) insert(array *value, at int, v *value) error {
	array.items = slices.Insert(array.items, at, e.newItem(v))
	array.live++
	return e.spend(len(array.items) - at)
}

// removeElement takes element at out of an open array.
func (e *editor) removeElement(array *value, at int) error {
	array.items = slices.Delete(array.items, at, at+1)
	array.live--
	return e.spend(len(array.items) - at)
}

// deepen notes that v came into the containers above.
func (e *editor) deepen(v *value) error {
	height := v.height
	if len(e.above)+height > e.limits.Depth {
		return ErrTooDeep
	}
	for i := len(e.above) - 1; i >= 0; i-- {
		height++
		e.above[i].height = max(e.above[i].height, height)
	}
	return nil
}

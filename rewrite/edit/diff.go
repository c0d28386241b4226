package edit

import (
	"bytes"
	"math"
	"sync"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// Diff returns the patch that turns a into b: a.Apply gives a document equal to b. A nil a is the absent document. Before each
// remove and replace stands a test of the old value, so that the patch fails where it would undo somebody else's change. Array
// edits are the canonical script of package diff, by indices that hold for a only: such a patch says what was
// changed, and must never be applied to another revision in place of a merge. It keeps no reference to a and b.
//
// Errors: *tree.SyntaxError, tree.ErrTooDeep, tree.ErrTooLarge (also for a patch larger than a document may be).
func Diff(a, b []byte, l tree.Limits) (Patch, error) {
	d, _ := differs.Get().(*differ)
	defer d.end()
	if a == nil {
		a = []byte("{}")
	}
	if err := d.a.Parse(a, l); err != nil {
		return nil, err
	}
	if err := d.b.Parse(b, l); err != nil {
		return nil, err
	}
	d.Begin(l)
	d.most, d.out = l.WithDefaults().Bytes, Patch{}
	d.Value(d.a.Root(), d.b.Root())
	if d.size > d.most {
		return nil, tree.ErrTooLarge
	}
	return d.out, nil
}

// A differ is the visitor of a walk that renders what it finds.
type differ struct {
	diff.Walk
	a, b       tree.Tree
	out        Patch
	size, most int // bytes of what is in out
}

var differs = sync.Pool{New: func() any {
	d := new(differ)
	d.Visitor = d
	return d
}}

// end gives the differ's memory back.
func (d *differ) end() {
	d.Release()
	d.a.Release()
	d.b.Release()
	d.out, d.size, d.Trail = nil, 0, d.Trail[:0]
	differs.Put(d)
}

// Enough implements diff.Visitor.
func (d *differ) Enough() bool { return d.size > d.most }

// Edit implements diff.Visitor.
func (d *differ) Edit(old, new tree.Value) {
	path := d.Trail.Pointer(math.MaxInt)
	if old.Exists() {
		d.emit(Operation{Op: "test", Path: path, Value: old.Raw()})
	}
	switch {
	case !new.Exists():
		d.emit(Operation{Op: "remove", Path: path})
	case !old.Exists():
		d.emit(Operation{Op: "add", Path: path, Value: new.Raw()})
	default:
		d.emit(Operation{Op: "replace", Path: path, Value: new.Raw()})
	}
}

func (d *differ) emit(op Operation) {
	d.size += len(op.Path) + len(op.Value)
	if !d.Enough() {
		op.Value = bytes.Clone(op.Value)
		d.out = append(d.out, op)
	}
}

// Unaligned implements diff.Visitor.
func (d *differ) Unaligned(old, new tree.Value, _ int) { d.Edit(old, new) }

// Element implements diff.Visitor. It renders an element in the place of another as its edits, unless they are more than the new one
// has values.
func (d *differ) Element(old, new tree.Value, _ bool) {
	ops, size, trail := len(d.out), d.size, d.Trail
	d.Value(old, new)
	d.Trail = trail
	if n := len(d.out) - ops; n > 1 && n > new.Leaves() {
		clear(d.out[ops:])
		d.out, d.size = d.out[:ops], size
		d.Edit(old, new)
	}
}

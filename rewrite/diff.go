package rewrite

import (
	"bytes"
	"strconv"
)

// A DiffOption changes what Diff renders.
type DiffOption uint8

// WithTests puts a `test` of the old value before each remove and replace, so that the patch fails where it would undo
// somebody else's change.
const WithTests DiffOption = 1

// Diff returns the patch that turns a into b: a.Apply gives a document equal to b. A nil a is the absent document. Array
// edits are the canonical script of the package comment, by indices that hold for a only: such a patch says what was
// changed, and must never be applied to another revision in place of a merge. It keeps no reference to a and b.
//
// Errors: *SyntaxError, ErrTooDeep, ErrTooLarge (also for a patch larger than a document may be).
func Diff(a, b []byte, opts ...DiffOption) (Patch, error) { return Limits{}.Diff(a, b, opts...) }

// Diff is the function of that name within limits.
func (l Limits) Diff(a, b []byte, opts ...DiffOption) (Patch, error) {
	w := newWorkspace(l)
	defer w.free()
	if a == nil {
		a = absent
	}
	if err := w.base.parse(a, w.limits); err != nil {
		return nil, err
	}
	if err := w.sent.parse(b, w.limits); err != nil {
		return nil, err
	}
	d := differ{workspace: w, out: Patch{}}
	for _, o := range opts {
		d.tests = d.tests || o == WithTests
	}
	d.value(0, 0)
	if d.size > w.limits.Bytes {
		return nil, ErrTooLarge
	}
	return d.out, nil
}

type differ struct {
	*workspace
	tests bool
	path  []byte // where the values that are compared are
	out   Patch
	size  int // bytes of what is in out
}

func (d *differ) emit(op string, value []byte) {
	if d.size += len(d.path) + len(value); d.size > d.limits.Bytes {
		return // Diff fails
	}
	d.out = append(d.out, Operation{Op: op, Path: string(d.path), Value: bytes.Clone(value)})
}

func (d *differ) remove(b int32) {
	if d.tests {
		d.emit("test", d.base.raw(b))
	}
	d.emit("remove", nil)
}

func (d *differ) replace(b, s int32) {
	if d.tests {
		d.emit("test", d.base.raw(b))
	}
	d.emit("replace", d.sent.raw(s))
}

// value renders what turns b into s, at the path.
func (d *differ) value(b, s int32) {
	switch k := d.base.nodes[b].kind; {
	case k == kindObject && d.sent.is(s, k):
		d.object(b, s)
	case k == kindArray && d.sent.is(s, k):
		d.array(b, s)
	case !equal(&d.base, b, &d.sent, s):
		d.replace(b, s)
	}
}

func (d *differ) object(b, s int32) {
	d.base.prepare(b)
	d.sent.prepare(s)
	at, hint := len(d.path), d.sent.firstChild(s)
	for m := d.base.firstChild(b); m != none; m = d.base.nextChild(b, m) {
		if d.base.shadowed(m) {
			continue
		}
		key, esc := d.base.keyText(m)
		c := d.sent.find(s, key, esc, hint)
		d.path = appendPlace(d.path[:at], place{&d.base, m, none})
		if c == none {
			d.remove(m)
			continue
		}
		hint = d.sent.after(s, c)
		d.value(m, c)
	}
	hint = none
	for c := d.sent.firstChild(s); c != none; c = d.sent.nextChild(s, c) {
		if d.sent.shadowed(c) {
			continue
		}
		key, esc := d.sent.keyText(c)
		if m := d.base.find(b, key, esc, hint); m != none {
			hint = d.base.after(b, m)
			continue
		}
		d.path = appendPlace(d.path[:at], place{&d.sent, c, none})
		d.emit("add", d.sent.raw(c))
	}
	d.path = d.path[:at]
}

func (d *differ) array(b, s int32) {
	mark := d.mark()
	defer d.cut(mark)
	al, fits := d.align(&d.base, b, &d.sent, s)
	if !fits {
		d.replace(b, s)
		return
	}
	at, shift := len(d.path), int32(0)
	for _, h := range d.script(&al) {
		first := h.i + shift
		for x := range max(h.r, h.k) {
			switch {
			case x >= h.k: // the rest moves up to where this one was
				d.index(at, first+h.k)
				d.remove(al.a[h.i+x])
			case x >= h.r:
				d.index(at, first+x)
				d.emit("add", d.sent.raw(al.b[h.j+x]))
			default:
				d.index(at, first+x)
				d.element(al.a[h.i+x], al.b[h.j+x])
			}
		}
		shift += h.k - h.r
	}
	d.path = d.path[:at]
}

// index ends the path with the index of an element, in place of what stood behind its first at bytes.
func (d *differ) index(at int, i int32) {
	d.path = strconv.AppendInt(append(d.path[:at], '/'), int64(i), 10)
}

// element renders an element in the place of another: as its edits, unless they are more than the new one has values.
func (d *differ) element(b, s int32) {
	ops, size := len(d.out), d.size
	d.value(b, s)
	if len(d.out)-ops > 1 && len(d.out)-ops > d.sent.leaves(s) {
		clear(d.out[ops:])
		d.out, d.size = d.out[:ops], size
		d.replace(b, s)
	}
}

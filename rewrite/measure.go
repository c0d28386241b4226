package rewrite

import (
	"bytes"
	"cmp"
	"math"
)

// A Distance says how much a client changed, if it changed a certain base. It is a value; the zero Distance is no change.
type Distance struct {
	// Edits counts members set, added or removed, and elements inserted or removed. A member that comes or goes with an
	// object or array counts all values in it that aren't containers, an empty one 1. Elements count one by one: 1 for
	// each that is inserted or removed, 2 for one in the place of another, or less where both are containers of one kind
	// that differ by fewer edits.
	Edits int
	delta decimal
	vast  bool // delta is more than maxDigits can express
}

// Compare orders distances: the fewer edits, the closer; of as many, the smaller the sum of |delta| over all numbers that
// are another number than in the base. Decimals, exactly.
func (d Distance) Compare(o Distance) int {
	if c := cmp.Compare(d.Edits, o.Edits); c != 0 {
		return c
	}
	switch {
	case d.vast && o.vast:
		return 0
	case d.vast:
		return 1
	case o.vast:
		return -1
	}
	return d.delta.compare(o.delta)
}

// Measure returns the distance from base to sent. A nil base is the absent document. Equal bytes are not looked into.
// Errors are those of Merger.Merge for a document.
func Measure(base, sent []byte) (Distance, error) {
	d, _, err := MeasureBelow(base, sent, math.MaxInt)
	return d, err
}

// MeasureBelow is Measure for a caller who has no use for a distance of more than limit edits: it stops at them, and below
// is false.
func MeasureBelow(base, sent []byte, limit int) (d Distance, below bool, err error) {
	if base != nil && bytes.Equal(base, sent) {
		return Distance{}, limit >= 0, nil
	}
	m, err := NewMeasurer(sent, Limits{})
	if err != nil {
		return Distance{}, false, err
	}
	defer m.Close()
	return m.Below(base, limit)
}

// A Measurer measures several bases against what one client sent. It must be closed, and belongs to one goroutine.
type Measurer struct {
	w     *workspace
	limit int
	d     Distance
}

// NewMeasurer reads sent, which must not change until Close.
func NewMeasurer(sent []byte, l Limits) (*Measurer, error) {
	w := newWorkspace(l)
	if err := w.sent.parseObject(sent, w.limits); err != nil {
		w.free()
		return nil, err
	}
	return &Measurer{w: w}, nil
}

// Close gives the Measurer's memory back. It must not be used after.
func (m *Measurer) Close() {
	m.w.free()
	m.w = nil
}

// Below is MeasureBelow for one base.
func (m *Measurer) Below(base []byte, limit int) (d Distance, below bool, err error) {
	if err := m.w.base.parseObject(base, m.w.limits); err != nil {
		return Distance{}, false, err
	}
	mark := m.w.mark()
	defer m.w.cut(mark)
	m.d, m.limit, m.w.cellsLeft = Distance{}, limit, cellsPerCall*m.w.limits.Cells
	m.value(0, 0)
	return m.d, m.d.Edits <= limit, nil
}

// value adds the distance of two values.
func (m *Measurer) value(b, s int32) {
	base, sent := &m.w.base, &m.w.sent
	k := base.nodes[b].kind
	switch {
	case string(base.raw(b)) == string(sent.raw(s)):
	case k != sent.nodes[s].kind:
		if k < kindArray && sent.nodes[s].kind < kindArray {
			m.d.Edits++
		} else {
			m.d.Edits += base.leaves(b) + sent.leaves(s)
		}
	case k == kindObject:
		m.object(b, s)
	case k == kindArray:
		m.array(b, s)
	case equal(base, b, sent, s):
	default:
		m.d.Edits++
		if k == kindNumber {
			m.number(b, s)
		}
	}
}

// number adds |s - b| to the delta.
func (m *Measurer) number(b, s int32) {
	if m.d.vast {
		return
	}
	x, y := readNumber(m.w.base.raw(b)), readNumber(m.w.sent.raw(s))
	from, ok := decimalOf(&x)
	to, ok2 := decimalOf(&y)
	if !ok || !ok2 {
		m.d.vast = true
		return
	}
	m.d.delta = m.d.delta.add(to.add(from.neg()).abs())
}

func (m *Measurer) object(b, s int32) {
	base, sent := &m.w.base, &m.w.sent
	base.prepare(b)
	sent.prepare(s)
	matched, hint := int32(0), base.firstChild(b)
	for c := sent.firstChild(s); c != none && m.d.Edits <= m.limit; c = sent.nextChild(s, c) {
		if sent.shadowed(c) {
			continue
		}
		key, esc := sent.keyText(c)
		d := base.find(b, key, esc, hint)
		if d == none {
			m.d.Edits += sent.leaves(c)
			continue
		}
		matched, hint = matched+1, base.after(b, d)
		m.value(d, c)
	}
	if matched == base.nodes[b].count || m.d.Edits > m.limit {
		return
	}
	hint = none
	for c := base.firstChild(b); c != none; c = base.nextChild(b, c) {
		if base.shadowed(c) {
			continue
		}
		key, esc := base.keyText(c)
		d := sent.find(s, key, esc, hint)
		if d == none {
			m.d.Edits += base.leaves(c)
			continue
		}
		hint = sent.after(s, d)
	}
}

func (m *Measurer) array(b, s int32) {
	base, sent := &m.w.base, &m.w.sent
	mark := m.w.mark()
	defer m.w.cut(mark)
	al, fits := m.w.align(base, b, sent, s)
	if !fits {
		m.d.Edits += alone(al.to) + alone(al.from)
		return
	}
	for _, h := range m.w.script(&al) {
		if m.d.Edits > m.limit {
			return
		}
		if !h.one() {
			m.d.Edits += int(h.r + h.k)
			continue
		}
		m.element(al.a[h.i], al.b[h.j])
	}
}

// element adds the distance of an element that stands in the place of another.
func (m *Measurer) element(b, s int32) {
	base, sent := &m.w.base, &m.w.sent
	switch k := base.nodes[b].kind; {
	case k == kindNumber && sent.is(s, kindNumber):
		m.number(b, s)
		m.d.Edits += 2
	case k >= kindArray && sent.is(s, k):
		before, limit := m.d, m.limit
		m.limit = min(limit, before.Edits+2)
		m.value(b, s)
		m.limit = limit
		if m.d.Edits > before.Edits+2 {
			m.d = before
			m.d.Edits += 2
		}
	default:
		m.d.Edits += 2
	}
}

// leaves counts the values in i that aren't containers, or are empty ones.
func (t *tree) leaves(i int32) int {
	k := t.nodes[i].kind
	if k < kindArray || t.firstChild(i) == none {
		return 1
	}
	if k == kindObject {
		t.prepare(i)
	}
	n := 0
	for c := t.firstChild(i); c != none; c = t.nextChild(i, c) {
		if k == kindArray || !t.shadowed(c) {
			n += t.leaves(c)
		}
	}
	return n
}

package diff

import (
	"cmp"
	"sync"

	"optimist/rewrite/tree"
)

// A Distance says how much a client changed, if it changed a certain base. It is a value; the zero Distance is no change.
type Distance struct {
	// Edits counts members set, added or removed, and elements inserted or removed. A member that comes or goes with an
	// object or array counts all values in it that aren't containers, an empty one 1. Elements count one by one: 1 for
	// each that is inserted or removed, 2 for one in the place of another, or less where both are containers of one kind
	// that differ by fewer edits.
	Edits int
	delta tree.Decimal
	vast  bool // delta is more than tree.MaxDigits can express
}

// Compare orders distances: the fewer edits, the closer; of as many, the smaller the sum of |delta| over all numbers that
// are another number than in the base. Decimals, exactly.
func (d Distance) Compare(o Distance) int {
	switch {
	case d.Edits != o.Edits:
		return cmp.Compare(d.Edits, o.Edits)
	case d.vast && o.vast:
		return 0
	case d.vast:
		return 1
	case o.vast:
		return -1
	}
	return d.delta.Compare(o.delta)
}

// A Measurer measures several bases against what one client sent. It must be closed, and belongs to one goroutine.
type Measurer struct {
	base, sent tree.Tree
	limits     tree.Limits
	counter    counter
}

var measurers = sync.Pool{New: func() any {
	m := new(Measurer)
	m.counter.Visitor = &m.counter
	return m
}}

// NewMeasurer reads sent, which must not change until Close.
func NewMeasurer(sent []byte, l tree.Limits) (*Measurer, error) {
	m, _ := measurers.Get().(*Measurer)
	m.limits = l
	if err := m.sent.ParseObject(sent, l); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// Close gives the Measurer's memory back. It must not be used after.
func (m *Measurer) Close() {
	m.base.Release()
	m.sent.Release()
	m.counter.Release()
	measurers.Put(m)
}

// Below returns the distance from a base, for a caller who has no use for one of more than limit edits: it stops at them, and below
// is false. A nil base is the absent document. Errors are those of tree.Tree.ParseObject.
func (m *Measurer) Below(base []byte, limit int) (d Distance, below bool, err error) {
	if err := m.base.ParseObject(base, m.limits); err != nil {
		return Distance{}, false, err
	}
	c := &m.counter
	c.Begin(m.limits)
	c.Distance, c.limit, c.Trail = Distance{}, limit, c.Trail[:0]
	c.Value(m.base.Root(), m.sent.Root())
	return c.Distance, !c.Enough(), nil
}

// A counter is the Visitor of a measurement.
type counter struct {
	Walk
	Distance
	limit int
}

// Enough implements Visitor.
func (c *counter) Enough() bool { return c.Edits > c.limit }

// Unaligned implements Visitor.
func (c *counter) Unaligned(_, _ tree.Value, apart int) { c.Edits += apart }

// Edit implements Visitor.
func (c *counter) Edit(old, new tree.Value) {
	alone := old
	if !old.Exists() {
		alone = new
	}
	switch {
	case old.Exists() && new.Exists() && !old.Kind().IsContainer() && !new.Kind().IsContainer():
		c.Edits++
		c.moved(old, new)
	case old.Exists() && new.Exists(), alone.IsMember():
		c.Edits += old.Leaves() + new.Leaves()
	default:
		c.Edits++
	}
}

// Element implements Visitor.
func (c *counter) Element(old, new tree.Value, alone bool) {
	before, limit := c.Distance, c.limit
	c.Edits += 2
	switch k := old.Kind(); {
	case !alone:
	case k.IsContainer() && new.Kind() == k:
		replaced := c.Distance
		c.Distance, c.limit = before, min(limit, before.Edits+2)
		c.Value(old, new)
		if c.Edits > replaced.Edits {
			c.Distance = replaced
		}
		c.limit = limit
	default:
		c.moved(old, new)
	}
}

// moved adds |new - old| to the delta, if both are numbers.
func (c *counter) moved(old, new tree.Value) {
	if old.Kind() != tree.Number || new.Kind() != tree.Number || c.vast {
		return
	}
	from, ok1 := old.Decimal()
	to, ok2 := new.Decimal()
	if c.vast = !ok1 || !ok2; !c.vast {
		c.delta = c.delta.Add(to.Add(from.Neg()).Abs())
	}
}

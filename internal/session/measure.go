package session

import (
	"cmp"
	"slices"

	"optimist/internal/doc"
)

// Distance is how far a document that was sent is from one that a client had seen.
type Distance interface {
	// Edits is the number of edits between the two; elements of arrays count one by one.
	Edits() int
	// Compare orders by edits and then by the total change of numbers: negative where the receiver is the smaller one.
	Compare(o Distance) int
}

// Measure returns the distance from base to sent. base is nil for a document that was absent. It is called without any
// lock held and only where there is more than one candidate. A candidate that can't be measured is taken only after
// those that can.
type Measure func(base, sent []byte) (Distance, error)

// MeasureWith makes a Measure of a function whose result is compared with its own kind only.
func MeasureWith[D interface{ Compare(D) int }](f func(base, sent []byte) (D, error), edits func(D) int) Measure {
	return func(base, sent []byte) (Distance, error) {
		d, err := f(base, sent)
		if err != nil {
			return nil, err
		}
		return measured[D]{d: d, edits: edits(d)}, nil
	}
}

type measured[D interface{ Compare(D) int }] struct {
	d     D
	edits int
}

func (m measured[D]) Edits() int { return m.edits }

func (m measured[D]) Compare(o Distance) int {
	if p, ok := o.(measured[D]); ok {
		return m.d.Compare(p.d)
	}
	return cmp.Compare(m.edits, o.Edits())
}

// candidate is a base that could be taken, as it was when the lock was held. Its bytes are immutable.
type candidate struct {
	numbers  doc.Numbers
	view     bool
	absent   bool
	saw      []byte
	distance Distance
	class    class
}

// class orders candidates before their distance does.
type class uint8

const (
	withEdits class = iota
	unmeasured
	// withoutEdits comes last: somebody who read and wrote back another revision changed something, and a save that
	// changes nothing does no harm on any base.
	withoutEdits
)

// rank orders the candidates, which come oldest first, by how likely sent was made from them.
func rank(cs []candidate, sent []byte, m Measure) {
	for i := range cs {
		cs[i].measure(sent, m)
	}
	slices.SortStableFunc(cs, func(a, b candidate) int {
		if a.class != b.class || a.distance == nil || b.distance == nil {
			return cmp.Compare(a.class, b.class)
		}
		return a.distance.Compare(b.distance)
	})
}

func (c *candidate) measure(sent []byte, m Measure) {
	c.class = unmeasured
	// A delete sends nothing that could be measured: the oldest is the one whose guard overlooks the least.
	if m == nil || sent == nil || (c.saw == nil && !c.absent) {
		return
	}
	d, err := m(c.saw, sent)
	if err != nil {
		return
	}
	c.distance = d
	c.class = withEdits
	if d.Edits() == 0 {
		c.class = withoutEdits
	}
}

package rank

import (
	"slices"
	"sync"
)

// weighing is one call of weigh, and its memory.
type weighing struct {
	mine     *Digest
	part     bool
	verdicts []verdict
	changes  []change

	// For each of mine's members or parts.
	members []oldest // the oldest candidates that have the member
	parts   []int32  // the oldest candidate that has the part; none: there is none
	moved   []bool   // whether some candidate has another value of the member
	weights []uint8  // the member's weight; lower than in the digest if its value is a word of a vocabulary

	// For one number, and each candidate.
	steps   []float64 // how far the client would have moved it
	numbers []*number // its value in the candidate; nil: there is none
	moves   []move    // how far it was moved from each revision to the next, without the moves by 0

	puttings []spotOf   // where the client would have put something
	since    []change   // what it would have taken out of the newest candidate only
	removed  table      // which candidates have the content that mine lacks
	words    vocabulary // of one member
	touches  []touched  // of one candidate
	fixed    []fixed
	slots    []slot // of all fixed lists

	// For one candidate.
	filled  []uint64 // places of lists into which the client would have put something
	own     []uint64 // see findMixes
	sliding []uint64 // places of lists with entries dropped at one end, and others put in at the other
	dropped int      // how many changes are such dropped entries, or content of them

	holder     uint64 // the last one that weightWithout was asked for
	holderGone bool   // whether mine lacks that

	at       int32 // the candidate that is being compared
	view     bool  // that candidate is a view: others may have changed its content since
	limit    int   // with more changes than this, a candidate is too far
	few      int   // the fewest changes that any candidate has so far
	compared int   // how many values were compared so far
	hurried  bool  // they are many
	newest   int32 // the newest candidate that is no view; only such a one shows what others have taken out
}

var weighings = sync.Pool{New: func() any { return new(weighing) }}

// release puts the weighing back for reuse.
func (w *weighing) release() {
	w.mine = nil
	clear(w.numbers[:cap(w.numbers)])
	if cap(w.changes)+cap(w.members)+cap(w.removed.slots) <= maxIdle {
		weighings.Put(w)
	}
}

// oldest are the oldest candidate that has a member's key, and the oldest one that has its value; none: there is none.
type oldest struct{ key, value int32 }

const none int32 = -1

// change is one thing that the client would have done to a candidate.
type change struct {
	place     uint64 // of the member, without what identifies entries of lists; or of the list or text
	candidate int32
	index     int32 // which of mine's members or parts; if something was taken out, its index in weighing.removed
	effect    effect
	weight    uint8  // of the part or the entry of a list, or of what was taken out
	from      spotOf // what was taken out
}

// effect is what a change does.
type effect uint8

const (
	sets  effect = iota // sets a member to another value
	adds                // adds a member
	puts                // puts a part into a list or text
	takes               // takes a member or a part out
	drops               // takes a part out with an entry at one end of a list: see slides
	fills               // sets an element of a fixed list to another value
)

// touched is a place that the changes of a candidate touch, how they touch it, and how many parts.
type touched struct {
	how   uint64
	parts int
}

// maxTouches is how many places a pattern tells apart. All changes of more places have one pattern.
const maxTouches = 16

// begin makes the weighing ready for n candidates.
func (w *weighing) begin(n int, mine *Digest, part bool) {
	w.mine, w.part, w.newest, w.compared, w.holder = mine, part, -1, 0, 0
	w.verdicts = append(w.verdicts[:0], make([]verdict, n)...)
	w.changes = w.changes[:0]
	w.removed.reset()
	w.moved = append(w.moved[:0], make([]bool, len(mine.members))...)
	w.members, w.parts = w.members[:0], w.parts[:0]
	for range mine.members {
		w.members = append(w.members, oldest{none, none})
	}
	for range mine.parts {
		w.parts = append(w.parts, none)
	}
}

// tooFar reports whether the candidate that is being compared has too many changes to be the likeliest.
func (w *weighing) tooFar() bool { return len(w.changes)-w.dropped > w.limit }

// add adds a change, unless the candidate has too many already. hash is of the place and its content before the change.
func (w *weighing) add(c change, hash uint64) {
	if w.tooFar() {
		return
	}
	w.changes = append(w.changes, c)
	w.verdicts[w.at].changes += step(hash, elementKey)
}

// putPart adds a change: the client put in mine's i-th part.
func (w *weighing) putPart(i int) {
	p := &w.mine.parts[i]
	if w.isFixed(p.place) {
		return
	}
	c := change{place: p.place, candidate: w.at, index: int32(i), effect: puts, weight: p.weight} //nolint:gosec // bounded by maxValues
	w.add(c, p.hash)
}

// addMember adds a change: the client added mine's i-th member.
func (w *weighing) addMember(i int) {
	m := &w.mine.members[i]
	c := change{place: m.kind, candidate: w.at, index: int32(i), effect: adds} //nolint:gosec // bounded by maxValues
	if m.entry {
		c.place, c.weight = m.parent, maxWeight
	}
	w.add(c, m.place)
}

// takeMember adds a change: the client removed the member, which mine lacks. A part of a document lacks members that its client has left
// alone. But it has each of its lists as a whole.
func (w *weighing) takeMember(m *member) {
	place, weight := m.kind, m.key+m.weight
	switch {
	case w.part && !(m.listed && w.mine.find(m.parent) >= 0):
		return
	case m.entry:
		place, weight = m.parent, maxWeight
	}
	w.take(m.place, change{place: place, weight: w.weightWithout(m.parent, weight), from: m.spot()})
}

// takePart adds a change: the client removed the part.
func (w *weighing) takePart(p *part, hash uint64, weight uint8) {
	if !w.isFixed(p.place) {
		w.take(hash, change{place: p.place, weight: weight, from: p.spot()})
	}
}

// take adds a change: the client removed the content with that hash, which mine lacks.
func (w *weighing) take(hash uint64, c change) {
	c.candidate = w.at
	if slices.Contains(w.sliding, c.place) {
		w.dropped++
		c.effect = drops
		w.add(c, ^hash)
		return
	}
	c.effect, c.index = takes, w.removed.place(hash)
	if !w.view && w.removed.newest[c.index] == none {
		w.removed.newest[c.index] = w.at
	}
	w.add(c, ^hash)
}

// table finds, by the hash of some content, the newest candidate that has the content. Views don't count. The zero table is ready for use.
type table struct {
	slots  []cell // open addressing; a power of two of them
	newest []int32
	round  uint32 // cells of other rounds are free
}

type cell struct {
	hash  uint64
	round uint32
	place int32
}

func (t *table) reset() {
	t.newest = t.newest[:0]
	if t.round++; t.round == 0 || t.slots == nil {
		t.slots, t.round = make([]cell, 256), 1
	}
}

// place returns the index in newest of the content with that hash.
func (t *table) place(hash uint64) int32 {
	if 2*len(t.newest) >= len(t.slots) {
		old := t.slots
		t.slots = make([]cell, 2*len(old))
		for _, s := range old {
			if s.round == t.round {
				*t.slot(s.hash) = s
			}
		}
	}
	s := t.slot(hash)
	if s.round != t.round {
		*s = cell{hash, t.round, int32(len(t.newest))} //nolint:gosec // few
		t.newest = append(t.newest, none)
	}
	return s.place
}

func (t *table) slot(hash uint64) *cell {
	mask := uint64(len(t.slots) - 1) //nolint:gosec // a table has slots
	i := hash & mask
	for t.slots[i].round == t.round && t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return &t.slots[i]
}

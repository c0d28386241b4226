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

	members []oldest   // that have mine's members
	parts   []int32    // the oldest candidate that has each of mine's parts; none where there is none
	moved   []bool     // which of mine's members are missing somewhere, or have another value
	steps   []float64  // how far one number was moved from each candidate
	numbers []*number  // the number itself, there; nil: there is none
	moves   []float64  // how far it was moved from each revision to the next, if it was
	removed table      // of what mine doesn't have
	words   vocabulary // of one member
	touches []touched  // of one candidate
	weights []uint8    // of mine's members, as far as they are of a vocabulary
	filled  []uint64   // places of lists, of one candidate
	sliding []uint64   // places of lists from which entries are dropped at one end, while others are put in at the other
	dropped int        // entries, of one candidate, and what they consist of

	at       int32 // the candidate that is compared
	view     bool  // it shows what one client had seen, and others may have changed since
	limit    int   // of the changes, from which on it is too far
	few      int   // the fewest that any candidate has
	compared int   // values
	newest   int32 // the newest that is no view: what a view doesn't have, others may not have taken out
}

var weighings = sync.Pool{New: func() any { return new(weighing) }}

// release gives the weighing to whoever needs the next one.
func (w *weighing) release() {
	w.mine = nil
	clear(w.numbers[:cap(w.numbers)])
	if cap(w.changes)+cap(w.members)+cap(w.removed.slots) <= maxIdle {
		weighings.Put(w)
	}
}

// oldest are the oldest candidates that have a member's key, and its value; none where there is none.
type oldest struct{ key, value int32 }

const none int32 = -1

// change is one thing that the client would have done to a candidate.
type change struct {
	place     uint64 // of the member, or of the list or text
	candidate int32
	index     int32 // of mine's member or part, or of what was taken out
	effect    effect
	weight    uint8 // of a part, or of what was taken out
}

// effect is what a change does.
type effect uint8

const (
	sets  effect = iota // a member to another value
	adds                // a member
	puts                // a part into a list or text
	takes               // a member or a part out
	drops               // a part, with an entry at one end of a list: see slides
)

// touched is a place that the changes of a candidate touch, and how many parts of it.
type touched struct {
	how   uint64
	parts int
}

// maxTouches is how many places a pattern tells apart. Changes of more have one pattern in common.
const maxTouches = 16

// begin makes the weighing ready for n candidates.
func (w *weighing) begin(n int, mine *Digest, part bool) {
	w.mine, w.part, w.newest, w.compared = mine, part, -1, 0
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

// tooFar reports whether the candidate that is compared has more changes than the likeliest one can have.
func (w *weighing) tooFar() bool { return len(w.changes)-w.dropped > w.limit }

// add adds a change; what it is of, and was before, has that hash.
func (w *weighing) add(c change, hash uint64) {
	w.changes = append(w.changes, c)
	w.verdicts[w.at].changes += step(hash, elementKey)
}

// putPart adds that the client put in mine's i-th part.
func (w *weighing) putPart(i int) {
	p := &w.mine.parts[i]
	w.add(change{p.place, w.at, int32(i), puts, p.weight}, p.hash) //nolint:gosec // bounded by maxValues
}

// take adds that the client removed the content with that hash, which mine doesn't have.
func (w *weighing) take(hash, place uint64, weight uint8) {
	if slices.Contains(w.sliding, place) {
		w.dropped++
		w.add(change{place, w.at, 0, drops, weight}, ^hash)
		return
	}
	k := w.removed.place(hash)
	if !w.view && w.removed.newest[k] == none {
		w.removed.newest[k] = w.at
	}
	w.add(change{place, w.at, k, takes, weight}, ^hash)
}

// table has the newest candidate, but for views, that has something which is known by its hash. The zero table is ready for use.
type table struct {
	slots  []slot // open addressing; a power of two of them
	newest []int32
	round  uint32 // slots of other rounds are free
}

type slot struct {
	hash  uint64
	round uint32
	place int32
}

func (t *table) reset() {
	t.newest = t.newest[:0]
	if t.round++; t.round == 0 || t.slots == nil {
		t.slots, t.round = make([]slot, 256), 1
	}
}

// place returns the index of what has that hash, in newest.
func (t *table) place(hash uint64) int32 {
	if 2*len(t.newest) >= len(t.slots) {
		old := t.slots
		t.slots = make([]slot, 2*len(old))
		for _, s := range old {
			if s.round == t.round {
				*t.slot(s.hash) = s
			}
		}
	}
	s := t.slot(hash)
	if s.round != t.round {
		*s = slot{hash, t.round, int32(len(t.newest))} //nolint:gosec // few
		t.newest = append(t.newest, none)
	}
	return s.place
}

func (t *table) slot(hash uint64) *slot {
	mask := uint64(len(t.slots) - 1) //nolint:gosec // a table has slots
	i := hash & mask
	for t.slots[i].round == t.round && t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return &t.slots[i]
}

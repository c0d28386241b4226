package rank

import "sync"

// weighing is one call of weigh, and its memory.
type weighing struct {
	mine     *digester
	part     bool
	verdicts []verdict
	changes  []change

	// How the candidates differ from mine: see compare.go.
	places        table     // the places in contents, by the keys of the content
	contents      []content // first the contents of mine, and then those that mine lacks
	differing     set       // the contents in which the candidate that is being compared differs from mine
	last          *Digest   // the candidate that was compared last; mine itself if none was
	lastCandidate int32
	between       []difference // of the last candidate and the one that is being compared

	// For one number, and each candidate.
	steps   []float64 // how far the client would have moved it
	numbers []*number // its value in the candidate; nil: there is none
	moves   []move    // how far it was moved from each revision to the next, without the moves by 0

	puttings []spotOf   // the places at which the client would have put something in
	since    []change   // the changes by which it would have taken something out of the newest candidate only
	words    vocabulary // of one member
	touches  []touched  // of one candidate
	fixed    []fixed
	slots    []slot // of all fixed lists

	// For one candidate.
	filled    []uint64 // places of lists into which the client would have put something
	emptied   []uint64 // see findEmptied
	rewritten []text   // the texts that the client would have written anew
	own       []uint64 // see findMixes
	sliding   []uint64 // places of lists with entries dropped at one end, and others put in at the other

	sums      bool   // the rule adds numbers up
	lone      bool   // one client is alone, as far as content shows: it may take back its own change
	marks     uint64 // the place of the member that the client may leave out; 0: there is none
	candidate int32  // the candidate that is being compared, or judged
	few       int    // the fewest changes that any candidate has so far
	compared  int    // how many values were compared so far
	newest    int32  // the newest candidate that is no view; only such a one shows what others have taken out
}

var weighings = sync.Pool{New: func() any { return new(weighing) }}

// release puts the weighing back for reuse.
func (w *weighing) release() {
	w.mine, w.last, w.sums = nil, nil, false
	clear(w.numbers[:cap(w.numbers)])
	w.forgetBetween()
	if cap(w.changes)+cap(w.contents)+cap(w.between)+cap(w.places.slots) <= maxIdle {
		weighings.Put(w)
	}
}

// change is one thing that the client would have done to a candidate.
type change struct {
	place  uint64 // the place of the list or text; or of the member, without the parts that identify entries of lists and of maps
	hash   uint64 // of the content before and after the change
	at     spotOf // where the client put the content in, or took it out
	index  int32  // which of weighing.contents or, if it fills, of weighing.slots
	effect effect
	weight uint8 // of the part or the entry of a list, or of what was taken out or replaced
	text   bool  // takes: of an entry of a list that is a long text
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
func (w *weighing) begin(n int, mine *digester, part bool) {
	w.mine, w.part, w.newest = mine, part, -1
	w.last, w.lastCandidate, w.compared = &mine.Digest, none, 0
	w.verdicts = append(w.verdicts[:0], make([]verdict, n)...)
	w.changes, w.contents = w.changes[:0], append(w.contents[:0], make([]content, len(mine.items))...)
	w.differing = set{words: w.differing.words[:0]}
	w.places.reset()
	for i := range mine.items {
		w.places.add(mine.items[i].key)
		w.contents[i].oldest = oldest{present, present}
	}
	for i := range mine.members {
		w.contents[i].weight = mine.members[i].weight
	}
}

// table gives numbers to hashes, in the order in which they come. The zero table is ready for use.
type table struct {
	slots []cell // open addressing; a power of two of them
	n     int
	round uint32 // cells of other rounds are free
}

type cell struct {
	hash  uint64
	round uint32
	place int32
}

func (t *table) reset() {
	t.n = 0
	if t.round++; t.round == 0 || t.slots == nil {
		t.slots, t.round = make([]cell, 256), 1
	}
}

// find returns the number of a hash, if it has one.
func (t *table) find(hash uint64) (n int, ok bool) {
	s := t.slot(hash)
	return int(s.place), s.round == t.round
}

// add gives the next number to a hash that has none.
func (t *table) add(hash uint64) int {
	if 2*t.n >= len(t.slots) {
		old := t.slots
		t.slots = make([]cell, 2*len(old))
		for _, s := range old {
			if s.round == t.round {
				*t.slot(s.hash) = s
			}
		}
	}
	*t.slot(hash) = cell{hash, t.round, int32(t.n)} //nolint:gosec // bounded by largeRoom
	t.n++
	return t.n - 1
}

func (t *table) slot(hash uint64) *cell {
	mask := uint64(len(t.slots) - 1)    //nolint:gosec // a table has slots
	i := hash * elementKey >> 32 & mask // entries of one name have consecutive hashes, and mustn't fill consecutive slots
	for t.slots[i].round == t.round && t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return &t.slots[i]
}

package rank

import (
	"math"
	"math/bits"
	"slices"
)

// Here mine is the document that the client sent. One revision of a document has nearly all of its content in common with the next one. So
// only the newest candidate is compared with mine. Each other candidate is compared with the next newer one. Only where these two differ
// can the client have changed the one in another way than the other.

// content is a member or a part that mine has, or that one of the compared candidates has.
type content struct {
	oldest oldest // the oldest candidates that have it as mine has it; not in use if mine lacks it
	change change // the client's change of it, if it differs in the candidate that is being compared
	weight uint8  // the weight of mine's member; lower than in the digest if its value is a word of a vocabulary
	moved  bool   // some candidate has another value of mine's member
	newest bool   // the client would have taken it out of weighing.newest
	taken  int32  // 1 + the last candidate for which findMoves has noted it as taken out
}

// oldest are the oldest candidate that has the key of some content, and the oldest one that has its value; none: there is none.
type oldest struct{ key, value int32 }

const (
	none int32 = -1
	// present stands for the oldest candidate while candidates are compared: the last one has the content.
	present int32 = -2
)

// compare finds the changes that the client would have made to a candidate.
func (w *weighing) compare(c *Candidate, v *verdict) {
	switch {
	case v.far:
		return
	case c.Digest == nil:
		v.unknown = true
		return
	}
	isNewest := w.newest < 0 && !c.View && !v.absent
	if isNewest {
		w.newest = w.candidate
	}
	w.findSliding(c.Digest)
	w.compared += v.work
	limit := 2*w.few + enough
	if v.absent {
		limit = math.MaxInt // a client that creates a document changes all of it
	}
	if w.compared > smallRoom && !w.part && len(w.sliding) == 0 {
		if n, _ := w.mine.differences(c.Digest, limit); n > limit {
			v.far = true
			return
		}
	}
	w.follow(c.Digest)
	if isNewest {
		w.noteNewest()
	}
	v.from = len(w.changes)
	n := w.differing.n
	if n <= limit || len(w.sliding) > 0 {
		n -= w.gather()
	}
	n += w.compareFixed(c.Digest)
	if v.to = len(w.changes); n > limit {
		w.changes, v.to, v.far = w.changes[:v.from], v.from, true
		return
	}
	w.few = min(w.few, n)
	v.price, v.edits = dropping*len(w.sliding), len(w.sliding)
}

// The bounds on how many values are compared. What a candidate shares with the next newer one doesn't count. Up to smallRoom, each
// candidate is compared to its end, even if it is too far: its content says how likely the other candidates are. Beyond smallRoom, spent
// candidates aren't compared any more, and others only until they are too far. Beyond largeRoom, no candidate is compared any more.
const (
	largeRoom = 1 << 20
	smallRoom = 1 << 14
)

// isBeyond reports whether a candidate isn't compared any more, after so many values of the newer ones.
func isBeyond(c *Candidate, values int) bool {
	return values > largeRoom || c.Spent && values > smallRoom
}

// A candidate is too far if it needs more than 2n + enough changes, where n is the fewest that any candidate needs.
const enough = 24

// fewest returns how many changes lead to mine from the candidate whose size is nearest to mine's. Mostly that candidate needs the fewest
// changes of all. Then it soon shows which others are too far.
func (w *weighing) fewest(cs []Candidate) int {
	size := len(w.mine.items)
	near, least := -1, math.MaxInt
	for i := len(cs) - 1; i >= 0; i-- {
		if d := cs[i].Digest; d != nil {
			if differ := max(size-d.size, d.size-size); differ < least {
				near, least = i, differ
			}
		}
	}
	if near < 0 || w.part {
		return math.MaxInt / 4
	}
	return w.mine.distance(cs[near].Digest)
}

// follow notes how the candidate differs from the one that was compared last.
func (w *weighing) follow(theirs *Digest) {
	for _, d := range w.differences(theirs) {
		w.note(d.key, d.theirs)
	}
	w.last, w.lastCandidate = theirs, w.candidate
}

// delta is how a digest differs from another one.
type delta struct {
	from        uint64 // the id of the other digest
	differences []difference
}

// difference is content that one of two digests lacks, or that has another value in the other digest.
type difference struct {
	key    uint64
	theirs found // the content in the digest that has the difference
}

// mostKept is how many differences a digest keeps at most.
const mostKept = 16

// differences returns how the candidate differs from the one that was compared last. The next write is mostly compared with the same
// candidates in the same order. So each digest keeps its few differences from the one before it.
func (w *weighing) differences(theirs *Digest) []difference {
	if kept := theirs.kept.Load(); kept != nil && kept.from == w.last.id {
		return kept.differences
	}
	w.forgetBetween()
	all := w.between
	for kind := range 2 { // all members, and then all parts: the order must not depend on the blocks
		for last, next := range w.last.unequal(theirs) {
			all = appendDifferences(all, last[kind].items, &next[kind])
		}
	}
	w.between = all
	if w.last != &w.mine.Digest && len(all) <= mostKept {
		theirs.kept.Store(&delta{w.last.id, slices.Clone(all)})
	}
	return all
}

// forgetBetween clears what was found between two candidates. A weighing that is kept for reuse must not hold their blocks.
func (w *weighing) forgetBetween() {
	clear(w.between)
	w.between = w.between[:0]
}

// appendDifferences appends how items differ from the last ones.
func appendDifferences(all []difference, last []item, r *run) []difference {
	next, at := r.items, r.from
	for len(last) > 0 || len(next) > 0 {
		n := alike(last, next)
		last, next, at.i = last[n:], next[n:], at.i+int32(n) //nolint:gosec // bounded by maxValues
		switch {
		case len(last) == 0 && len(next) == 0:
		case len(next) == 0 || len(last) > 0 && last[0].key < next[0].key:
			all = append(all, difference{last[0].key, found{}})
			last = last[1:]
		default:
			all = append(all, difference{next[0].key, at})
			if len(last) > 0 && last[0].key == next[0].key {
				last = last[1:]
			}
			next, at.i = next[1:], at.i+1
		}
	}
	return all
}

// note notes that the content with that key differs from the last candidate's. theirs is the content in the candidate.
func (w *weighing) note(key uint64, theirs found) {
	i, known := w.places.find(key)
	if !known { // mine lacks it, and nothing was taken out of the newer candidates there
		var c change
		if !theirs.exists() || !w.takes(&c, theirs) {
			return
		}
		i = w.places.add(key)
		w.contents = append(w.contents, content{})
	}
	w.differing.set(i, w.differs(i, theirs))
}

// differs reports whether the client would have changed the i-th content, and notes how.
func (w *weighing) differs(i int, theirs found) bool {
	c := &w.contents[i]
	c.change.index = int32(i) //nolint:gosec // bounded by largeRoom
	switch {
	case i >= len(w.mine.items):
		return theirs.exists() && w.takes(&c.change, theirs)
	case i < len(w.mine.members):
		return w.differsAsMember(c, i, theirs)
	}
	mine, p := w.mine.items[i], &w.mine.parts[i-len(w.mine.members)]
	count := uint64(0)
	c.change = change{place: p.place, hash: mine.key, index: c.change.index, effect: puts, weight: p.weight, at: p.spot(mine)}
	if theirs.exists() {
		their, it := theirs.part()
		if count = it.value; count > mine.value { // the candidate has it more often than mine
			c.change.effect, c.change.weight, c.change.text = takes, their.weight, p.text
		}
	}
	c.oldest.value = w.oldestOf(c.oldest.value, count >= mine.value)
	return count != mine.value && !w.isFixed(p.place)
}

// differsAsMember is differs for mine's i-th member.
func (w *weighing) differsAsMember(c *content, i int, theirs found) bool {
	mine, m := w.mine.items[i], &w.mine.members[i]
	if !theirs.exists() {
		c.oldest = oldest{w.oldestOf(c.oldest.key, false), w.oldestOf(c.oldest.value, false)}
		c.change = change{place: m.kind, hash: mine.key, index: c.change.index, effect: adds, at: m.spot(mine)}
		if m.entry {
			c.change.place, c.change.weight = m.parent, maxWeight
		}
		return true
	}
	their, it := theirs.member()
	c.oldest = oldest{w.oldestOf(c.oldest.key, true), w.oldestOf(c.oldest.value, it == mine)}
	if it == mine {
		return false
	}
	c.moved = true
	c.change = change{place: their.kind, hash: step(mine.key, it.value), index: c.change.index, effect: sets, weight: their.weight}
	return true
}

// oldestOf returns the oldest candidate that has some content. oldest was that before the present comparison, and has says whether the
// candidate that is being compared has the content.
func (w *weighing) oldestOf(oldest int32, has bool) int32 {
	switch {
	case has:
		return present
	case oldest == present:
		return w.lastCandidate
	}
	return oldest
}

// takes notes how the client would have taken out content of the candidate that mine lacks. A part of a document lacks the members that
// the client has left alone, but has each of its lists as a whole. A client may always leave out the marks.
func (w *weighing) takes(c *change, theirs found) bool {
	m, it := theirs.member()
	if m == nil {
		p, it := theirs.part()
		*c = change{hash: ^it.key, index: c.index, effect: takes, place: p.place, at: p.spot(it), text: p.text}
		c.weight = w.weightWithout(p.place, p.weight)
		return !w.isFixed(p.place) && !((w.part || p.place == w.marks) && !w.has(p.place))
	}
	*c = change{hash: ^it.key, index: c.index, effect: takes, place: m.kind, at: m.spot(it), weight: m.key + m.weight}
	if m.entry {
		c.place, c.weight = m.parent, maxWeight
	}
	c.weight = w.weightWithout(m.parent, c.weight)
	return it.key != w.marks && !w.part || m.listed && w.has(m.parent)
}

// weightWithout returns the weight of content that mine lacks. holder is the object, list or text that the content is in. If mine lacks the
// holder, too, the weight is 0: a client takes a holder out at once, however much is in it.
func (w *weighing) weightWithout(holder uint64, weight uint8) uint8 {
	if holder != 0 && !w.has(holder) {
		return 0
	}
	return weight
}

// has reports whether mine has a member at a place.
func (w *weighing) has(place uint64) bool {
	i, known := w.places.find(place)
	return known && i < len(w.mine.members)
}

// noteNewest notes what the client would have taken out of the newest candidate.
func (w *weighing) noteNewest() {
	for i := range w.differing.all {
		c := &w.contents[i]
		c.newest = c.change.effect == takes && !slices.Contains(w.sliding, c.change.place)
	}
}

// gather adds the changes of the candidate that is being compared. It returns how many of them are dropped entries, or content of them.
func (w *weighing) gather() (dropped int) {
	for i := range w.differing.all {
		c := w.contents[i].change
		if c.effect == takes && slices.Contains(w.sliding, c.place) {
			c.effect, c.index = drops, 0 // all dropped entries together are one change
			dropped++
		}
		w.changes = append(w.changes, c)
	}
	return dropped
}

// endCompare notes the content of the candidate that was compared last: it is the oldest one.
func (w *weighing) endCompare() {
	for i := range w.mine.items {
		o := &w.contents[i].oldest
		if o.key == present {
			o.key = w.lastCandidate
		}
		if o.value == present {
			o.value = w.lastCandidate
		}
	}
}

// set is a set of small numbers.
type set struct {
	words []uint64
	n     int // how many there are
}

// set puts a number in, or takes it out.
func (s *set) set(i int, in bool) {
	for i/64 >= len(s.words) {
		s.words = append(s.words, 0)
	}
	word, bit := &s.words[i/64], uint64(1)<<(i%64)
	switch {
	case in && *word&bit == 0:
		s.n++
		*word |= bit
	case !in && *word&bit != 0:
		s.n--
		*word &^= bit
	}
}

// all yields the numbers, the smallest first.
func (s *set) all(yield func(int) bool) {
	for i, word := range s.words {
		for ; word != 0; word &= word - 1 {
			if !yield(64*i + bits.TrailingZeros64(word)) {
				return
			}
		}
	}
}

package rank

import "slices"

// The order of a list counts in two cases.
//
// In sliding windows, clients append entries and drop the oldest. That is one change, however many entries they drop. Otherwise it would
// look as if they had replaced entries.
//
// If a list has always had the same length, and its elements stay where they are, clients change them in place: the steps of an approval,
// the options of a poll, the seats of a row. There an element is a value at a place, as a member is. Otherwise it would look as if each
// client had replaced somebody else's entry.

const (
	// minKept is how many entries a sliding window has to keep. Two lists may have fewer entries in common by chance.
	minKept = 3
	// maxTries bounds the work if many entries of a list are equal.
	maxTries = 8
)

// findSliding finds the lists in which the client would have dropped entries at one end, and put others in at the other end.
func (w *weighing) findSliding(theirs *Digest) {
	w.sliding = w.sliding[:0]
	a, b := theirs.lists, w.mine.lists
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch from, to := &a[i], &b[j]; {
		case from.place < to.place:
			i++
		case to.place < from.place:
			j++
		default:
			if len(w.sliding) < maxTouches && !w.isFixed(to.place) && slides(from, to) {
				w.sliding = append(w.sliding, to.place)
			}
			i, j = i+1, j+1
		}
	}
}

// slides reports whether b is a with some entries dropped at one end, and others put in at the other end.
func slides(a, b *list) bool {
	if a.n <= minKept || b.n <= minKept || a.at(0) == b.at(0) && a.at(1) == b.at(1) {
		return false // the common case
	}
	tries := maxTries
	for dropped := 1; a.n-dropped >= minKept && tries > 0; dropped++ {
		kept := a.n - dropped
		if kept >= b.n {
			continue
		}
		added := b.n - kept
		if a.at(dropped) == b.at(0) {
			if tries--; a.has(dropped, b, 0, kept) {
				return true
			}
		}
		if a.at(0) == b.at(added) {
			if tries--; a.has(0, b, added, kept) {
				return true
			}
		}
	}
	return false
}

// has reports whether the n elements from i on are those of o from k on.
func (l *list) has(i int, o *list, k, n int) bool {
	for range n {
		if l.at(i) != o.at(k) {
			return false
		}
		i, k = i+1, k+1
	}
	return true
}

// fixed is a list that has had the same length all the time.
type fixed struct {
	place uint64
	list  int // which of mine's lists
	from  int // where its slots begin in weighing.slots
}

// slot is what the candidates have in one place of a fixed list.
type slot struct {
	oldest int32 // the oldest candidate with the same element as mine; none: there is none
	weight uint8
}

const (
	// maxFixed is how many elements all fixed lists of a document have at most.
	maxFixed = 256
	// maxChanged is how many elements of a fixed list one write changes at most.
	maxChanged = 16
	// maxMoved says how many of the elements that one write changes may be elsewhere in the list afterwards: one in so many.
	maxMoved = 4
)

// findFixed finds the lists whose elements clients change in place.
func (w *weighing) findFixed(cs []Candidate) {
	w.fixed, w.slots = w.fixed[:0], w.slots[:0]
	for i := range w.mine.lists {
		l := &w.mine.lists[i]
		if l.n < 2 || l.n+len(w.slots) > maxFixed || !w.staysInPlace(cs, i) {
			continue
		}
		w.fixed = append(w.fixed, fixed{l.place, i, len(w.slots)})
		for k := range l.n {
			w.slots = append(w.slots, slot{none, l.at(k).weight()})
			w.weighSlot(cs, i, k)
		}
	}
}

// staysInPlace reports whether the elements of mine's i-th list are changed in place.
func (w *weighing) staysInPlace(cs []Candidate, i int) bool {
	l := &w.mine.lists[i]
	if w.mine.list(i, l.place) == nil {
		return false
	}
	for k := range l.n {
		if l.at(k).isDeep() {
			return false // the contents of the elements say more than that an element has changed
		}
	}
	var last *list
	changed, moved := 0, 0
	for k := range cs {
		if cs[k].Digest == nil {
			if !cs[k].Known() {
				return false
			}
			continue
		}
		their := cs[k].Digest.list(i, l.place)
		if their == nil || their.n != l.n {
			return false
		}
		if last != nil && !cs[k].View {
			c, m := inPlace(last, their)
			changed, moved = changed+c, moved+m
		}
		last = their
	}
	return moved*maxMoved <= changed
}

// inPlace counts the places at which b has another element than a, and those among them whose element of a is elsewhere in b. The lists
// have the same length. If more than maxChanged places differ, all of them count as moved.
func inPlace(a, b *list) (changed, moved int) {
	for i := range a.n {
		if a.at(i).hash() == b.at(i).hash() {
			continue
		}
		if changed++; changed > maxChanged {
			return changed, changed
		}
		for j := range b.n {
			if b.at(j).hash() == a.at(i).hash() && a.at(j).hash() != b.at(j).hash() {
				moved++
				break
			}
		}
	}
	return changed, moved
}

// weighSlot lowers the weight of the last slot if its values come from a vocabulary. The slot is for the k-th element of mine's i-th list.
func (w *weighing) weighSlot(cs []Candidate, i, k int) {
	s := &w.slots[len(w.slots)-1]
	if s.weight <= weightOfFlag {
		return
	}
	w.words.begin()
	for c := range cs {
		if !cs[c].View && cs[c].Digest != nil {
			w.words.add(cs[c].Digest.list(i, w.mine.lists[i].place).at(k).hash())
		}
	}
	if learnt, ok := w.words.weight(); ok {
		s.weight = min(s.weight, learnt)
	}
}

// isFixed reports whether a place is that of a fixed list.
func (w *weighing) isFixed(place uint64) bool {
	return slices.ContainsFunc(w.fixed, func(f fixed) bool { return f.place == place })
}

// compareFixed adds the changes that the client would have made to elements of fixed lists. It returns how many there are.
func (w *weighing) compareFixed(theirs *Digest) (n int) {
	for i := range w.fixed {
		f := &w.fixed[i]
		mine, their := &w.mine.lists[f.list], theirs.list(f.list, f.place)
		for k := range their.n {
			s, e := &w.slots[f.from+k], their.at(k)
			switch {
			case s.weight == 0: // its changes count as changes of members
			case e.hash() == mine.at(k).hash():
				s.oldest = w.candidate
			default:
				n++
				c := change{place: f.place, hash: step(step(f.place, uint64(k)), e.hash()), effect: fills, weight: s.weight}
				c.index = int32(f.from + k) //nolint:gosec // few
				w.changes = append(w.changes, c)
			}
		}
	}
	return n
}

package rank

import (
	"math"
	"slices"
)

// What the client would have done to a candidate is weighed against what the other candidates show that others did:
//
//	the client would have put in                      the price is
//	  what an older candidate has                       twice its weight: the client hasn't seen that it was taken out (undo)
//	  what a newer candidate has                        its weight: the client has seen it, and made its change from there (echo)
//	  keys that others have put in, with other values   otherKeys, however many they are
//	  what no other candidate has                       nothing: this is the client's change
//	the client would have taken out
//	  what a newer candidate doesn't have, either       an eighth of its weight: clients take the same job out of a queue
//	  anything else                                     its weight: it is likelier that the client has never seen it
//	  of a list into which it has put something else    replacing times that: two clients have each put something in
//	  at the other end of such a list                   dropping, however much: see list.go
//	the client would have moved a number                see habit
//
// The weight is the larger the more content there is: that two clients think of the same text is unlikely, of the same flag isn't.

// weigh returns a verdict on each candidate. part says that mine is a part of a document: it leaves other members alone. The verdicts are
// good until the next call.
func (w *weighing) weigh(cs []Candidate, mine *Digest, part bool) []verdict {
	w.begin(len(cs), mine, part)
	w.few = w.fewest(cs)
	for i := len(cs) - 1; i >= 0; i-- { // the newest is near most often, and then the others are soon too far
		w.at = int32(i) //nolint:gosec // few
		w.verdicts[i].absent = !cs[i].Known()
		w.compare(&cs[i], &w.verdicts[i])
	}
	w.weighWords(cs)
	w.judgeChanges(creation(cs))
	w.judgeSteps(cs)
	for i := range cs {
		switch v := &w.verdicts[i]; {
		case cs[i].Spent && v.saves():
			v.price += spentSave
		case cs[i].Spent:
			v.price += spent
		}
	}
	return w.verdicts
}

// compare finds what the client would have done to a candidate.
func (w *weighing) compare(c *Candidate, v *verdict) {
	if c.Digest == nil && (c.Source != nil || !c.Known()) {
		c.Digest = NewDigest(c.Source)
	}
	switch {
	case c.Digest == nil:
		v.unknown = true
		return
	case w.compared > largeRoom || c.Spent && w.compared > smallRoom:
		v.far = true
		return
	case w.newest < 0 && !c.View:
		w.newest = w.at
	}
	w.findSliding(c.Digest)
	w.view = c.View
	w.compared += c.Digest.values()
	before := len(w.changes)
	w.limit = before + 2*w.few + enough
	if v.absent {
		w.limit = math.MaxInt // all of a new document is a change
	}
	if w.compareMembers(c.Digest); !w.tooFar() {
		w.compareParts(c.Digest)
	}
	if v.far = w.tooFar(); v.far {
		w.changes = w.changes[:before]
	} else {
		w.few = min(w.few, len(w.changes)-before-w.dropped)
		v.from, v.to = before, len(w.changes)
		v.price, v.edits = dropping*len(w.sliding), len(w.sliding)
	}
}

// fewest returns how many changes the candidate takes that is about as large as mine. It is near most often, and then the others are soon
// too far.
func (w *weighing) fewest(cs []Candidate) int {
	size := len(w.mine.members) + len(w.mine.parts)
	near, least := -1, math.MaxInt
	for i := len(cs) - 1; i >= 0; i-- {
		if d := cs[i].Digest; d != nil {
			if differ := max(size-d.values(), d.values()-size); differ < least {
				near, least = i, differ
			}
		}
	}
	if near < 0 || w.part {
		return math.MaxInt / 4
	}
	return w.mine.distance(cs[near].Digest)
}

// How many values are compared: of all candidates, and before those that nobody has in hand aren't looked at any more.
const (
	largeRoom = 1 << 20
	smallRoom = 1 << 14
)

// enough is how many changes a candidate may have beyond twice as many as another, before it isn't looked at any further.
const enough = 24

func (w *weighing) compareMembers(theirs *Digest) {
	a, b := w.mine.members, theirs.members
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if i < len(a) && j < len(b) && a[i].place == b[j].place { // as nearly all are
			w.members[i].key = w.at
			if a[i].value == b[j].value {
				w.members[i].value = w.at
			} else {
				w.moved[i] = true
				w.add(change{a[i].place, w.at, int32(i), sets, 0}, step(a[i].place, b[j].value))
			}
			i, j = i+1, j+1
			continue
		}
		switch {
		case w.tooFar():
			return
		case j == len(b) || i < len(a) && a[i].place < b[j].place:
			w.add(change{a[i].place, w.at, int32(i), adds, 0}, a[i].place)
			i++
		default:
			if !w.part {
				w.take(b[j].place, b[j].place, b[j].key+b[j].weight)
			}
			j++
		}
	}
}

func (w *weighing) compareParts(theirs *Digest) {
	a, b := w.mine.parts, theirs.parts
	for i, j := 0, 0; (i < len(a) || j < len(b)) && !w.tooFar(); {
		switch {
		case i < len(a) && j < len(b) && a[i].hash == b[j].hash:
			if b[j].count < a[i].count {
				w.putPart(i)
			} else {
				w.parts[i] = w.at
			}
			if b[j].count > a[i].count {
				w.take(^b[j].hash, b[j].place, b[j].weight) // more of it
			}
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && a[i].hash < b[j].hash:
			w.putPart(i)
			i++
		default:
			if !w.part || w.mine.find(b[j].place) >= 0 {
				w.take(b[j].hash, b[j].place, b[j].weight)
			}
			j++
		}
	}
}

// creation returns the index of the revision with which the document was made; -1: it isn't among the candidates.
func creation(cs []Candidate) int32 {
	return int32(slices.IndexFunc(cs, func(c Candidate) bool { return c.Known() && c.Version == 1 })) //nolint:gosec // few
}

// judgeChanges judges all changes. A client that creates a document writes the members that every new document of its kind has, and the
// words of its texts. So if there was no document, these cost nothing, as far as the document that another client has created has them.
// Entries of lists cost what they cost elsewhere: they are the document's content.
func (w *weighing) judgeChanges(creation int32) {
	for k := range w.verdicts {
		v := &w.verdicts[k]
		changes := w.changes[v.from:v.to]
		w.findFilled(changes)
		for i := range changes {
			c := &changes[i]
			if c.effect == drops {
				continue // all of a list cost as one
			}
			v.edits++
			switch {
			case c.effect == takes:
				price := w.priceOfTaking(c)
				v.price, v.removals = v.price+price, v.removals+price
			case c.effect == puts && v.absent && c.weight == weightOfWords && w.parts[c.index] == creation:
			case c.effect == puts:
				v.price += priceOf(w.parts[c.index], c.candidate, 2*int(c.weight), int(c.weight))
			case v.absent && w.members[c.index].isDefault(creation):
			default:
				v.price += w.priceOfMember(c)
			}
		}
	}
}

// findFilled finds the lists into which the changes of a candidate put something.
func (w *weighing) findFilled(changes []change) {
	w.filled = w.filled[:0]
	for i := range changes {
		c := &changes[i]
		if c.effect == puts && c.weight > weightOfWords && len(w.filled) < maxTouches && !slices.Contains(w.filled, c.place) {
			w.filled = append(w.filled, c.place)
		}
	}
}

// isDefault reports whether the document was made with such a member.
func (o *oldest) isDefault(creation int32) bool {
	return creation >= 0 && (o.value == creation || o.value == none && o.key == creation)
}

// priceOf is that of what was put into a candidate, if the oldest one that has it is that.
func priceOf(oldest, candidate int32, undo, echo int) int {
	switch {
	case oldest == none:
		return 0
	case oldest < candidate:
		return undo
	}
	return echo
}

// otherKeys is the price of putting in keys that others have put in, with other values, however many: most keys are of every document of
// their kind, and come together.
const otherKeys = 1

// priceOfMember is that of a member which was put in, or has another value.
func (w *weighing) priceOfMember(c *change) int {
	weight := int(w.weights[c.index])
	undo, echo := 2*weight, weight
	m, o := &w.mine.members[c.index], w.members[c.index]
	if m.loose {
		echo = min(echo, 2)
	}
	if c.effect == adds && o.key != none {
		if o.value == none || m.container { // others have put in the key, with another value
			v := &w.verdicts[c.candidate]
			once := otherKeys - v.keys
			v.keys = otherKeys
			return once
		}
		undo, echo = undo+2*int(m.key), echo+int(m.key)
	}
	return priceOf(o.value, c.candidate, undo, echo)
}

// dropping is the price of dropping entries at one end of a list, and putting others in at the other end.
const dropping = 5

// replacing is by how much it is dearer to put an entry in the place of another than to take that out.
const replacing = 3

func (w *weighing) priceOfTaking(c *change) int {
	price := int(c.weight)
	if c.weight > weightOfWords && slices.Contains(w.filled, c.place) {
		price *= replacing
	}
	if w.removed.newest[c.index] < w.newest && c.candidate < w.newest {
		price = (price + 7) / 8
	}
	return price
}

// weighWords finds out which of mine's members are of a vocabulary.
func (w *weighing) weighWords(cs []Candidate) {
	w.weights = w.weights[:0]
	for i := range w.mine.members {
		w.weights = append(w.weights, w.mine.members[i].weight)
	}
	for i := range w.mine.members {
		m := &w.mine.members[i]
		if weight := m.weight; weight > weightOfFlag && w.moved[i] {
			w.words.learn(cs, i, m.place)
			if learnt, ok := w.words.weight(); ok {
				w.weights[i] = min(weight, learnt)
			}
		}
	}
}

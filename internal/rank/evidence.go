package rank

import (
	"math"
	"slices"
)

// To judge a candidate, suppose that it is the base, and compare it with what the client sent. The differences are what the client would
// have changed. A change has a price if the other candidates make it unlikely:
//
//	the client would have put in                         the price, and why the change is unlikely
//	  content of an older candidate                        twice its weight: others removed it, and the client hasn't seen that (undo)
//	  content of the newest, which that has elsewhere      the weight of the latter: the client has moved it from there
//	  content of a newer candidate                         its weight: the newer candidate is the likelier base (echo)
//	  keys that others put in, with other values           nothing: documents of one kind have them
//	  content of no other candidate                        nothing: this is the client's own change
//	the client would have taken out
//	  an object, a list or a text                          the weight of that alone, however much is in it
//	  content that a newer candidate lacks, too            an eighth of its weight: two clients may take the same job out of a queue
//	  the same, and the newest has it elsewhere            its weight, times movedOn: the client has moved it on from there, see move.go
//	  content that it put in elsewhere                     an eighth of its weight: the client has moved it
//	  any other content                                    its weight: it is likelier that the client has never seen it
//	  entries of a list into which it put others           the same, times replacing: likelier two clients each put something in
//	  entries at one end, and put others in at the other   dropping, however many entries: see list.go
//	the client would have moved a number                 see habit
//	the document was deleted since                       see judgeGone
//
// More content has more weight: two clients rarely write the same text, but often set the same flag.

// weigh returns a verdict on each candidate. part says that mine is a part of a document, so members that it lacks aren't taken out. The
// verdicts are good until the next call.
func (w *weighing) weigh(cs []Candidate, mine *Digest, part bool) []verdict {
	w.begin(len(cs), mine, part)
	for i := range cs {
		if c := &cs[i]; c.Digest == nil && (c.Source != nil || !c.Known()) {
			c.Digest = NewDigest(c.Source)
		}
	}
	w.findFixed(cs)
	w.few = w.fewest(cs)
	for i := len(cs) - 1; i >= 0; i-- { // the newest is mostly the nearest, and then the older ones are soon known to be too far
		w.at = int32(i) //nolint:gosec // few
		w.verdicts[i].absent, w.verdicts[i].first = !cs[i].Known(), !cs[i].Known() && !cs[i].Gone
		w.compare(&cs[i], &w.verdicts[i])
	}
	w.weighWords(cs)
	w.judgeChanges(creation(cs))
	w.judgeSteps(cs)
	n := newestInHand(cs)
	for i := range cs {
		if cs[i].Foreign {
			w.verdicts[i].price += foreign
		}
		switch v := &w.verdicts[i]; {
		case cs[i].View && v.saves() && n >= 0 && cs[n].SeqNo >= cs[i].SeqNo:
			v.price += spent + quietSave
		case cs[i].Spent && v.saves():
			v.price += spentSave
		case cs[i].Spent:
			v.price += spent
		}
	}
	return w.verdicts
}

// compare finds the changes that the client would have made to a candidate.
func (w *weighing) compare(c *Candidate, v *verdict) {
	switch {
	case c.Digest == nil:
		v.unknown = true
		return
	case w.compared > largeRoom || c.Spent && w.compared > smallRoom:
		v.far = true
		return
	case w.newest < 0 && !c.View && !v.absent:
		w.newest = w.at
	}
	w.findSliding(c.Digest)
	w.view = c.View
	w.compared += c.Digest.values()
	w.hurried = w.compared > smallRoom
	before := len(w.changes)
	w.limit = before + 2*w.few + enough
	if v.absent {
		w.limit = math.MaxInt // a client that creates a document changes all of it
	}
	differ := w.mine.values() - c.Digest.values() // each value that only one of them has is a change
	if w.hurried && !w.part && len(w.sliding) == 0 && max(differ, -differ) > w.limit-before {
		v.far = true
		return
	}
	w.compareMembers(c.Digest)
	w.compareParts(c.Digest)
	w.compareFixed(c.Digest)
	if v.far = w.tooFar(); v.far {
		w.changes = w.changes[:before]
	} else {
		w.few = min(w.few, len(w.changes)-before-w.dropped)
		v.from, v.to = before, len(w.changes)
		v.price, v.edits = dropping*len(w.sliding), len(w.sliding)
	}
}

// fewest returns how many changes lead to mine from the candidate with the nearest size. That is mostly the nearest candidate, and then
// the others are soon known to be too far.
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

// How many values are compared at most. Beyond smallRoom, spent candidates aren't compared any more, and others only until they are too
// far; beyond largeRoom, none are. Up to smallRoom, a candidate that is too far is compared to its end: what it has says how likely the
// others are.
const (
	largeRoom = 1 << 20
	smallRoom = 1 << 14
)

// A candidate is too far if it needs more than 2n + enough changes, where n is the fewest that any candidate needs.
const enough = 24

func (w *weighing) compareMembers(theirs *Digest) {
	a, b, found, plain := w.mine.members, theirs.members, w.members, w.plain()
	for i, j := 0, 0; i < len(a) || j < len(b); {
		for i < len(a) && i < len(found) && j < len(b) && a[i].place == b[j].place && a[i].value == b[j].value { // nearly all members
			found[i] = oldest{w.at, w.at}
			if plain {
				w.restate(&a[i])
			}
			i, j = i+1, j+1
		}
		switch {
		case i == len(a) && j == len(b), w.hurried && w.tooFar():
			return
		case i < len(a) && j < len(b) && a[i].place == b[j].place:
			found[i].key, w.moved[i] = w.at, true
			w.verdicts[w.at].replaced += int(b[j].weight)
			w.add(change{place: a[i].kind, candidate: w.at, index: int32(i), effect: sets}, step(a[i].place, b[j].value))
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && a[i].place < b[j].place:
			w.addMember(i)
			i++
		default:
			w.takeMember(&b[j])
			j++
		}
	}
}

func (w *weighing) compareParts(theirs *Digest) {
	a, b := w.mine.parts, theirs.parts
	for i, j := 0, 0; (i < len(a) || j < len(b)) && !(w.hurried && w.tooFar()); {
		switch {
		case i < len(a) && j < len(b) && a[i].hash == b[j].hash:
			switch {
			case b[j].count < a[i].count:
				w.putPart(i)
			case b[j].count > a[i].count:
				w.takePart(&b[j], ^b[j].hash, b[j].weight) // the candidate has it more often than mine
				fallthrough
			default:
				w.parts[i] = w.at
			}
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && a[i].hash < b[j].hash:
			w.putPart(i)
			i++
		default:
			if !w.part || w.mine.find(b[j].place) >= 0 {
				w.takePart(&b[j], b[j].hash, w.weightWithout(b[j].place, b[j].weight))
			}
			j++
		}
	}
}

// weightWithout returns the weight of content that mine lacks. It is nothing if mine lacks the holder, too, which is an object, a list or a
// text: a client takes that out in one go, however much is in it.
func (w *weighing) weightWithout(holder uint64, weight uint8) uint8 {
	if holder == 0 {
		return weight
	}
	if holder != w.holder { // mostly the same one again
		w.holder, w.holderGone = holder, w.mine.find(holder) < 0
	}
	if w.holderGone {
		return 0
	}
	return weight
}

// creation returns the index of the document's first revision; -1: it isn't among the candidates.
func creation(cs []Candidate) int32 {
	return int32(slices.IndexFunc(cs, func(c Candidate) bool { return c.Known() && c.Version == 1 })) //nolint:gosec // few
}

// judgeChanges adds up the prices of all changes.
//
// If there was no document, the client would have created it. New documents of one kind have members and words in common. So those that the
// document's first revision has, too, cost nothing. Entries of lists have their usual price: they aren't what new documents have in common.
func (w *weighing) judgeChanges(creation int32) {
	for k := range w.verdicts {
		v := &w.verdicts[k]
		changes := w.changes[v.from:v.to]
		w.findFilled(changes)
		w.findMoves(int32(k), changes)
		for i := range changes {
			c := &changes[i]
			if c.effect == drops {
				continue // compare has added the price, once for each list
			}
			v.edits++
			switch {
			case c.effect == takes:
				price := w.priceOfTaking(c)
				v.price, v.removals = v.price+price, v.removals+price
			case c.effect == fills:
				v.price += priceOf(w.slots[c.index].oldest, c.candidate, 2*int(c.weight), int(c.weight))
			case c.effect == puts && v.first && c.weight == weightOfWords && w.parts[c.index] == creation:
			case c.effect == puts:
				v.price += w.priceOfPart(c)
			default:
				if w.mine.members[c.index].time {
					v.times++
				}
				if !v.first || !w.members[c.index].isDefault(creation) {
					v.price += w.priceOfMember(c)
				}
			}
		}
	}
}

// findFilled finds the lists into which the changes of a candidate put entries.
func (w *weighing) findFilled(changes []change) {
	w.filled = w.filled[:0]
	for i := range changes {
		c := &changes[i]
		entry := (c.effect == puts || c.effect == adds) && c.weight > weightOfWords
		if entry && len(w.filled) < maxTouches && !slices.Contains(w.filled, c.place) {
			w.filled = append(w.filled, c.place)
		}
	}
}

// isDefault reports whether the document's first revision has the member: with the same value or, if no candidate has that value, with
// any value.
func (o *oldest) isDefault(creation int32) bool {
	return creation >= 0 && (o.value == creation || o.value == none && o.key == creation)
}

// priceOf returns the price of content that the client would have put into candidate. oldest is the oldest candidate that has the content;
// none: no candidate has it.
func priceOf(oldest, candidate int32, undo, echo int) int {
	switch {
	case oldest == none:
		return 0
	case oldest < candidate:
		return undo
	}
	return echo
}

// priceOfPart returns the price of a part that the client would have put in.
func (w *weighing) priceOfPart(c *change) int {
	price := priceOf(w.parts[c.index], c.candidate, 2*int(c.weight), int(c.weight))
	return price + w.priceOfSeen(w.mine.parts[c.index].spot())
}

// priceOfMember returns the price of a member that the client would have put in, or set to another value.
func (w *weighing) priceOfMember(c *change) int {
	weight := int(w.weights[c.index])
	undo, echo := 2*weight, weight
	m, o := &w.mine.members[c.index], w.members[c.index]
	seen := 0
	if c.effect == adds {
		seen = w.priceOfSeen(m.spot())
	}
	if c.effect == adds && o.key != none {
		if o.value == none || m.container {
			return seen // others have put in the key, with another value
		}
		if v := &w.verdicts[c.candidate]; !v.absent || v.first { // the new document is of the same kind as the one that is gone
			undo, echo = undo+2*int(m.key), echo+int(m.key)
		}
	}
	return seen + priceOf(o.value, c.candidate, undo, echo)
}

// dropping is the price of dropping entries at one end of a list, and putting others in at the other end.
const dropping = 5

// replacing is the factor on the price of an entry that is taken out of a list into which the client puts another one.
const replacing = 3

// priceOfTaking returns the price of content that the client would have taken out.
func (w *weighing) priceOfTaking(c *change) int {
	price := int(c.weight)
	if c.weight > weightOfWords && slices.Contains(w.filled, c.place) {
		price *= replacing
	}
	lacked := w.removed.newest[c.index] < w.newest && c.candidate < w.newest
	switch heavy := c.weight > weightOfWords; {
	case heavy && lacked && w.isMovedOn(c):
		return movedOn * price
	case lacked, heavy && w.isMoved(c):
		return (price + 7) / 8
	}
	return price
}

// weighWords lowers the weights of mine's members whose values come from a vocabulary.
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

package rank

import (
	"cmp"
	"slices"
)

// To judge a candidate, suppose that it is the base, and compare it with what the client sent. The differences are what the client would
// have changed. A change has a price if the other candidates make it unlikely:
//
//	the client would have put in                         the price, and why the change is unlikely
//	  content of an older candidate                        twice its weight: others removed it, and the client hasn't seen that (undo)
//	  the same, and content shows that one client is alone its weight, but for numbers: the client may take back its own change
//	  content that the newest candidate has elsewhere      its weight there: the client has moved it from there
//	  content of a newer candidate                         its weight: the newer candidate is the likelier base (echo)
//	  the time of a newer candidate, in milliseconds       1: two clients often write in the same millisecond
//	  keys that others put in, with other values           nothing: documents of one kind have the same keys
//	  content of no other candidate                        nothing: this is the client's own change
//	the client would have taken out
//	  an object, a list or a text                          its own weight, however much is in it
//	  content that a newer candidate lacks, too            an eighth of its weight: two clients may take the same job out of a queue
//	  the same, of a long text, and it put another one in  as if the newest had it: one client may write its text again and again
//	  the same, and the newest has it elsewhere            its weight, times movedOn: the client has moved it on from the newest, see move.go
//	  content that it put in elsewhere                     an eighth of its weight: the client has moved it
//	  any other content                                    its weight: it is likelier that the client has never seen it
//	  entries of a list into which it put others           the same, times replacing: likelier two clients each put something in
//	  entries at one end, and put others in at the other   dropping, however many entries: see list.go
//	  nearly all words of a text, and put others in        nothing: the client has written the text anew, as it sets a short text
//	the client would have moved a number                 see habit
//	the document was deleted since                       see judgeGone
//
// More content has more weight: two clients rarely write the same text, but often set the same flag.

// weigh returns a verdict on each candidate. part says that mine is a part of a document, so members that it lacks aren't taken out. The
// verdicts are good until the next call.
func (w *weighing) weigh(cs []Candidate, mine *digester, part bool) []verdict {
	w.begin(len(cs), mine, part)
	mine.cut(w.digest(cs, &mine.naming))
	w.findFixed(cs)
	w.few = w.fewest(cs)
	for i := len(cs) - 1; i >= 0; i-- { // mostly the newest candidate is the nearest: then the older ones soon turn out to be too far
		w.candidate = int32(i) //nolint:gosec // few
		w.verdicts[i].absent, w.verdicts[i].first = !cs[i].Known(), !cs[i].Known() && !cs[i].Gone
		w.compare(&cs[i], &w.verdicts[i])
	}
	w.endCompare()
	w.weighWords(cs)
	w.judgeChanges(creation(cs))
	w.judgeSteps(cs)
	return w.verdicts
}

// digest makes the digests that are missing, and returns the newest one; nil: there is none. A candidate that isn't compared gets none: to
// make it takes longer than to compare it.
func (w *weighing) digest(cs []Candidate, n *naming) (newest *Digest) {
	values := 0
	var newer *Digest
	for i := len(cs) - 1; i >= 0; i-- {
		c := &cs[i]
		v, hasContent := &w.verdicts[i], c.Source != nil || !c.Known()
		switch {
		case hasContent && isBeyond(c, values):
			v.far, c.Digest = true, nil
		case hasContent && (c.Digest == nil || c.Digest.naming != *n):
			if c.Digest = newDigest(c.Source, *n, newer, newestOf(cs[:i])); c.Digest != nil {
				v.work = c.Digest.size
			}
		case c.Digest != nil:
			v.work = c.Digest.unshared(newer)
		}
		if c.Digest != nil {
			values += v.work
			newer = c.Digest
			newest = cmp.Or(newest, newer)
		}
	}
	return newest
}

// newestOf returns the newest digest of these candidates; nil: they have none.
func newestOf(cs []Candidate) *Digest {
	for i := len(cs) - 1; i >= 0; i-- {
		if d := cs[i].Digest; d != nil {
			return d
		}
	}
	return nil
}

// creation returns the index of the document's first revision; -1: it isn't among the candidates.
func creation(cs []Candidate) int32 {
	return int32(slices.IndexFunc(cs, func(c Candidate) bool { return c.Known() && c.Version == 1 })) //nolint:gosec // few
}

// judgeChanges adds up the prices of all changes.
//
// If there was no document, the client would have created it. New documents of one kind have members and words in common. So members and
// words that the document's first revision has, too, cost nothing. Entries of lists have their usual price, because new documents seldom
// have these in common.
func (w *weighing) judgeChanges(creation int32) {
	w.findEmptied()
	for k := range w.verdicts {
		v := &w.verdicts[k]
		changes := w.changes[v.from:v.to]
		w.candidate = int32(k)
		w.findFilled(changes)
		w.findRewritten(changes)
		v.edits += len(w.rewritten) // each text is one change, however many words it has
		w.findMoves(changes)
		for i := range changes {
			w.judgeChange(v, &changes[i], creation)
		}
	}
}

func (w *weighing) judgeChange(v *verdict, c *change, creation int32) {
	v.changes += step(c.hash, elementKey)
	if c.effect == drops {
		return // compare has added the price of drops already, once for each list
	}
	if w.rewrittenAt(c.place) < 0 {
		v.edits++
	}
	switch {
	case c.effect == takes:
		price, movesOn := w.priceOfTaking(c)
		if v.price += price; !movesOn {
			v.removals += price
		}
	case c.effect == fills:
		v.price += w.priceOf(w.slots[c.index].oldest, int(c.weight), false)
	case c.effect == puts && v.first && c.weight == weightOfWords && w.contents[c.index].oldest.value == creation:
	case c.effect == puts:
		v.price += w.priceOf(w.contents[c.index].oldest.value, int(c.weight), false) + w.priceOfSeen(c.at)
	default:
		if c.effect == sets {
			v.replaced += int(c.weight)
		}
		if w.mine.members[c.index].time != 0 {
			v.times++
		}
		if !v.first || !w.contents[c.index].oldest.isDefault(creation) {
			v.price += w.priceOfMember(v, c)
		}
	}
}

// findFilled finds the lists into which the changes of a candidate put entries.
func (w *weighing) findFilled(changes []change) {
	w.filled = w.filled[:0]
	for i := range changes {
		c := &changes[i]
		entry := (c.effect == puts || c.effect == adds) && c.weight > weightOfWords
		if entry {
			w.filled = withPlace(w.filled, c.place)
		}
	}
}

// findEmptied finds the lists from which the client would have taken long texts if it had read the newest candidate.
func (w *weighing) findEmptied() {
	w.emptied = w.emptied[:0]
	if w.newest < 0 {
		return
	}
	v := &w.verdicts[w.newest]
	for i := range w.changes[v.from:v.to] {
		c := &w.changes[v.from+i]
		if c.effect == takes && c.text && c.weight > weightOfWords {
			w.emptied = withPlace(w.emptied, c.place)
		}
	}
}

// withPlace returns places with one more, unless it is one of them, or there are enough.
func withPlace(places []uint64, place uint64) []uint64 {
	if len(places) < maxTouches && !slices.Contains(places, place) {
		places = append(places, place)
	}
	return places
}

// text is a text into which the changes of a candidate put words.
type text struct {
	place uint64
	words int // how many pairs of words the changes put in
	taken int // how many pairs they take out
}

// rewrittenAt returns the index of the text at a place among the texts that the client would have written anew, or -1.
func (w *weighing) rewrittenAt(place uint64) int {
	return slices.IndexFunc(w.rewritten, func(t text) bool { return t.place == place })
}

// maxKept says how much of the old text a text that is written anew may have: one in so many of the old words, and of the new ones. Any two
// texts share some words.
const maxKept = 4

// findRewritten finds the texts that the changes of a candidate write anew.
func (w *weighing) findRewritten(changes []change) {
	w.rewritten = w.rewritten[:0]
	for i := range changes {
		c := &changes[i]
		if c.effect != puts && c.effect != takes || c.weight != weightOfWords {
			continue
		}
		k := w.rewrittenAt(c.place)
		if k < 0 && len(w.rewritten) < maxTouches {
			k, w.rewritten = len(w.rewritten), append(w.rewritten, text{place: c.place})
		}
		if k < 0 {
			continue
		}
		if c.effect == takes {
			w.rewritten[k].taken++
			continue
		}
		w.rewritten[k].words++
	}
	w.rewritten = slices.DeleteFunc(w.rewritten, func(t text) bool {
		i, known := w.places.find(t.place)
		if !known || i >= len(w.mine.members) || w.mine.members[i].container {
			return true
		}
		words := int(w.mine.members[i].words)
		kept := words - t.words
		return t.taken == 0 || maxKept*kept > min(words, kept+t.taken)
	})
}

// isDefault reports whether the document's first revision has the member: with the same value or, if no candidate has that value, with
// any value.
func (o *oldest) isDefault(creation int32) bool {
	return creation >= 0 && (o.value == creation || o.value == none && o.key == creation)
}

// priceOf returns the price of content of a weight that the client would have put into the candidate. oldest is the oldest candidate that
// has the content; none: no candidate has it. number says that the content is a number.
func (w *weighing) priceOf(oldest int32, weight int, number bool) int {
	switch {
	case oldest == none:
		return 0
	case oldest < w.candidate && (number || !w.lone):
		return 2 * weight
	}
	return weight
}

// priceOfMember returns the price of a member that the client would have put in, or set to another value.
func (w *weighing) priceOfMember(v *verdict, c *change) int {
	content := &w.contents[c.index]
	weight := int(content.weight)
	m, o := &w.mine.members[c.index], content.oldest
	if m.time == toMillisecond && !m.listed && o.value > w.candidate {
		weight = weightOfFlag // the time of a newer candidate
	}
	seen := 0
	if c.effect == adds {
		seen = w.priceOfSeen(c.at)
	}
	if c.effect == adds && o.key != none {
		if o.value == none || m.container {
			return seen // other clients have put in the key with another value
		}
		if !v.absent || v.first { // the new document is of the same kind as the deleted one
			weight += int(m.key)
		}
	}
	return seen + w.priceOf(o.value, weight, m.number != 0)
}

// dropping is the price of dropping entries at one end of a list, and putting others in at the other end.
const dropping = 5

// replacing is the factor on the price of an entry that is taken out of a list into which the client puts another one.
const replacing = 3

// priceOfTaking returns the price of content that the client would have taken out. movesOn says that the client would have moved it on from
// another place: see isMovedOn.
func (w *weighing) priceOfTaking(c *change) (price int, movesOn bool) {
	price = int(c.weight)
	heavy := c.weight > weightOfWords
	fills := heavy && slices.Contains(w.filled, c.place)
	if fills {
		price *= replacing
	}
	lacked := w.candidate < w.newest && !w.contents[c.index].newest && !(fills && c.text && slices.Contains(w.emptied, c.place))
	switch {
	case w.rewrittenAt(c.place) >= 0:
		return 0, false
	case heavy && lacked && w.isMovedOn(c):
		return movedOn * price, true
	case lacked, heavy && w.isMoved(c):
		return (price + 7) / 8, false
	}
	return price, false
}

// weighWords lowers the weights of mine's members whose values come from a vocabulary.
func (w *weighing) weighWords(cs []Candidate) {
	for i := range w.mine.members {
		if c := &w.contents[i]; c.moved && c.weight > weightOfFlag {
			w.words.learn(cs, w.mine, i)
			if learnt, ok := w.words.weight(); ok {
				c.weight = min(c.weight, learnt)
			}
		}
	}
}

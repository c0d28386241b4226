package rank

import "slices"

// A client often moves something: a job goes from the queue to those that run, a card goes from one list to the next, or a key gets another
// name. That takes something out and puts something in: the same name in another holder, or another key in the same object. In a list, the
// latter may be two changes: two clients each put an entry into a list of limited length, and the same entry goes.
//
// A client that takes something out and puts the same in elsewhere has seen it at the first place.
//
// The newest candidate may have moved something to a second place, and the client may send it at a third place. Then the client has
// probably moved it on from the second place. Otherwise two clients would have moved the same thing to different places. From an older
// candidate, this looks like a job that two workers have taken out of a queue. It isn't one.

// spotOf is the place of something: the object, list or text that holds it, and its name in there. The name of a plain value includes the
// value.
type spotOf struct {
	holder, name uint64
	key          bool // the holder is an object
}

// movedOn is the factor on the price of content that the client would have taken out of a place that it has left already.
const movedOn = 2

// spot returns where the member is.
func (m *member) spot(it item) spotOf {
	at := spotOf{m.parent, keyOf(m.parent, it.key), !m.entry}
	switch {
	case m.entry:
		at.name = keyOf(step(m.parent, elementKey), it.key)
	case m.listed && !m.container:
		at.name = it.key // two entries often have an equal value
	case !m.container:
		at.name = step(at.name, it.value)
	}
	return at
}

// spot returns where the part is. It has the name that a plain value has as an element of a list.
func (p *part) spot(it item) spotOf {
	return spotOf{p.place, keyOf(step(step(p.place, elementKey), 0), it.key), false}
}

// keyOf returns the key from which step makes the result.
func keyOf(place, result uint64) uint64 {
	h := result ^ result>>29 ^ result>>58
	return place ^ h*0x4f74430c22a54005
}

// moved reports whether to is the same thing at another place.
func (s spotOf) moved(to spotOf) bool { return s.name == to.name && s.holder != to.holder }

// findMoves finds the places at which the client would have put something into the candidate. changes are the candidate's. For an older
// candidate it also finds content that the client would have taken out of the newest candidate, and that the older one doesn't have.
func (w *weighing) findMoves(changes []change) {
	w.since, w.puttings = w.since[:0], w.puttings[:0]
	for i := range changes {
		switch c := &changes[i]; {
		case c.effect == takes:
			w.contents[c.index].taken = w.candidate + 1
		case len(w.puttings) < maxTouches && (c.effect == adds || c.effect == puts && c.weight > weightOfWords):
			w.puttings = append(w.puttings, c.at)
		}
	}
	if w.candidate >= w.newest || len(w.puttings) == 0 {
		return
	}
	n, tries := &w.verdicts[w.newest], maxTouches
	for _, c := range w.changes[n.from:n.to] {
		if c.effect != takes || c.weight <= weightOfWords {
			continue
		}
		if w.contents[c.index].taken != w.candidate+1 {
			w.since = append(w.since, c)
		}
		if tries--; tries == 0 {
			return
		}
	}
}

// isMoved reports whether the client would have put the content that it has taken out in elsewhere.
func (w *weighing) isMoved(c *change) bool { return slices.ContainsFunc(w.puttings, c.at.moved) }

// isMovedOn reports whether the client would have moved content on from the newest candidate. The newest has the content elsewhere, or
// under another key, than the candidate. The client would have taken it out there, too, and put it in at a third place, or under a third
// key.
func (w *weighing) isMovedOn(c *change) bool {
	return slices.ContainsFunc(w.since, func(o change) bool {
		if c.at.key && c.at.holder == o.at.holder {
			return slices.ContainsFunc(w.puttings, func(p spotOf) bool { return p.key && p.holder == c.at.holder })
		}
		return c.at.name == o.at.name && w.isMoved(c) && w.isMoved(&o)
	})
}

// priceOfSeen returns the price of content that the client would have put in, if only the newest candidate has it, at another place.
func (w *weighing) priceOfSeen(at spotOf) int {
	for i := range w.since {
		if c := &w.since[i]; c.at.moved(at) {
			return int(c.weight)
		}
	}
	return 0
}

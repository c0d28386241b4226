package rank

import "slices"

// Part says whether a part of a document holds what its client changes and nothing else, as far as the part's content shows that.
type Part uint8

// What content shows of parts.
const (
	PartUnknown  Part = iota
	PartChanges       // there is a revision in a client's hand of which the part changes each value
	PartRestates      // there is no such revision
)

// plain reports whether the client sent a part without lists and long texts. The content of those says more than whether they have changed.
func (w *weighing) plain() bool { return w.part && len(w.mine.parts)+len(w.mine.lists) == 0 }

// judgeRestated adds up, for a plain part, the prices of the values that the candidates have already.
func (w *weighing) judgeRestated() {
	for k := range w.verdicts {
		v := &w.verdicts[k]
		if v.far || v.unknown {
			continue
		}
		for i := range w.mine.members {
			v.restated += w.restated(i)
		}
		for _, c := range w.changes[v.from:v.to] {
			if c.effect == sets || c.effect == adds {
				v.restated -= w.restated(int(c.index))
			}
		}
	}
}

// restated is the price of sending the unchanged value of mine's i-th member: more than the price of setting it back to that value.
func (w *weighing) restated(i int) int {
	if w.mine.members[i].container {
		return 0
	}
	return 2*int(w.mine.members[i].weight) + 1
}

// partOf returns what the part shows, judged by the revisions that clients have in hand.
func (w *weighing) partOf(cs []Candidate) Part {
	p := PartUnknown
	if !w.plain() {
		return p
	}
	w.judgeRestated()
	for i := range cs {
		switch v := &w.verdicts[i]; {
		case cs[i].Spent || v.absent || v.unknown || v.far:
		case v.restated > 0:
			p = PartRestates
		case v.edits > 0 && !w.adds(v):
			return PartChanges
		}
	}
	return p
}

// adds reports whether the client would have added a member. An early revision of a document may lack most members of a part.
func (w *weighing) adds(v *verdict) bool {
	return slices.ContainsFunc(w.changes[v.from:v.to], func(c change) bool { return c.effect == adds })
}

// chargeRestated adds the prices of values that the client would have sent unchanged.
func (w *weighing) chargeRestated() {
	for i := range w.verdicts {
		w.verdicts[i].price += w.verdicts[i].restated
	}
}

func (p *Patterns) addPart(part Part) {
	if part != PartUnknown {
		p.parts.note(part == PartChanges)
	}
}

// partsAreChanges reports whether clients send parts that hold only their changes, as earlier parts have shown. Nearly all parts have to
// show it, and more than a few. p may be nil.
func (p *Patterns) partsAreChanges() bool {
	return p != nil && p.parts.yes >= 8 && 16*p.parts.no <= p.parts.yes
}

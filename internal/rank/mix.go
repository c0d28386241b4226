package rank

import "slices"

// A client that is alone often goes back: it sets a state back, or takes out what it has put in. The sent document then looks like a change
// of an older candidate by another client, although no other client has changed anything. In two cases the sent document is no evidence of
// another client:
//
//	Each place holds what it holds in the newest candidate in somebody's hand, or in the older one. Then no change is the client's
//	own, whichever of the two was its base. A time doesn't count: clients that are alone set it, too.
//
//	The document is exactly what it was before, and the newest candidate has more or less in it. Two clients seldom put in, or take
//	out, the same. They may well set the same flag.

// findMixes finds the candidates for which the sent document is no evidence. n is the newest candidate in a client's hand.
func (w *weighing) findMixes(n int) {
	if n < 0 || w.verdicts[n].far || w.verdicts[n].unknown || w.verdicts[n].saves() {
		return
	}
	v := &w.verdicts[n]
	w.own = w.own[:0]
	for _, c := range w.changes[v.from:v.to] {
		if !w.setsTime(&c) {
			w.own = append(w.own, c.what())
		}
	}
	slices.Sort(w.own)
	restores := w.restores(n)
	for k := range w.verdicts {
		if o := &w.verdicts[k]; k != n && !o.far && !o.unknown {
			o.mixes = restores || !slices.ContainsFunc(w.changes[o.from:o.to], func(c change) bool {
				_, both := slices.BinarySearch(w.own, c.what())
				return both
			})
		}
	}
}

// restores reports whether the sent document is exactly as the document was before the n-th candidate, and that candidate has more or less
// content.
func (w *weighing) restores(n int) bool {
	before := slices.ContainsFunc(w.verdicts[:n], func(o verdict) bool { return o.saves() && !o.absent })
	v := &w.verdicts[n]
	return before && slices.ContainsFunc(w.changes[v.from:v.to], func(c change) bool {
		return c.effect != sets && c.effect != adds && c.effect != fills
	})
}

func (w *weighing) setsTime(c *change) bool {
	return (c.effect == sets || c.effect == adds) && w.mine.members[c.index].time != 0
}

// what identifies the result of a change: two changes with the same result have the same, whatever was there before.
func (c *change) what() uint64 {
	effect := c.effect
	if effect == adds {
		effect = sets
	}
	return uint64(c.index)<<8 | uint64(effect) //nolint:gosec // an index isn't negative
}

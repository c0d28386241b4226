package rank

import (
	"math"
	"math/bits"
	"slices"
)

// Patterns are the habits of a document's clients: which places their changes touch, and how, as far as the base of the change was beyond
// doubt. A job that is taken out of a queue, say, comes with a count that goes up. A wrong base shows by a change that nobody makes.
//
// The zero value knows nothing. It is a value: copy it to have it stay as it is.
type Patterns struct {
	known [maxPatterns]frequency
	total int
}

// frequency is how often a pattern was seen.
type frequency struct {
	pattern uint64
	count   int
}

const (
	maxPatterns = 24
	// minHabit is how often a pattern has to be seen. Then what it takes out costs habitual at most: clients do so, whatever it says.
	minHabit, habitual = 3, 3
	// enoughChanges is how many changes make a habit: with more, the older ones count half.
	enoughChanges = 128
)

// Add notes a change whose base is beyond doubt.
func (p *Patterns) Add(pattern uint64) {
	if p.total++; p.total > enoughChanges {
		p.total = 0
		for i := range p.known {
			p.known[i].count /= 2
			p.total += p.known[i].count
		}
	}
	rarest := 0
	for i := range p.known {
		k := &p.known[i]
		if k.count > 0 && k.pattern == pattern {
			k.count++
			return
		}
		if k.count < p.known[rarest].count {
			rarest = i
		}
	}
	p.known[rarest] = frequency{pattern, 1}
}

// price is that of a change with the pattern, in bits: the rarer it is, the dearer. Where changes have new patterns all the time, a new
// one costs no more than others.
func (p *Patterns) price(pattern uint64) (price int, habit bool) {
	count, once := 0.0, 0.5
	for i := range p.known {
		k := &p.known[i]
		if k.count == 1 {
			once++ // as many patterns as were seen once, no more, are yet to be seen
		}
		if k.count > 0 && k.pattern == pattern {
			count = float64(k.count)
		}
	}
	return int(math.Round(math.Log2(float64(p.total+2) / max(count, once)))), count >= minHabit
}

// How a change touches a place.
const (
	touchPut uint64 = iota + 1
	touchTake
	touchUp
	touchDown
)

// pattern is that of the changes of one candidate.
func (w *weighing) pattern(changes []change, c *Candidate) (pattern uint64) {
	w.touches = w.touches[:0]
	for i := range changes {
		g := &changes[i]
		how := step(g.place, w.touch(g, c))
		k := slices.IndexFunc(w.touches, func(t touched) bool { return t.how == how })
		if k < 0 {
			if k = len(w.touches); k == maxTouches {
				return maxTouches
			}
			w.touches = append(w.touches, touched{how: how})
		}
		if g.weight > weightOfWords && (g.effect == puts || g.effect == takes) {
			w.touches[k].parts++
		}
	}
	for _, t := range w.touches {
		pattern += step(t.how, uint64(bits.Len(uint(t.parts)))) //nolint:gosec // not negative
	}
	return pattern
}

// touch is how a change touches its place.
func (w *weighing) touch(g *change, c *Candidate) uint64 {
	switch g.effect {
	case takes, drops:
		return touchTake
	case puts:
		return touchPut
	}
	m := &w.mine.members[g.index]
	if n := c.Digest.number(int(g.index), m.place); n != nil && m.number != 0 {
		if w.mine.numbers[m.number-1].step(n) < 0 {
			return touchDown
		}
		return touchUp
	}
	return touchPut
}

// judgePatterns adds the prices of the patterns, as far as they can matter.
func (w *weighing) judgePatterns(cs []Candidate, p *Patterns, best int) {
	if p == nil || p.total == 0 {
		return
	}
	most := w.verdicts[best].price + narrow
	for i := range w.verdicts {
		v := &w.verdicts[i]
		if !v.unknown && !v.far && v.price <= most {
			price, habit := p.price(w.patternOf(cs, i))
			if v.price += price; habit {
				v.price -= max(0, v.removals-habitual)
			}
		}
	}
}

// patternOf is the pattern of what the client would have done to a candidate.
func (w *weighing) patternOf(cs []Candidate, i int) uint64 {
	v := &w.verdicts[i]
	return w.pattern(w.changes[v.from:v.to], &cs[i])
}

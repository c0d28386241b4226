package rank

import (
	"math"
	"math/bits"
	"slices"
)

// Patterns are the habits of clients: which places a change touches together, and how. For example, a client takes a job out of a queue and
// moves a count up by one. A wrong base makes the write look like a change that no client makes. Only changes whose base is certain are
// counted. Documents that are alike may share their patterns.
//
// The zero value knows nothing. Patterns are a value: a copy doesn't change with the original.
type Patterns struct {
	known  [maxPatterns]frequency
	total  int
	parts  tally // whether parts hold only changes: see Part
	memory tally // whether clients write from memory: see Memory
	// repeated are the kinds of lists in which names have turned out to identify nothing: a new document has such lists, too. disproved says
	// that in another long list of that kind, names have told all entries apart: then twelve new tasks only had no names yet.
	repeated  [maxRepeated]uint64
	disproved [maxRepeated]bool
}

// tally is how often something was so, and how often it wasn't. What was long ago counts less.
type tally struct{ yes, no int32 }

func (t *tally) note(so bool) {
	if so {
		t.yes++
	} else {
		t.no++
	}
	if t.yes+t.no > enoughChanges {
		t.yes, t.no = t.yes/2, t.no/2
	}
}

// frequency is how often a pattern was seen.
type frequency struct {
	pattern uint64
	count   int
}

const (
	maxPatterns = 24
	// minHabit is how often a pattern has to be seen to be a habit. Everything that a habitual change takes out costs habitual at most, but
	// for what it would have moved on from another place: the pattern doesn't say from where.
	minHabit, habitual = 3, 1
	// enoughChanges is how many changes are counted. Each time that there are more, the counts are halved, so that older changes count less.
	enoughChanges = 128
)

// Learn notes what a choice has shown.
func (p *Patterns) Learn(c *Choice) {
	if c.Certain {
		p.add(c.Pattern)
	}
	p.addPart(c.Part)
	p.addMemory(c.Memory)
	p.addRepeated(c.Repeats)
	if i := slices.Index(p.repeated[:], c.Named); i >= 0 && c.Named != 0 {
		p.disproved[i] = true // for good: if it changed back, all digests would be made anew each time
	}
}

// ShowsHabits reports whether the choice shows anything of what clients usually do.
func (c *Choice) ShowsHabits() bool {
	return c.Certain || c.Part != PartUnknown || c.Memory != MemoryUnknown || c.Repeats != 0 || c.Named != 0
}

// addRepeated notes a kind of lists in which names identify nothing. Beyond maxRepeated it notes none. If a new kind took the place of an
// old one, each choice for a document with many such lists would change the naming, and all digests would be made anew.
func (p *Patterns) addRepeated(kind uint64) {
	if free := slices.Index(p.repeated[:], 0); kind != 0 && free >= 0 && !slices.Contains(p.repeated[:], kind) {
		p.repeated[free] = kind
	}
}

// repeatedNames are the kinds of lists in which names identify nothing. p may be nil.
func (p *Patterns) repeatedNames() (kinds [maxRepeated]uint64) {
	if p == nil {
		return kinds
	}
	for i, kind := range p.repeated {
		if !p.disproved[i] {
			kinds[i] = kind
		}
	}
	return kinds
}

// add notes a change whose base is certain.
func (p *Patterns) add(pattern uint64) {
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

// price returns the price of a change with the pattern, in bits. The rarer the pattern, the higher the price. If changes have new patterns
// all the time, a new one costs no more than others.
func (p *Patterns) price(pattern uint64) (price int, habit bool) {
	count, once := 0.0, 0.5
	for i := range p.known {
		k := &p.known[i]
		if k.count == 1 {
			once++ // Good–Turing: a new pattern is about as frequent as all patterns together that were seen once
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

	touchByOne uint64 = 1 << 8 // with touchUp or touchDown
)

// pattern returns the pattern of changes to the candidate c.
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
		if g.effect == sets || g.weight > weightOfWords && g.effect != drops {
			w.touches[k].parts++
		}
	}
	for _, t := range w.touches {
		pattern += step(t.how, uint64(bits.Len(uint(t.parts)))) //nolint:gosec // not negative
	}
	return pattern
}

// touch returns how a change touches its place. Of numbers, it tells a step by one from others: most counts are moved by one, and a wrong
// base makes it several.
func (w *weighing) touch(g *change, c *Candidate) uint64 {
	switch g.effect {
	case takes, drops:
		return touchTake
	case puts, fills:
		return touchPut
	}
	m := &w.mine.members[g.index]
	if n := c.Digest.numberLike(w.mine, int(g.index)); n != nil && m.number != 0 {
		by := w.mine.numberOf(int(g.index)).step(n)
		how := touchUp
		if by < 0 {
			how = touchDown
		}
		if by == 1 || by == -1 {
			how |= touchByOne
		}
		return how
	}
	return touchPut
}

// judgePatterns adds the prices of the patterns to the candidates that may still be the likeliest.
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

// patternOf returns the pattern of the changes that the client would have made to the i-th candidate.
func (w *weighing) patternOf(cs []Candidate, i int) uint64 {
	v := &w.verdicts[i]
	return w.pattern(w.changes[v.from:v.to], &cs[i])
}

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
	known frequencies // of the places
	names frequencies // of the last keys of their paths
	forms frequencies // of how many places, wherever they are

	within, outside int // how many writes were certainly made from a read of their trace, and from another one
}

// Pattern is what a change touches: these places, and so many of each kind wherever they are.
type Pattern struct{ places, names, form uint64 }

// frequencies are how often something was seen.
type frequencies struct {
	of    [maxPatterns]frequency
	total int
}

type frequency struct {
	what  uint64
	count int
}

const (
	maxPatterns = 24
	// minHabit is how often a pattern has to be seen. Then what it takes out costs habitual at most: clients do so, whatever it says.
	minHabit, habitual = 3, 3
	// unseen is how often what was never seen counts as seen, and maxPattern what it costs at most: the changes whose base is beyond doubt
	// aren't all that there are.
	unseen, maxPattern = 0.5, 12
	// enoughChanges is how many changes make a habit: with more, the older ones count half.
	enoughChanges = 128
	// enoughTales is the same for what writes tell about traces.
	enoughTales = 64
	// fewTales is how many tell nothing: such a choice may be wrong, too.
	fewTales = 4
	// sureTales is how many writes have to be from a read of their trace, for each that isn't, for traces to say more than the content does.
	sureTales = 8
)

// Learn notes what a choice has shown: the pattern of a change whose base is beyond doubt, and whether traces tell it.
func (p *Patterns) Learn(c *Choice) {
	if c.Certain {
		p.Add(c.Pattern)
	}
	switch c.Trace {
	case Within:
		p.within++
	case Elsewhere:
		p.outside++
	case NoTale:
		return
	}
	if p.within+p.outside > enoughTales {
		p.within, p.outside = p.within/2, p.outside/2
	}
}

// TracesTell reports whether a write is made from what was read in its trace, if something was. Forms that are opened in one request and
// saved in another are two pieces of work for whoever traces them: what the second one reads is not what was changed.
func (p *Patterns) TracesTell() bool { return p == nil || p.outside <= p.within+fewTales }

// elsewhere is the price of what was read outside of the write's trace, where another was read in it.
func (p *Patterns) elsewhere() int {
	switch {
	case !p.TracesTell():
		return 0
	case p != nil && p.within >= sureTales*(p.outside+1):
		return surelyElsewhere
	}
	return elsewhere
}

// Add notes a change whose base is beyond doubt.
func (p *Patterns) Add(pattern Pattern) {
	p.known.add(pattern.places)
	p.names.add(pattern.names)
	p.forms.add(pattern.form)
}

func (f *frequencies) add(what uint64) {
	if f.total++; f.total > enoughChanges {
		f.total = 0
		for i := range f.of {
			f.of[i].count /= 2
			f.total += f.of[i].count
		}
	}
	rarest := 0
	for i := range f.of {
		k := &f.of[i]
		if k.count > 0 && k.what == what {
			k.count++
			return
		}
		if k.count < f.of[rarest].count {
			rarest = i
		}
	}
	f.of[rarest] = frequency{what, 1}
}

// price is how many bits it takes to say what is seen: the rarer it is, the more. Where something new is seen all the time, new ones take
// no more than others.
func (f *frequencies) price(what uint64) (bits float64, count int) {
	once := unseen
	for i := range f.of {
		k := &f.of[i]
		if k.count == 1 {
			once++ // as many as were seen once, no more, are yet to be seen
		}
		if k.count > 0 && k.what == what {
			count = k.count
		}
	}
	return math.Log2(float64(f.total+2) / max(float64(count), once)), count
}

// price is that of a change in a document with so many places. A change may touch other places than those before, and still be usual by the
// names of the places, or by how many they are: clients that set one key of many set another one next. To say which one takes bits, too.
func (p *Patterns) price(pattern Pattern, places int) (price int, habit bool) {
	bits, count := p.known.price(pattern.places)
	switch {
	case count > 0:
	case pattern == Pattern{}:
		bits = math.Log2(float64(p.known.total+2) / unseen)
	default:
		names, known := p.names.price(pattern.names)
		if bits += names; known == 0 {
			form, _ := p.forms.price(pattern.form)
			bits += form
		}
		bits += math.Log2(float64(places+1)) / 2 // most places that are ever touched were touched before
	}
	return int(math.Round(min(bits, maxPattern))), count >= minHabit
}

// How a change touches a place.
const (
	touchPut uint64 = iota + 1
	touchTake
	touchUp
	touchDown
)

// touched is a place that the changes of a candidate touch.
type touched struct {
	place, how   uint64
	name         uint16
	parts, words uint // how many of them, where it is a list or a text
}

// maxTouches is how many places a pattern tells apart. Changes of more have one pattern in common.
const maxTouches = 16

// pattern is that of the changes of one candidate.
func (w *weighing) pattern(changes []change, c *Candidate) (p Pattern) {
	w.touches = w.touches[:0]
	for i := range changes {
		g := &changes[i]
		how := w.touch(g, c)
		k := slices.IndexFunc(w.touches, func(t touched) bool { return t.place == g.place && t.how == how })
		if k < 0 {
			if k = len(w.touches); k == maxTouches {
				return Pattern{maxTouches, maxTouches, maxTouches}
			}
			w.touches = append(w.touches, touched{place: g.place, how: how, name: w.name(g, c)})
		}
		switch {
		case g.what != puts && g.what != takes:
		case g.weight > weightOfWords:
			w.touches[k].parts++
		default:
			w.touches[k].words++
		}
	}
	for _, t := range w.touches {
		how := t.how<<8 + uint64(bits.Len(t.parts)) //nolint:gosec // small
		p.places += step(t.place, how)
		p.names += step(uint64(t.name), how)
		p.form += step(elementKey, how<<8+uint64(bits.Len(t.words))) //nolint:gosec // small
	}
	return p
}

// name is the last key of the path of what a change touches.
func (w *weighing) name(g *change, c *Candidate) uint16 {
	d := c.Digest
	if g.what == sets || g.what == adds || g.what == puts {
		d = w.mine
	}
	if m := d.find(g.place); m >= 0 {
		return d.members[m].name
	}
	return 0
}

// touch is how a change touches its place.
func (w *weighing) touch(g *change, c *Candidate) uint64 {
	switch g.what {
	case takes:
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
	if p == nil || p.known.total == 0 {
		return
	}
	most := w.verdicts[best].price + narrow
	for i := range w.verdicts {
		v := &w.verdicts[i]
		if !v.unknown && !v.far && v.price <= most {
			price, habit := p.price(w.patternOf(cs, i), len(w.mine.members))
			if v.price += price; habit {
				v.price -= max(0, v.taken-habitual)
			}
		}
	}
}

// patternOf is the pattern of what the client would have done to a candidate.
func (w *weighing) patternOf(cs []Candidate, i int) Pattern {
	v := &w.verdicts[i]
	return w.pattern(w.changes[v.from:v.to], &cs[i])
}

package rank

import "math"

// Memory says whether a client wrote from memory, as far as the content shows that: it changed what it had sent before, or sent it once
// more, although something else was stored.
type Memory uint8

// What content shows of memory.
const (
	MemoryUnknown Memory = iota
	FromMemory
	FromRead
)

// memoryOf compares the likeliest view that a client has sent with the likeliest candidate that a client has in hand. It goes before
// chargeUnheld: what is learnt must not come from what was learnt before.
func memoryOf(cs []Candidate, verdicts []verdict) Memory {
	held, sent := -1, -1
	for i := range verdicts {
		best := &held
		if cs[i].View {
			best = &sent
		}
		if (cs[i].View || !cs[i].Spent) && (*best < 0 || verdicts[i].likelier(&verdicts[*best])) {
			*best = i
		}
	}
	if held < 0 || sent < 0 {
		return MemoryUnknown
	}
	h, s := &verdicts[held], &verdicts[sent]
	switch {
	case h.unknown || s.unknown || h.changes == s.changes: // of two that are far, too
		return MemoryUnknown
	case cs[held].Digest == nil || cs[sent].Digest == nil: // it only counts as far: it wasn't compared
		return MemoryUnknown
	case s.far || !h.far && s.price >= h.price+spent:
		return FromRead
	case h.far || h.price >= s.price+spent:
		return FromMemory
	}
	return MemoryUnknown
}

// leastMemory is the lowest price of a view that a client has sent. The highest is spent. With a higher one, some wrong choices would not
// be ambiguous, and the few writes from memory would be misread.
const leastMemory = 8

func (p *Patterns) addMemory(m Memory) {
	if m != MemoryUnknown {
		p.memory.note(m == FromMemory)
	}
}

// priceOfMemory is the price of a view that a client has sent: the more often clients write from memory, the lower. p may be nil.
func (p *Patterns) priceOfMemory() int {
	if p == nil {
		return spent
	}
	often := float64(p.memory.yes+1) / float64(p.memory.yes+p.memory.no+8)
	return max(leastMemory, min(int(math.Round(-Bit*math.Log2(often))), spent))
}

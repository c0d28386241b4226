package rank

import "math"

// habit is how clients have moved a number, as far as the candidates show that were stored right after one another. Many numbers are
// counts: they move by one, and some of them with each write. A base that is wrong shows by another step.
type habit struct {
	step    float64
	moves   int  // how often the number was moved
	regular bool // always by that step
	always  bool // by each write
}

const (
	// irregular is the price of another step than all others have taken.
	irregular = 8
	// idleHabit is the price of leaving alone what all others move.
	idleHabit = 4
	// farStep is the price of each doubling of a step that is more than freeStep times as far as the smallest that any candidate means.
	// A sum would add such a step, and the next one that is counted from a wrong base is larger still.
	farStep, freeStep = 4, 8
)

// number is about the value of a number; whole is it where exact says so.
type number struct {
	whole int64 // below 10^18
	exact bool
	near  float64
}

// step is how far a number was moved from another.
func (n *number) step(from *number) float64 {
	if n.exact && from.exact {
		return float64(n.whole - from.whole)
	}
	return n.near - from.near
}

// judgeSteps judges how far each number would have been moved.
func (w *weighing) judgeSteps(cs []Candidate) {
	for i := range w.mine.members {
		if m := &w.mine.members[i]; m.number != 0 && w.moved[i] {
			w.judgeStep(cs, i, m)
		}
	}
}

func (w *weighing) judgeStep(cs []Candidate, i int, m *member) {
	sent := &w.mine.numbers[m.number-1]
	h := habit{regular: true, always: true}
	nearest, version := math.Inf(1), int64(0)
	var last *number
	w.steps = w.steps[:0]
	for k := range cs {
		c, step := &cs[k], 0.0
		n := c.Digest.number(i, m.place)
		if n != nil {
			step = sent.step(n)
			if far := math.Abs(step); far > 0 && far < nearest {
				nearest = far
			}
		}
		w.steps = append(w.steps, step)
		if c.View || c.Digest == nil {
			continue
		}
		if n != nil && last != nil && c.Version == version+1 {
			h.add(n.step(last))
		}
		last, version = n, c.Version
	}
	for k, step := range w.steps {
		if v := &w.verdicts[k]; v.edits > 0 {
			v.moved += math.Abs(step)
			v.price += h.price(step)
			if far := math.Abs(step) / nearest; far > freeStep {
				v.price += farStep * int(math.Ceil(min(64, math.Log2(far/freeStep))))
			}
		}
	}
}

func (h *habit) add(step float64) {
	if step == 0 {
		h.always = false
		return
	}
	if h.moves++; h.moves == 1 {
		h.step = step
		return
	}
	h.regular = h.regular && same(step, h.step)
}

// same reports whether two steps are the same, but for what is rounded.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// price is that of a step that the client would have taken. Three moves are a habit.
func (h *habit) price(step float64) int {
	switch {
	case !h.regular || h.moves < 3 || same(step, h.step):
		return 0
	case step != 0:
		return irregular
	case h.always:
		return idleHabit
	}
	return 0
}

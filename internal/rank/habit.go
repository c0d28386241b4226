package rank

import "math"

// habit is how clients have moved a number, as far as the candidates show that were stored right after one another. Many numbers are
// counts: they move by one, and some of them with each write. A base that is wrong shows by another step.
type habit struct {
	step    float64
	moves   int  // how often the number was moved
	regular bool // mostly by that step: a wrong base may have led to another
	always  bool // by each write
}

const (
	// irregular is the price of another step than most others have taken.
	irregular = 8
	// idleHabit is the price of leaving alone what all others move.
	idleHabit = 4
	// farStep is the price of each doubling of a step that is more than freeStep times as far as the smallest that any candidate means.
	// A sum would add such a step, and the next one that is counted from a wrong base is larger still.
	farStep, freeStep = 4, 8
)

// judgeSteps judges how far each number would have been moved.
func (w *weighing) judgeSteps(cs []Candidate) {
	for i := range w.mine.members {
		if m := &w.mine.members[i]; m.number != 0 && w.moved[i] {
			w.judgeStep(cs, i, m)
		}
	}
}

func (w *weighing) judgeStep(cs []Candidate, i int, m *member) {
	nearest := w.findSteps(cs, i, m)
	h := w.findHabit(cs)
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

// findSteps finds out how far the client would have moved a number from each candidate, and returns how far at least. A number that wasn't
// there was moved from 0: a sum counts from there.
func (w *weighing) findSteps(cs []Candidate, i int, m *member) (nearest float64) {
	sent := &w.mine.numbers[m.number-1]
	nearest, w.steps, w.numbers = math.Inf(1), w.steps[:0], w.numbers[:0]
	for k := range cs {
		var n *number
		step := 0.0
		if d := cs[k].Digest; d != nil {
			from := &number{exact: true}
			if n = d.number(i, m.place); n != nil {
				from = n
			}
			if step = sent.step(from); step != 0 {
				nearest = min(nearest, math.Abs(step))
			}
		}
		w.steps, w.numbers = append(w.steps, step), append(w.numbers, n)
	}
	return nearest
}

// findHabit finds out how the number that findSteps has found was moved from one revision to the next.
func (w *weighing) findHabit(cs []Candidate) habit {
	h := habit{always: true}
	w.moves = w.moves[:0]
	var last *number
	version, lead := int64(0), 0
	for k := range cs {
		c := &cs[k]
		if c.View || c.Digest == nil {
			continue
		}
		n := w.numbers[k]
		if n != nil && last != nil && c.Version == version+1 {
			step := n.step(last)
			switch {
			case step == 0:
				h.always = false
			case lead == 0:
				h.step, lead = step, 1
			case same(step, h.step):
				lead++
			default:
				lead-- // of what most have taken some are left
			}
			if step != 0 {
				w.moves = append(w.moves, step)
			}
		}
		last, version = n, c.Version
	}
	alike := 0
	for _, step := range w.moves {
		if same(step, h.step) {
			alike++
		}
	}
	h.moves = len(w.moves)
	h.regular = mostly*h.moves <= (mostly+1)*alike
	return h
}

// mostly is how many moves of a habit are by its step, for one that is by another.
const mostly = 3

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

package rank

import "math"

// habit is how clients usually move a number. It is found from candidates whose versions follow one another. Many numbers are counts: they
// move by one, and some of them with each write. From a wrong base the step would be another one.
type habit struct {
	step    float64 // the most frequent step
	moves   int     // how often the number was moved
	regular bool    // most moves are by step
	always  bool    // every write moved the number
}

const (
	// irregular is the price of a step that isn't the usual one.
	irregular = 8
	// idleHabit is the price of leaving numbers alone that every other write moves. It is the same for any number of them: a revision may
	// hold the changes of several clients, each of which has moved a number of its own.
	idleHabit = 4
	// A step may be freeStep times the smallest step from any candidate. Beyond that, each doubling costs farStep. A rule with sum would
	// add a far step that comes from a wrong base, and the next wrong base would lead to an even larger one.
	farStep, freeStep = 4, 8
)

// judgeSteps adds the prices of how far the client would have moved each number.
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
			price := h.price(step)
			if step == 0 {
				price -= min(price, v.idle)
				v.idle += price
			}
			v.price += price
			if far := math.Abs(step) / nearest; far > freeStep {
				v.price += farStep * int(math.Ceil(min(64, math.Log2(far/freeStep))))
			}
		}
	}
}

// findSteps finds out how far the client would have moved a number from each candidate, and returns the smallest of these steps. If a
// candidate lacks the number, the step is from 0, as for a sum.
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

// findHabit finds out how the number of the last findSteps was moved from one revision to the next.
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
				lead-- // Boyer–Moore: a step that more than half of the moves take is left at the end
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

// mostly is the least ratio, in a regular habit, of moves by the usual step to other moves.
const mostly = 3

// same reports whether two steps are the same, apart from rounding.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// price returns the price of a step that the client would have taken. Fewer than three moves are no habit.
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

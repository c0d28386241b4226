package rank

import (
	"math"
	"slices"
)

// habit is how clients usually move a number, as candidates whose versions follow one another show. Many numbers are counts: they move by
// one, and some of them with each change. From a wrong base, the client would have taken another step.
type habit struct {
	step float64 // the most frequent step
	odd  int     // the price of another step
	idle int     // the price of leaving the number alone
}

const (
	// perBit is the price of a step that is half as likely. dearest is the highest price of a step that no client has taken. Leaving a number
	// alone costs dearestIdle at most: clients may stop doing what they have done many times in a row.
	perBit, dearest, dearestIdle = 3, 14, 4
	// A step is free up to freeStep times the smallest step from any candidate, or times the least by which clients have moved the number.
	// Beyond that, each doubling costs farStep. A rule with sum would add a far step from a wrong base, and the next wrong base would then
	// lead to an even larger step. Without sum, clients often set a number anew, near to the value that another client has set before.
	farStep, freeStep = 4, 8
)

// judgeSteps adds the prices of how far the client would have moved each number.
func (w *weighing) judgeSteps(cs []Candidate) {
	for i := range w.mine.members {
		if m := &w.mine.members[i]; m.number != 0 && w.contents[i].moved {
			w.judgeStep(cs, i, m)
		}
	}
}

func (w *weighing) judgeStep(cs []Candidate, i int, m *member) {
	usual := w.findSteps(cs, i, m)
	h := w.findHabit(cs)
	switch {
	case !w.sums || m.time != 0:
		usual = math.Inf(1) // no step is far
	case h.odd == 0: // no step is usual: the number is no count
		usual = max(usual, w.leastMove())
	}
	for k, step := range w.steps {
		if v := &w.verdicts[k]; v.edits > 0 {
			v.moved += math.Abs(step)
			price := h.price(step)
			if step == 0 {
				price -= min(price, v.idle)
				v.idle += price
			} else { // one change often moves several numbers, all of them in an unusual way
				price, v.odd = price-min(price, v.odd)/2, max(v.odd, price)
			}
			v.price += price
			if far := math.Abs(step) / usual; far > freeStep {
				v.price += farStep * int(math.Ceil(min(64, math.Log2(far/freeStep))))
			}
		}
	}
}

// findSteps finds out how far the client would have moved a number from each candidate, and returns the smallest of these steps. If a
// candidate lacks the number, the step is from 0, as for a sum.
func (w *weighing) findSteps(cs []Candidate, i int, m *member) (nearest float64) {
	sent := w.mine.numberOf(i)
	nearest, w.steps, w.numbers = math.Inf(1), w.steps[:0], w.numbers[:0]
	for k := range cs {
		var n *number
		step := 0.0
		if d := cs[k].Digest; d != nil {
			from := &number{exact: true}
			if n = d.numberLike(w.mine, i); n != nil {
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

// move is how far one write has moved a number. A write may hold the changes of several clients.
type move struct {
	step    float64
	changes int // how many clients' changes the write has, at least 1
}

// of returns how many steps of that size the move has: at most one for each of its changes. 0: the move isn't made of such steps.
func (m *move) of(step float64) int {
	n := math.Round(m.step / step)
	if n < 1 || n > float64(m.changes) || !same(m.step, n*step) {
		return 0
	}
	return int(n)
}

// findHabit finds out how clients have moved the number of the last findSteps from one revision to the next.
func (w *weighing) findHabit(cs []Candidate) habit {
	var h habit
	w.moves = w.moves[:0]
	var last *number
	version, changes := int64(0), 0
	for k := range cs {
		c := &cs[k]
		if c.View || c.Digest == nil {
			continue
		}
		n := w.numbers[k]
		if n != nil && last != nil && c.Version == version+1 {
			changes += max(1, c.Changes)
			if step := n.step(last); step != 0 {
				w.moves = append(w.moves, move{step, max(1, c.Changes)})
			}
		}
		last, version = n, c.Version
	}
	moves := len(w.moves)
	if moves < minMoves {
		return h
	}
	var alike, steps int
	h.step, alike, steps = w.usual(func(m move) float64 { return m.step })
	if slices.ContainsFunc(w.moves, func(m move) bool { return m.changes > 1 }) {
		if each, a, s := w.usual(func(m move) float64 { return m.step / float64(m.changes) }); a > alike {
			h.step, alike, steps = each, a, s
		}
	}
	h.odd = unlikely(moves-alike, moves)
	h.idle = min(unlikely(changes-steps, changes), changes/2, dearestIdle)
	return h
}

// leastMove is the least by which one client has moved the number, as far as it is known.
func (w *weighing) leastMove() float64 {
	least := math.Inf(1)
	for _, m := range w.moves {
		least = min(least, math.Abs(m.step)/float64(m.changes))
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// minMoves is the least number of moves that show a habit.
const minMoves = 3

// unlikely returns the price of something that was seen times times, of of times. More often than one time in three, the price is 0.
func unlikely(times, of int) int {
	if 3*times > of {
		return 0
	}
	return min(dearest, int(perBit*math.Log2((float64(of)+2)/(float64(times)+0.5))))
}

// usual returns the step that more than half of the moves are made of, if there is one. alike is the number of these moves, and steps the
// number of steps in all of them.
func (w *weighing) usual(stepOf func(move) float64) (step float64, alike, steps int) {
	lead := 0
	for _, m := range w.moves { // Boyer–Moore
		switch s := stepOf(m); {
		case lead == 0:
			step, lead = s, 1
		case same(s, step):
			lead++
		default:
			lead--
		}
	}
	for i := range w.moves {
		if n := w.moves[i].of(step); n > 0 {
			alike++
			steps += n
		}
	}
	return step, alike, steps
}

// same reports whether two steps are the same, apart from rounding.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// price returns the price of a step that the client would have taken.
func (h *habit) price(step float64) int {
	switch {
	case step == 0:
		return h.idle
	case !same(step, h.step):
		return h.odd
	}
	return 0
}

package merge

import (
	"slices"
	"sync"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// Guessing returns the Merger with the same strategies for bases that the client has not named. If the base is older than the revision
// that the client has seen, other clients' changes look like the client's own: an echo. Each echo that counts makes the next one larger.
// So what both sides seem to have added counts as their entries show it, in the whole document: see sight. Nothing is an echo if the client
// has none of what others have put in. All of it is one if it has several of their entries, or an id that one of them has made up.
// Otherwise it counts twice within bounds: one entry of a list; of a number, a step in proportion to what both sides of earlier merges had
// in common. The rest counts once, and the Result says so. The Result also says so if the guess is that the client found no document: a
// value that it sent may be a default, and not a change.
//
// It always returns the same Merger. That one remembers how far numbers were moved, for the path of each rule.
func (m *Merger) Guessing() *Merger {
	if m.steps != nil {
		return m
	}
	return m.guessing
}

// maxSteps is how many steps are remembered of a path. Three quarters of them have to be wrong before a much larger one is usual.
const maxSteps = 15

// usually is how many times as large as the lower quartile of them a step may be, as a power of two. Clients whose bases are taken for each
// other's are wrong by as much as lies between their reads, one up and one down, and their sum is right: that is no echo.
const usually = 4

// unseen is the same where the client seems to have seen nothing of what others have put in. It may still have, and have taken that out
// again: so the step has a bound, too, or the next wrong guess would double it.
const unseen = usually + 6

// steps are the last that both sides have moved the numbers at the path of a rule by. They are safe for concurrent use.
type steps struct {
	mu   sync.Mutex
	last []tree.Decimal
	next int
}

// isUsual reports whether a step is not out of proportion to those before it: it is at most the lower quartile of these, doubled so often.
// The first is usual.
func (s *steps) isUsual(step tree.Decimal, doubled int) bool {
	var room [maxSteps]tree.Decimal
	s.mu.Lock()
	sorted := append(room[:0], s.last...)
	s.mu.Unlock()
	if len(sorted) == 0 {
		return true
	}
	slices.SortFunc(sorted, tree.Decimal.Compare)
	most := sorted[(len(sorted)-1)/4]
	for range doubled {
		most = most.Add(most)
	}
	return step.Abs().Compare(most) <= 0
}

// remember adds a step, usual or not: clients may come to take larger ones.
func (s *steps) remember(step tree.Decimal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) < maxSteps {
		s.last = append(s.last, step.Abs())
		return
	}
	s.last[s.next] = step.Abs()
	s.next = (s.next + 1) % maxSteps
}

// echoOf is what two moves of a number have in common: the smaller one, if both go the same way, else zero.
func echoOf(a, b tree.Decimal) tree.Decimal {
	switch {
	case a.Sign() != b.Sign():
		return tree.Decimal{}
	case a.Abs().Compare(b.Abs()) < 0:
		return a
	}
	return b
}

// sum is Sum: current moved by what the client has moved the base by.
func (r *run) sum(from, to, now tree.Decimal, sc scope) tree.Decimal {
	step := to.Add(from.Neg())
	if r.steps == nil {
		return now.Add(step)
	}
	echo := echoOf(step, now.Add(from.Neg()))
	if echo.Sign() == 0 {
		return now.Add(step)
	}
	before, seen := &r.steps[sc.rule], r.sight()
	doubled := usually
	if seen == sawNothing {
		doubled = unseen
	}
	if seen == sawSome || !before.isUsual(echo, doubled) {
		step, r.echo = step.Add(echo.Neg()), true
	}
	if r.account == nil && seen != sawSome { // who only wants to know leaves no trace
		before.remember(echo)
	}
	return now.Add(step)
}

// dropEchoes leaves out what the client has put in and others, too, where the base is a guess, and that is more than one element, or the
// document shows that the client has seen it: two clients may well put in the same, but hardly several times. The array is no longer then
// than with each element as often as current or the client has it, and one.
func (r *run) dropEchoes(e *edits) {
	if r.steps == nil {
		return
	}
	mark, ids, seen := r.Ints.Mark(), &r.Table, r.sight()
	defer r.Ints.Cut(mark)
	ids.Reset(len(e.cur.B))
	theirs, echoes := r.Ints.Alloc(len(e.cur.B)), r.Ints.Alloc(len(e.sent.B))[:0]
	for i := range e.byCur {
		c := &e.byCur[i]
		for x := c.J; x < c.J+c.K; x++ {
			if !c.Both || x != c.Instead {
				theirs[ids.Number(e.cur.B[x])]++
			}
		}
	}
	for x, i := range e.sent.From {
		if i != diff.None || e.drop[x] != 0 {
			continue
		}
		if id, ok := ids.Find(e.sent.B[x]); ok && theirs[id] > 0 {
			theirs[id]--
			echoes = append(echoes, int32(x))
		}
	}
	if len(echoes) == 0 || len(echoes) <= maxShared && seen != sawSome {
		return
	}
	r.echo = true
	for _, x := range echoes {
		e.drop[x] = 1
	}
}

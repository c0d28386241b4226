package rule

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// TestNeighboursAreAllThatMeet: what isn't a neighbour takes no name that the rule takes.
func TestNeighboursAreAllThatMeet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []pattern{"a", "b", "ab", "a*", "*b", "*", ".a", ".*", "a*b"}
	for range 500 {
		matchers := make([]matcher, 8)
		for i := range matchers {
			for range 1 + r.IntN(3) {
				matchers[i].in = append(matchers[i].in, names[r.IntN(len(names))])
			}
		}
		near := newNeighbours(matchers)
		for i := range matchers {
			before := near.before(i, &matchers[i])
			for j := range i {
				meet := slices.ContainsFunc(matchers[i].in, func(p pattern) bool { return slices.ContainsFunc(matchers[j].in, p.meets) })
				if meet && !slices.Contains(before, j) {
					t.Errorf("%v meets %v, which isn't among %v", matchers[i].in, matchers[j].in, before)
				}
			}
			for _, p := range matchers[i].in {
				covers := func(j int) bool { return covered(p, matchers[j].in) }
				want := slices.IndexFunc(matchers[:i], func(m matcher) bool { return covered(p, m.in) })
				if got := near.firstBefore(i, p, covers); got != want {
					t.Errorf("%s of rule %d is covered by %d first, not %d: %v", p, i, want, got, matchers)
				}
			}
		}
	}
}

func TestRulesForSingleIndicesAreNotComparedWithEachOther(t *testing.T) {
	matchers := make([]matcher, 1000)
	for i := range matchers {
		matchers[i].in = []pattern{pattern("orders-" + strconv.Itoa(i))}
	}
	near, compared := newNeighbours(matchers), 0
	for i := range matchers {
		compared += len(near.before(i, &matchers[i]))
		near.firstBefore(i, matchers[i].in[0], func(int) bool { compared++; return false })
	}
	if compared != 0 {
		t.Errorf("%d pairs of rules were compared", compared)
	}
}

package rule

import (
	"slices"
	"strings"
)

// neighbours finds the rules that may take names of a pattern, so that not every rule is compared with every other: a configuration may
// have thousands, most of them for names without a star.
type neighbours struct {
	named map[pattern][]int // by the names without a star that they take in; all lists are in the rules' order
	wild  []int             // those that take in names with a star
}

func newNeighbours(matchers []matcher) *neighbours {
	n := &neighbours{named: map[pattern][]int{}}
	for i := range matchers {
		for _, p := range matchers[i].in {
			if !p.wild() {
				n.named[p] = append(n.named[p], i)
			}
		}
		if slices.ContainsFunc(matchers[i].in, pattern.wild) {
			n.wild = append(n.wild, i)
		}
	}
	return n
}

// firstBefore is the first rule before i that covers p, as far as by says; -1: none does.
func (n *neighbours) firstBefore(i int, p pattern, by func(j int) bool) int {
	first := -1
	for _, list := range [][]int{n.named[p], n.wild} {
		at := slices.IndexFunc(list, func(j int) bool { return j >= i || by(j) })
		if at >= 0 && list[at] < i && (first < 0 || list[at] < first) {
			first = list[at]
		}
	}
	return first
}

// before are the rules before i that may take a name that rule i takes, too.
func (n *neighbours) before(i int, m *matcher) []int {
	var found []int
	if slices.ContainsFunc(m.in, pattern.wild) {
		for j := range i {
			found = append(found, j)
		}
		return found
	}
	lists := [][]int{n.wild}
	for _, p := range m.in {
		lists = append(lists, n.named[p])
	}
	for _, list := range lists {
		end, _ := slices.BinarySearch(list, i)
		found = append(found, list[:end]...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// wild reports whether the pattern has a star.
func (p pattern) wild() bool { return strings.Contains(string(p), "*") }

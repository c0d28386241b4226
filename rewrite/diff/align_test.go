package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/rewrite/tree"
)

func TestAlignmentIsTheCanonicalLongestCommonSubsequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		element := rapid.IntRange(0, rapid.IntRange(0, 6).Draw(t, "values"))
		a := rapid.SliceOfN(element, 0, 7).Draw(t, "a")
		b := rapid.SliceOfN(element, 0, 7).Draw(t, "b")
		var s, r tree.Tree
		for tr, list := range map[*tree.Tree][]int{&s: a, &r: b} {
			if err := tr.Parse([]byte(strings.ReplaceAll(fmt.Sprint(list), " ", ",")), tree.Limits{}); err != nil {
				t.Fatal(err)
			}
		}
		var w Workspace
		w.Begin(tree.Limits{})
		al, ok := w.Align(s.Root(), r.Root())
		if !ok {
			t.Fatal("over the limit")
		}
		var got [][2]int
		for i, j := range al.To {
			if j != None {
				got = append(got, [2]int{i, int(j)})
				if al.From[j] != int32(i) {
					t.Fatalf("partners differ: %v %v", al.To, al.From)
				}
			}
		}
		if want := canonical(a, b); !slices.Equal(got, want) {
			t.Fatalf("%v %v: got %v, want %v", a, b, got, want)
		}
	})
}

// canonical is the pairs of equal places, if no common subsequence is longer.
func canonical(a, b []int) [][2]int {
	best := leftmost(a, b)
	var same [][2]int
	for k := range min(len(a), len(b)) {
		if a[k] == b[k] {
			same = append(same, [2]int{k, k})
		}
	}
	if len(same) == len(best) {
		return same
	}
	return best
}

// leftmost tries every common subsequence.
func leftmost(a, b []int) (best [][2]int) {
	var try func(i, j int, pairs [][2]int)
	try = func(i, j int, pairs [][2]int) {
		if len(pairs) > len(best) {
			best = slices.Clone(pairs) // of equally long ones the first found is the leftmost
		}
		for x := i; x < len(a); x++ {
			for y := j; y < len(b); y++ {
				if a[x] == b[y] {
					try(x+1, y+1, append(slices.Clone(pairs), [2]int{x, y}))
				}
			}
		}
	}
	try(0, 0, nil)
	return best
}

package rewrite

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Two clients each append a value to the last few values of something, and drop the oldest one. Nearly all are equal to others. Both new
// values are there, unless hardly any place shows that the windows have slid: the list is a row then, without the rule append.
func TestWindowsOfEqualValuesKeepWhatBothAppend(t *testing.T) {
	anyList, appended := mustMerger(t, Sent), mustMerger(t, Sent, PathRule{Path: "/l", Strategy: Append})
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.IntRange(0, rapid.IntRange(1, 5).Draw(t, "values"))
		base := rapid.SliceOfN(value, 3, 12).Draw(t, "base")
		slid := func(name string) (window []int, x int, places int) {
			x = value.Draw(t, name)
			window = append(slices.Clone(base[1:]), x)
			for k := range base {
				if base[k] != window[k] {
					places++
				}
			}
			return window, x, places
		}
		sent, x, places := slid("sent")
		current, y, others := slid("current")
		if places == 0 || others == 0 {
			return // nothing shows that they have changed anything
		}
		doc := func(l []int) []byte { return fmt.Appendf(nil, `{"l":%s}`, listOf(l)) }
		want := doc(append(slices.Clone(base[1:]), y, x))
		for _, m := range []*Merger{anyList, appended} {
			if m == anyList && (max(places, others) <= 2 || distinct(base)) {
				continue
			}
			res, err := m.Merge(doc(base), doc(sent), doc(current))
			if err != nil || !sameDoc(t, res.Doc, want) {
				t.Fatalf("base    %v\nsent    %v\ncurrent %v\ngot     %s, %v", base, sent, current, res.Doc, err)
			}
		}
	})
}

// distinct reports whether no two values are equal. Then one that both drop, and put in again, was moved.
func distinct(values []int) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(values)))) == len(values)
}

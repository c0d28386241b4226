package rank

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// The same sorter is used again and again. Some hashes are the same, and some differ in their last bits only.
func TestSorterSortsByHash(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var s sorter
	for n := range 300 {
		values := make([]uint64, n)
		for i := range values {
			switch values[i] = random.Uint64(); random.IntN(8) {
			case 0:
				values[i] = values[random.IntN(i+1)]
			case 1:
				values[i] >>= 60
			}
			s.add(values[i])
		}
		want := slices.SortedFunc(slices.Values(values), cmp.Compare)
		var got []uint64
		for _, k := range s.sorted() {
			got = append(got, values[k.from])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d values: %x, want %x", n, got, want)
		}
	}
}

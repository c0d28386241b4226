package rank

import (
	"cmp"
	"math/bits"
	"slices"
)

// sorter sorts values by their hashes. Hashes are spread evenly, so that the first bits of a hash nearly give the value's place. Each value
// goes into a bucket by these bits, and then the few values of each bucket are sorted. A sort that only compares takes twice as long.
type sorter struct {
	keys, buckets []sortKey
	ends          []int32 // where each bucket ends
}

// sortKey is the hash of a value, and where the value was.
type sortKey struct {
	hash uint64
	from int32
}

// add adds the next value.
func (s *sorter) add(hash uint64) {
	s.keys = append(s.keys, sortKey{hash, int32(len(s.keys))}) //nolint:gosec // bounded by maxValues
}

// sorted returns the keys in the order of their hashes, and forgets the values. The keys are good until the next value is added.
func (s *sorter) sorted() []sortKey {
	n := len(s.keys)
	bucketBits := bits.Len(uint(n))
	shift := 64 - bucketBits
	s.ends = append(s.ends[:0], make([]int32, 1<<bucketBits)...)
	for _, k := range s.keys {
		s.ends[k.hash>>shift]++
	}
	end := int32(0)
	for i, size := range s.ends {
		s.ends[i], end = end, end+size // where the bucket begins; it ends there once it is full
	}
	s.buckets = slices.Grow(s.buckets[:0], n)[:n]
	for _, k := range s.keys {
		at := &s.ends[k.hash>>shift]
		s.buckets[*at] = k
		*at++
	}
	from := int32(0)
	for _, to := range s.ends {
		if to-from > 1 {
			slices.SortFunc(s.buckets[from:to], func(a, b sortKey) int { return cmp.Compare(a.hash, b.hash) })
		}
		from = to
	}
	s.keys = s.keys[:0]
	return s.buckets
}

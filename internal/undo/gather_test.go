package undo

import (
	"slices"
	"testing"
)

// TestALargeNoteHasAPageOfItsOwn: a page that has it and others would be larger than it has to be, and the engine might not take it. Without
// a page it would wait for ever.
func TestALargeNoteHasAPageOfItsOwn(t *testing.T) {
	j := &Journal{s: New(Options{MaxBytes: 100 * pageBytes})}
	for _, size := range []int64{1, 1, pageBytes + 1, 1, pageBytes, 1, pageBytes - 1, 1, 1} {
		j.waiting = append(j.waiting, &entry{size: size})
	}
	var got []int64
	for range 10 {
		p, some := j.gather()
		if p == nil {
			break
		}
		if p.Writes != len(some) {
			t.Errorf("a page of %d writes has %d", len(some), p.Writes)
		}
		got = append(got, p.Bytes)
	}
	if want := []int64{2, pageBytes + 1, 1, pageBytes, 1 + pageBytes - 1, 2}; !slices.Equal(got, want) {
		t.Errorf("the pages have %d bytes; want %d", got, want)
	}
}

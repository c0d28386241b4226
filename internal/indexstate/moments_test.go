package indexstate

import "testing"

func TestNobodyOfManyIsForgotten(t *testing.T) {
	var m Moments[int]
	if m.Since(0, 0) {
		t.Fatal("nobody has done anything")
	}
	const many = 4 * tableCells
	for w := range many {
		m.Note(w, int64(w))
	}
	for w := range many {
		if !m.Since(w, int64(w)) {
			t.Fatalf("%d is forgotten", w)
		}
	}
	if m.Since(7, many) {
		t.Error("somebody has done it later than anybody did")
	}
}

func TestMomentsOfFewAreTheirOwn(t *testing.T) {
	var m Moments[int]
	m.Note(1, 5)
	m.Note(1, 3) // it was overtaken
	if !m.Since(1, 5) || m.Since(1, 6) {
		t.Error("its last moment is 5")
	}
	const others = 1000
	shared := 0
	for w := 2; w < 2+others; w++ {
		if m.Since(w, 0) {
			shared++
		}
	}
	if shared > others/10 { // one in tableCells is to be expected
		t.Errorf("%d of %d share a cell with one", shared, others)
	}
}

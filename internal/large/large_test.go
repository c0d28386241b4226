package large

import (
	"testing"
	"testing/synctest"
)

// fill takes all places but so many, until the test ends.
func fill(t *testing.T, left int) {
	for range cap(places) - left {
		var w Work
		w.Begin(size)
		t.Cleanup(w.End)
	}
}

func TestSmallTextsWaitForNobody(t *testing.T) {
	fill(t, 0)
	var w Work
	w.Begin(size - 1) // it would wait for ever
	w.End()
	if len(places) != cap(places) {
		t.Errorf("%d of %d places are taken: work without one has given one back", len(places), cap(places))
	}
}

func TestALargeTextWaitsForAPlaceAndLeavesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		original := places
		places = make(chan struct{}, 1) // of this bubble
		defer func() { places = original }()
		var first Work
		first.Begin(size)
		begun := false
		go func() {
			var second Work
			defer second.End()
			second.Begin(size)
			begun = true
		}()
		synctest.Wait()
		if begun {
			t.Error("there are more at work than there are places")
		}
		first.End()
		synctest.Wait()
		if !begun || len(places) != 0 {
			t.Errorf("begun %v; %d places are taken when all have ended", begun, len(places))
		}
	})
}

func TestATextThatGrowsTakesOnePlace(t *testing.T) {
	fill(t, 1)
	var w Work
	for bytes := 1; bytes < 8*size; bytes *= 2 {
		w.Begin(bytes) // a second place isn't there
	}
	if len(places) != cap(places) {
		t.Errorf("%d of %d places are taken", len(places), cap(places))
	}
	w.End()
	w.End()
	if len(places) != cap(places)-1 {
		t.Errorf("%d of %d places are taken at the end", len(places), cap(places))
	}
}

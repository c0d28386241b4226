package large

import (
	"runtime"
	"testing"
	"testing/synctest"
)

// onePlace runs a test where there is one place.
func onePlace(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		original := places
		places = make(chan struct{}, 1) // of this bubble
		defer func() { places = original }()
		f(t)
		if len(places) != 0 {
			t.Errorf("%d places are taken when all have ended", len(places))
		}
	})
}

func TestSmallTextsWaitForNobody(t *testing.T) {
	onePlace(t, func(t *testing.T) {
		var first, second Work
		first.Turn(size)
		second.Turn(size - 1) // it would wait for ever
		second.End()
		if len(places) != 1 {
			t.Error("work without a place has given one back")
		}
		first.End()
		first.End()
	})
}

func TestLargeTextsTakeTurns(t *testing.T) {
	onePlace(t, func(t *testing.T) {
		var turns []int
		work := func(name, bytes, n int) {
			var w Work
			defer w.End()
			for range n {
				w.Turn(bytes)
				turns = append(turns, name)
			}
		}
		var first Work
		first.Turn(size)
		go work(1, 8*size, 4)
		synctest.Wait()
		go work(2, size, 1)
		synctest.Wait()
		if len(turns) != 0 {
			t.Error("there are more at work than there are places")
		}
		first.End()
		synctest.Wait()
		if len(turns) != 5 || turns[0] != 1 || turns[1] != 2 {
			t.Errorf("turns %v: the short work has waited for the long one's end", turns)
		}
	})
}

func TestSmallWorkGoesOnBetweenTwoTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var w Work
	defer w.End()
	w.Turn(size)
	done := make(chan struct{})
	go close(done)
	w.Turn(size)
	select {
	case <-done:
	default:
		t.Error("what was ready before the second turn hasn't run")
	}
}

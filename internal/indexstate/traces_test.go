package indexstate

import "testing"

func TestTracesTellUntilContentSpeaksAgainstIt(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
	note := func(tells bool, n int) {
		for range n {
			ix.Traced(tells)
		}
	}
	for i, step := range []struct {
		tells bool
		n     int
		want  bool
	}{
		{false, 0, true},  // nothing is known
		{false, 1, true},  // that may be chance
		{false, 1, false}, // twice isn't
		{true, 1, true},   // nor is that most
		{false, 20, false},
		{true, 1000, true}, // the application has changed
		{false, 200, false},
	} {
		if note(step.tells, step.n); ix.TracesTell() != step.want {
			t.Errorf("step %d: traces tell: %v", i, !step.want)
		}
	}
	if other := New[int](1000).Index("other", Owner{}, 0); !other.TracesTell() {
		t.Error("another index has another application")
	}
}

// A client with other credentials can't teach that traces mislead, and what is noted is bounded.
func TestTracesOfOtherOwnersAreOthers(t *testing.T) {
	in := New[int](1000)
	ix := in.Index("shop", Owner{}, 0)
	for i := range 2 * maxTracers {
		for range 9 {
			in.Index("shop", Owner{1, byte(i)}, 0).Traced(false)
		}
	}
	if !ix.TracesTell() || in.Index("shop", Owner{1, 2*maxTracers - 1}, 0).TracesTell() {
		t.Error("an owner's traces count for another")
	}
	if n := ix.traces.of.Len(); n != maxTracers {
		t.Errorf("%d owners are noted", n)
	}
}

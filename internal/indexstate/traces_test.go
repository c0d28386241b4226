package indexstate

import "testing"

func TestTracesTellUntilContentSpeaksAgainstIt(t *testing.T) {
	ix := New[int](1000).Index("shop", Owner{}, 0)
	note := func(tells bool, n int) {
		for range n {
			ix.Traced(1, tells)
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

// A client with other credentials can't teach that traces mislead, nor have forgotten what another address's traces have shown. What is
// noted is bounded.
func TestTracesOfOtherOwnersAreOthers(t *testing.T) {
	in := New[int](1000)
	ix, misled := in.Index("shop", Owner{}, 0), in.Index("shop", Owner{2}, 0)
	for range 9 {
		misled.Traced(1, false)
	}
	for i := range 2 * maxTracers {
		for range 9 {
			in.Index("shop", Owner{1, byte(i)}, 0).Traced(2, false)
		}
	}
	if !ix.TracesTell() || in.Index("shop", Owner{1, 2*maxTracers - 1}, 0).TracesTell() {
		t.Error("an owner's traces count for another")
	}
	if misled.TracesTell() {
		t.Error("what an owner's traces have shown is forgotten for those of another address")
	}
	if n := ix.traces.of.Len(); n > maxTracers {
		t.Errorf("%d owners are noted", n)
	}
}

package indexstate

import "testing"

func TestWhoMirrorsIsKnownUntilContentSpeaksAgainstIt(t *testing.T) {
	const now = 5
	in := New[int](1000)
	ix := in.Index("shop", Owner{}, now)
	for i, step := range []struct {
		own, read int
		want      bool
	}{
		{0, 0, false},
		{1, 0, false}, // that may be chance
		{1, 0, true},
		{0, 1, false},
		{1000, 0, true},
		{0, maxLead - 1, false}, // the application has changed
		{1, 0, true},
		{0, 1000, false},
		{maxLead, 0, false},
	} {
		for range step.own {
			ix.WroteOwn(1, now)
		}
		for range step.read {
			ix.WroteRead(1, now)
		}
		if ix.Mirrors(1, now) != step.want {
			t.Errorf("step %d: mirrors: %v", i, !step.want)
		}
	}
	for range leastLead {
		ix.WroteOwn(1, now)
	}
	if ix.Mirrors(2, now) || in.Index("other", Owner{}, now).Mirrors(1, now) {
		t.Error("another client, or one of another index, mirrors")
	}
	if !ix.Mirrors(1, now+int64(writerAge)-1) || ix.Mirrors(1, now+int64(writerAge)) {
		t.Error("it isn't known for as long as who writes")
	}
}

package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter/state"
)

// TestLocksOfTheDeadAreCleanedUp: their leases have lapsed, and nobody has asked for them since, who would have taken them away.
func TestLocksOfTheDeadAreCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Upstream: newNode(), Index: "locks"})
		short, long := acquire("dead"), acquire("alive")
		short.TTL, long.TTL = 1000, 48*time.Hour.Milliseconds()
		for id, op := range map[string]state.Op{"a": short, "b": short, "c": long} {
			if _, results, err := do(t, s, id, op); err != nil || results[0].Verdict != state.Acquired {
				t.Fatal(results, err)
			}
		}
		time.Sleep(KeepAge + time.Minute) // in the bubble
		other := New(Options{Upstream: s.o.Upstream, Index: "locks"})
		removed := 0
		for range 2 { // what it sees for the first time hasn't lapsed to it
			n, err := other.Clean(t.Context(), KeepAge)
			if err != nil {
				t.Fatal(err)
			}
			removed += n
			time.Sleep(time.Minute)
		}
		docs, err := s.Read(t.Context(), []string{"a", "b", "c"})
		if err != nil || removed != 2 || docs[0] != nil || docs[1] != nil || docs[2] == nil {
			t.Errorf("%d were removed: %+v %v", removed, docs, err)
		}
	})
}

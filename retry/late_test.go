package retry

import (
	"testing"
	"testing/synctest"
	"time"
)

// Whoever waits behind a write that is answered late may have come when a quick one led: the time until its patience ends was another then.
func TestALateLeaderThatWasBehindAQuickOneHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quick = 30 * time.Millisecond
		ls := NewLanes(1, sameScope)
		ls.Late = func(c *change) bool { return c.name == "late" }
		begun := time.Now()
		var led time.Duration
		all := []<-chan error{
			queued(t, t.Context(), ls, &change{name: "quick"}, false, func(*Batch[*change]) { time.Sleep(quick) }),
			queued(t, t.Context(), ls, &change{name: "late"}, false, func(*Batch[*change]) { time.Sleep(Patience) }),
			queued(t, t.Context(), ls, &change{name: "next"}, false, func(*Batch[*change]) { led = time.Since(begun) }),
		}
		for _, e := range all {
			if err := <-e; err != nil {
				t.Error(err)
			}
		}
		if led != quick+LatePatience {
			t.Errorf("the next began after %v, want %v", led, quick+LatePatience)
		}
	})
}

// A lane's memory is kept for another document's. It must hold no change of those that shared a write before the last one.
func TestALaneThatIsKeptHoldsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		release := make(chan struct{})
		var members []*change
		all := []<-chan error{queued(t, t.Context(), ls, &change{scope: "x"}, false, func(*Batch[*change]) { <-release })}
		for _, scope := range []string{"x", "x", "x", "y"} {
			all = append(all, queued(t, t.Context(), ls, &change{scope: scope}, false, func(b *Batch[*change]) { members = b.Members[:0] }))
		}
		close(release)
		for _, e := range all {
			<-e
		}
		for i, m := range members[:cap(members)] {
			if m != nil {
				t.Errorf("it still holds the change at place %d", i)
			}
		}
	})
}

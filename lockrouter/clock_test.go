package lockrouter

import (
	"testing"
	"time"

	"optimist/lockrouter/state"
)

// Somebody sets this machine's wall clock: a lock that is held mustn't seem free, nor a free one held.
func TestTheWallClockEndsNoLease(t *testing.T) {
	r := New(Options{Store: nowhere{}})
	r.Close()
	if late := time.Now().UnixMilli() - r.Now(); late < 0 || late > time.Minute.Milliseconds() {
		t.Errorf("at the start the documents' clock is %d ms late", late)
	}
	const seen = 5_000
	r.lapses(&state.Doc{Beat: 1, Seen: seen})
	r.epoch = r.epoch.Add(-time.Hour) // an hour goes by, and the wall clock is set back by as much
	if late := seen + time.Hour.Milliseconds() - r.Now(); late > 0 || late < -time.Minute.Milliseconds() {
		t.Errorf("the documents' clock is %d ms late", late)
	}
}

// nowhere is a store that nobody asks.
type nowhere struct{ Store }

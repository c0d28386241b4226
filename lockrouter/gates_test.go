package lockrouter

import (
	"strings"
	"testing"
	"time"
)

// A client may ask for a lock of an index with any name: ten thousand of 64 KiB would be 640 MB.
func TestGatesWithLongNamesAreNotRemembered(t *testing.T) {
	g, now := gates{known: map[string]*gate{}}, time.Now()
	for name, want := range map[string]bool{indexGate + "shop": true, indexGate + strings.Repeat("x", 60<<10): false} {
		g.missed(name)
		g.note(name, GateFree, now)
		if free, _ := g.free(name, now); free != want || len(g.known) > 1 {
			t.Errorf("%.20s: known to be free %v, want %v; %d are remembered", name, free, want, len(g.known))
		}
	}
}

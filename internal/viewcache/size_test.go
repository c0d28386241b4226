package viewcache

import (
	"testing"
	"unsafe"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/repeat"
)

func TestSizesAreWithinTheirCosts(t *testing.T) {
	// An element of the LRU has its key, its value and 8 words; a map slot is at most 8/7 of key and value, twice after growth.
	const slot = 16.0 / 7
	k, dk := float64(unsafe.Sizeof(Key{})), float64(unsafe.Sizeof(docKey{}))
	for _, c := range []struct {
		what string
		size float64
		cost int
	}{
		{"entry", float64(unsafe.Sizeof(Entry{})) + k + 72 + (k+8)*slot, entryCost},
		{"client", float64(unsafe.Sizeof(clientAccount{})) + 16 + (float64(unsafe.Sizeof(identity.Client{}))+8)*slot, clientCost},
		{"network", float64(unsafe.Sizeof(network{})) + 16 + 16*slot, networkCost},
		{"document", float64(unsafe.Sizeof(Document{})) + (dk+8)*slot, documentCost},
		{"read", float64(unsafe.Sizeof(Read{})), readCost},
		{"body", float64(unsafe.Sizeof(Body{})) + 2*16, bodyCost},
		{"a write that was acknowledged", float64(unsafe.Sizeof(repeat.Attempt{})) + 8, attemptCost},
		{"a read in a trace", float64(unsafe.Sizeof(TracedRead{})), tracedCost},
		{"what tells two revisions apart", float64(unsafe.Sizeof(choice.Since{})) + 3*8*16, sinceCost},
		{"numbers that were written from", float64(unsafe.Sizeof(doc.Numbers{})), spentCost},
		{"marker", 48 + 16*slot, markerCost},
	} {
		if c.size > float64(c.cost) {
			t.Errorf("%s: %v bytes are charged as %d", c.what, c.size, c.cost)
		}
		t.Logf("%s: %v of %d", c.what, c.size, c.cost)
	}
}

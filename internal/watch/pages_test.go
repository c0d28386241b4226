package watch

import (
	"testing"
	"time"

	"optimist/internal/client"
)

func TestALargePageCountsForItsKindOfSearchAndForAWhile(t *testing.T) {
	p, c, now := newPages(), &client.Client{}, time.Now()
	kind := p.kind(c, "shop", 1000)
	if p.large(kind, now) {
		t.Error("large before one was found")
	}
	p.add(c.Session.Network(), kind, now)
	if !p.large(p.kind(c, "shop", 1000), now.Add(largeFor-1)) {
		t.Error("not large")
	}
	if p.large(kind, now.Add(largeFor)) || p.large(p.kind(c, "shop", 10000), now) || p.large(p.kind(c, "orders", 1000), now) {
		t.Error("large after a while, or for others")
	}
}

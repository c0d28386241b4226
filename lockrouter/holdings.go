package lockrouter

import (
	"sync"
	"time"
)

// holdings count leases, for a gauge.
type holdings struct {
	mu     sync.Mutex
	leases map[holding]time.Time // when each lease ends
	full   int                   // with more leases than this, those that have ended are removed
}

// holding identifies a lease. A token alone doesn't, because it is unique within one document only.
type holding struct {
	document string
	token    int64
}

// fewHoldings is the least value of holdings.full.
const fewHoldings = 1024

func (h *holdings) add(document string, token int64, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases[holding{document, token}] = until
	if len(h.leases) > h.full { // nobody may ever ask for their number
		h.sweep(time.Now())
		h.full = max(2*len(h.leases), fewHoldings)
	}
}

func (h *holdings) remove(document string, token int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, holding{document, token})
}

func (h *holdings) count(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweep(now)
	return len(h.leases)
}

func (h *holdings) sweep(now time.Time) {
	for l, until := range h.leases {
		if until.Before(now) {
			delete(h.leases, l)
		}
	}
}

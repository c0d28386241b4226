package indexstate

import (
	"sync"
	"sync/atomic"

	"optimist/internal/identity"
	"optimist/internal/quota"
)

const (
	// maxTraced is up to how many writes are counted of which content shows what their traces say. Beyond, older ones count half.
	maxTraced = 128
	// maxTracers is for how many owners that is counted in an index, with their networks. If there are too many, the network that has most
	// loses its oldest, which is then counted from nothing.
	maxTracers = 128
)

// traces count the writes of an index whose content shows whether their trace tells their base. An application may open a form in one
// request and save it in the next one, which has another trace, and look in that request whether the document is still there. Then the
// trace holds a read that the write wasn't made from.
//
// Each owner counts for itself: what one client's writes show says nothing of another application's traces. The zero value has counted
// nothing.
type traces struct {
	misled atomic.Bool // some owner's trace has misled

	mu sync.Mutex
	of *quota.Map[identity.Network, Owner, tally]
}

// tally is how many traces tell, and how many mislead.
type tally struct{ telling, misleading int }

func (t *traces) add(from identity.Network, o Owner, tells bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = quota.NewMap[identity.Network, Owner, tally](maxTracers)
	}
	n, _ := t.of.Get(o)
	if tells {
		n.telling++
	} else {
		n.misleading++
		t.misled.Store(true)
	}
	if n.telling+n.misleading > maxTraced {
		n.telling, n.misleading = n.telling/2, n.misleading/2
	}
	t.of.Add(from, o, n)
}

// tell reports whether traces of an owner tell bases: unless most speak against it. One may be chance. Without any that misled it is one
// load.
func (t *traces) tell(o Owner) bool {
	if !t.misled.Load() {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n, _ := t.of.Get(o)
	return n.misleading <= n.telling+1
}

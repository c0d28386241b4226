package indexstate

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxRecent bounds for how many clients it is known exactly, for each index.
const maxRecent = 1024

// recentClients are clients that did something a while ago. The zero value is none. If there are too many, those that did it first are
// forgotten: see unforgotten.
type recentClients[W comparable] struct {
	until atomic.Int64 // nobody is noted after it

	mu  sync.RWMutex
	lru *simplelru.LRU[W, int64]
}

// unforgotten are recentClients of whom nobody is forgotten. If there are too many, others may be taken for some of them: see Moments.
type unforgotten[W comparable] struct {
	recentClients[W]
	others Moments[W] // until when those are noted for whom there was no room
}

func (n *unforgotten[W]) has(w W, now int64) bool {
	return n.recentClients.has(w, now) || n.others.Since(w, now+1)
}

func (n *unforgotten[W]) add(w W, now, age int64) {
	if n.has(w, now+age-age/8) {
		return
	}
	n.note(w, now+age, n.others.Note)
}

// has reports whether w is noted. Without anybody it is one load.
func (n *recentClients[W]) has(w W, now int64) bool {
	if now >= n.until.Load() {
		return false
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.lru == nil {
		return false
	}
	until, ok := n.lru.Peek(w)
	return ok && now < until
}

// note notes w until a moment. forget is called for the one that is forgotten for that.
func (n *recentClients[W]) note(w W, until int64, forget func(w W, until int64)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lru == nil {
		n.lru, _ = simplelru.NewLRU(maxRecent, forget) // errs on a size below 1 only
	}
	n.lru.Add(w, until)
	n.until.Store(max(until, n.until.Load()))
}

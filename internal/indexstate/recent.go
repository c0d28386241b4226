package indexstate

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxRecent bounds how many clients something is noted of, for each index. One that is forgotten is noted again by what it does next.
const maxRecent = 1024

// recentClients are clients that did something a while ago. Its zero value is none.
type recentClients[W comparable] struct {
	until atomic.Int64 // nobody is noted after it

	mu  sync.RWMutex
	lru *simplelru.LRU[W, int64]
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

// add notes w for an age. It costs little where that was done just now.
func (n *recentClients[W]) add(w W, now, age int64) {
	if n.has(w, now+age-age/8) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lru == nil {
		n.lru, _ = simplelru.NewLRU[W, int64](maxRecent, nil) // errs on a size below 1 only
	}
	n.lru.Add(w, now+age)
	n.until.Store(max(now+age, n.until.Load()))
}

package indexstate

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxRecent bounds for how many clients it is known exactly, for each index.
const maxRecent = 1024

// recentClients are clients that did something a while ago, and what is known of each. The zero value is none. If there are too many, those
// that did it first are forgotten.
type recentClients[W comparable, V any] struct {
	until atomic.Int64 // nobody is noted after it

	mu  sync.RWMutex
	lru *simplelru.LRU[W, *noted[V]]
}

// noted is what is known of a client until a moment.
type noted[V any] struct {
	until int64
	what  V
}

// get returns what is known of w. Without anybody it is one load.
func (n *recentClients[W, V]) get(w W, now int64) (what V, ok bool) {
	if now >= n.until.Load() {
		return what, false
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if v := n.peek(w, now); v != nil {
		return v.what, true
	}
	return what, false
}

// peek is what is noted of w; nil: nothing is. n is locked.
func (n *recentClients[W, V]) peek(w W, now int64) *noted[V] {
	if n.lru == nil {
		return nil
	}
	if v, ok := n.lru.Peek(w); ok && now < v.until {
		return v
	}
	return nil
}

// note changes what is known of w, until a moment. forget is called for the one that is forgotten for that; nil: nobody needs to know.
func (n *recentClients[W, V]) note(w W, now, until int64, change func(V) V, forget func(W, *noted[V])) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lru == nil {
		n.lru, _ = simplelru.NewLRU(maxRecent, forget) // errs on a size below 1 only
	}
	v := n.peek(w, now)
	if v == nil {
		v = &noted[V]{}
	}
	v.until, v.what = until, change(v.what)
	n.lru.Add(w, v)
	n.until.Store(max(until, n.until.Load()))
}

// change changes what is known of w, if anything is, and as long as it is known. Without anybody it is one load.
func (n *recentClients[W, V]) change(w W, now int64, change func(V) V) {
	if now >= n.until.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if v := n.peek(w, now); v != nil {
		v.what = change(v.what)
	}
}

// unforgotten are recentClients of whom nobody is forgotten. If there are too many, others may be taken for some of them: see Moments.
type unforgotten[W comparable] struct {
	recent recentClients[W, struct{}]
	others Moments[W] // until when those are noted for whom there was no room
}

func (n *unforgotten[W]) has(w W, now int64) bool {
	_, known := n.recent.get(w, now)
	return known || n.others.Since(w, now+1)
}

func (n *unforgotten[W]) add(w W, now, age int64) {
	if !n.has(w, now+age-age/8) {
		n.note(w, now, now+age)
	}
}

// note is add for those of whom the moment counts.
func (n *unforgotten[W]) note(w W, now, until int64) {
	n.recent.note(w, now, until, func(v struct{}) struct{} { return v }, func(w W, v *noted[struct{}]) { n.others.Note(w, v.until) })
}

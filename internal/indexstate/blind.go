package indexstate

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// enoughBlind is how many different documents a session overwrites blindly before it counts as a blind writer, not counting those that it
// has read or written before it wrote them. One is not enough: a session stands for many clients, and none of them is guarded then.
const enoughBlind = 8

// blindWriters are sessions that overwrite what they haven't read. The zero value is none. If there are too many, those that did it
// first are forgotten: sessions can be made up.
type blindWriters[W comparable] struct {
	until atomic.Int64 // nobody is noted after it

	mu  sync.Mutex
	lru *simplelru.LRU[W, *blindWriter]
}

// blindWriter is a session that has overwritten documents blindly.
type blindWriter struct {
	until int64
	// documents are the last ones, by hash: who writes one of them again has shown nothing new.
	documents []uint64
	more      int  // how many more of its writes were blind than weren't, from 0 to enoughBlind
	is        bool // more was enoughBlind, and hasn't been 0 since
}

// has reports whether w is a blind writer. Without anybody it is one load.
func (n *blindWriters[W]) has(w W, now int64) bool {
	if now >= n.until.Load() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.get(w, now)
	return b != nil && b.is
}

func (n *blindWriters[W]) get(w W, now int64) *blindWriter {
	if n.lru == nil {
		return nil
	}
	if b, ok := n.lru.Peek(w); ok && now < b.until {
		return b
	}
	return nil
}

// add notes for an age that w has overwritten a document blindly.
func (n *blindWriters[W]) add(w W, document uint64, now, age int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lru == nil {
		n.lru, _ = simplelru.NewLRU[W, *blindWriter](maxRecent, nil) // errs on a size below 1 only
	}
	b := n.get(w, now)
	if b == nil {
		b = &blindWriter{}
	}
	if !slices.Contains(b.documents, document) {
		if len(b.documents) == enoughBlind {
			b.documents = slices.Delete(b.documents, 0, 1)
		}
		b.documents = append(b.documents, document)
		b.more = min(b.more+1, enoughBlind)
		b.is = b.is || b.more == enoughBlind
	}
	b.until = now + age
	n.lru.Add(w, b)
	n.until.Store(max(b.until, n.until.Load()))
}

// remove notes a write of w that isn't blind. Without anybody it is one load.
func (n *blindWriters[W]) remove(w W, now int64) {
	if now >= n.until.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.get(w, now); b != nil {
		b.more = max(b.more-1, 0)
		b.is = b.is && b.more > 0
	}
}

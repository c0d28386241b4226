package engine

import (
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"optimist/lockrouter/state"
)

// remembered is what is known of lock documents, by their ids. Those that were not used for longest are forgotten where there are too many,
// or too many leases in them. Its methods are safe for concurrent use, but for put, and init, which comes first.
type remembered[V interface{ document() *state.Doc }] struct {
	mu     sync.Mutex
	docs   *lru.LRU[string, V]
	leases int // in all of docs, and entries of their queues
	most   int
}

func (r *remembered[V]) init(docs, leases int) {
	r.docs, _ = lru.NewLRU(docs, func(_ string, v V) { r.leases -= weight(v.document()) }) // it fails for sizes below 1 only
	r.most = leases
}

func weight(d *state.Doc) int {
	if d == nil {
		return 0
	}
	return len(d.Holds) + len(d.Queue) + len(d.Chain)
}

// put takes note of a document. The caller holds mu, and has taken out what was known before, if the document in it is another one now.
func (r *remembered[V]) put(id string, v V) {
	r.docs.Remove(id)
	r.docs.Add(id, v)
	for r.leases += weight(v.document()); r.leases > r.most && r.docs.Len() > 1; {
		r.docs.RemoveOldest()
	}
}

// forget gives up what is known of a document.
func (r *remembered[V]) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.docs.Remove(id)
}

// purge gives up what is known of all documents.
func (r *remembered[V]) purge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.docs.Purge()
}

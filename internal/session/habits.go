package session

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"optimist/internal/rank"
)

// habits are what the changes of clients with the same credentials have in common in an index. The documents of an index are alike, and so
// are the changes: what one document has shown helps with the next.
type habits struct {
	mu sync.Mutex
	of *simplelru.LRU[habitat, *rank.Patterns]
}

// habitat is where clients have habits.
type habitat struct {
	credentials Credentials
	index       string
}

const (
	// habitsCost is what those of one index cost, with a long name.
	habitsCost = 1664
	// maxHabitats bounds in how many indices habits are known, and habitsPart which part of the memory they take at most.
	maxHabitats = 256
	habitsPart  = 32
)

// newHabits returns those of a store with so many bytes, and how many of them they take at most.
func newHabits(memory int64) (h *habits, bytes int64) {
	n := min(max(memory/habitsPart/habitsCost, 1), maxHabitats)
	h = &habits{}
	h.of, _ = simplelru.NewLRU[habitat, *rank.Patterns](int(n), nil) // it errs on a size below 1 only
	return h, n * habitsCost
}

func habitatOf(k *key) habitat { return habitat{k.sess.credentials, k.ref.Index} }

// copyTo copies those of the document's index; none where none are known.
func (h *habits) copyTo(p *rank.Patterns, k *key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known, ok := h.of.Get(habitatOf(k)); ok {
		*p = *known
	}
}

// learn notes what a choice shows of the document's index. The strings of k are the store's own.
func (h *habits) learn(k *key, c *rank.Choice) {
	if !c.Certain && c.Trace == rank.NoTale {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at := habitatOf(k)
	known, ok := h.of.Get(at)
	if !ok {
		known = new(rank.Patterns)
		h.of.Add(at, known)
	}
	known.Learn(c)
}

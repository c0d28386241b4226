package session

import (
	"sync"

	"optimist/internal/rank"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// connections know of sessions whether their connections tell clients apart.
type connections struct {
	mu sync.Mutex
	of *simplelru.LRU[Session, rank.Connections]
}

// maxConnections bounds of how many sessions that is known.
const maxConnections = 4096

func newConnections() connections {
	of, err := simplelru.NewLRU[Session, rank.Connections](maxConnections, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return connections{of: of}
}

func (c *connections) get(s Session) rank.Connections {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.of.Get(s)
	return known
}

func (c *connections) add(s Session, e rank.Evidence) {
	if e == rank.NoEvidence {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.of.Get(s)
	known.Add(e)
	c.of.Add(s, known)
}

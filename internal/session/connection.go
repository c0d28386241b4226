package session

import (
	"sync"

	"optimist/internal/rank"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// connections know of sessions, and of their single connections, whether they tell clients apart.
type connections struct {
	mu sync.Mutex
	of *simplelru.LRU[connection, rank.Connections]
}

// connection is one of a session's; 0 is all of them.
type connection struct {
	session Session
	number  uint64
}

// maxConnections bounds of how many that is known.
const maxConnections = 16 << 10

func newConnections() connections {
	of, err := simplelru.NewLRU[connection, rank.Connections](maxConnections, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	return connections{of: of}
}

// get returns what is known of the session's connections, if this one has shown by itself that it is one client's. A client may begin to
// use a pool at any time: its connections are new ones.
func (c *connections) get(s Session, number uint64) rank.Connections {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, _ := c.of.Get(connection{s, number}); number == 0 || !one.Steady() {
		return rank.Connections{}
	}
	all, _ := c.of.Get(connection{session: s})
	return all
}

func (c *connections) add(s Session, number uint64, e rank.Evidence) {
	if e == rank.NoEvidence {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range []connection{{s, number}, {session: s}} {
		known, _ := c.of.Get(k)
		known.Add(e)
		c.of.Add(k, known)
	}
}

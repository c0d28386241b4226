package upstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/share"
)

// Set is the engine: its nodes and the connections to them. All methods are safe for concurrent use.
type Set struct {
	cfg       Config
	nodes     []*node
	rotation  atomic.Uint64 // round robin
	epoch     time.Time
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	wake      chan struct{} // wakes the checker when a node is ejected
	done      chan struct{} // closed when the checker has ended
	exchanges sync.Pool
	responses sync.Pool
}

// Nodes returns the state of all nodes in the order of Config.URLs.
func (s *Set) Nodes() []NodeState {
	states := make([]NodeState, len(s.nodes))
	for i, n := range s.nodes {
		states[i] = n.snapshot()
	}
	return states
}

// now is the time since the Set was made: monotonic, and small enough for atomics.
func (s *Set) now() time.Duration { return time.Since(s.epoch) }

// pick returns a node that isn't among tried; nil: all were tried. Nodes that are alive take turns, and those with a free connection for
// the client come first. If none is alive, pick returns the one whose last failure is longest ago.
func (s *Set) pick(c share.Client, tried uint64) *node {
	if len(s.nodes) == 1 && tried == 0 {
		return s.nodes[0]
	}
	var full, dead *node
	start := int(s.rotation.Add(1) % uint64(len(s.nodes))) //nolint:gosec // there are 64 nodes at most
	for i := range s.nodes {
		n := s.nodes[(start+i)%len(s.nodes)]
		switch {
		case tried&n.bit != 0:
		case !n.alive.Load():
			if dead == nil || n.failedAt.Load() < dead.failedAt.Load() {
				dead = n
			}
		case n.hasRoom(c):
			return n
		case full == nil:
			full = n
		}
	}
	if full != nil {
		return full
	}
	return dead
}

// pickFirst is pick, except that the first try goes to the node of that URL if it is alive.
func (s *Set) pickFirst(url string, c share.Client, tried uint64) *node {
	if url != "" && tried == 0 {
		if n := s.nodeByURL(url); n != nil && n.alive.Load() {
			return n
		}
	}
	return s.pick(c, tried)
}

// anyAlive reports whether any node is alive.
func (s *Set) anyAlive() bool {
	return slices.ContainsFunc(s.nodes, func(n *node) bool { return n.alive.Load() })
}

// nodeByURL returns the node of that URL, nil if there is none.
func (s *Set) nodeByURL(url string) *node {
	for _, n := range s.nodes {
		if n.url == url {
			return n
		}
	}
	return nil
}

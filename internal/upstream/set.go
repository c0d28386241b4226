package upstream

import (
	"context"
	"fmt"
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

// New checks cfg, reads its files and starts the health checks. It doesn't connect: nodes may come up later.
func New(cfg Config) (*Set, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Set{cfg: cfg, epoch: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	tlsConfig, err := cfg.TLS.load()
	if err != nil {
		return nil, err
	}
	for i, u := range cfg.URLs {
		n, err := newNode(s, i, u, tlsConfig)
		if err != nil {
			return nil, fmt.Errorf("upstream %d: %w", i+1, err)
		}
		if s.nodeByURL(n.url) != nil {
			return nil, fmt.Errorf("upstream %d: %s is there twice", i+1, n.url)
		}
		s.nodes = append(s.nodes, n)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	go s.watch()
	return s, nil
}

// Close ends the health checks and closes idle connections. Exchanges under way go on; their connections are closed when
// they finish. New ones fail with ErrClosed.
func (s *Set) Close() {
	s.cancel()
	<-s.done
	for _, n := range s.nodes {
		n.close()
	}
}

// Do sends r and collects the answer's body without its transfer coding. If nothing was sent it tries another node. If the
// answer was lost and r is Repeatable it sends r once more. Any other failure is returned at once, as an *Error. When ctx ends
// the connection is closed, so that the engine can stop working. Release the Response after use.
func (s *Set) Do(ctx context.Context, r *Request) (*Response, error) {
	x, _ := s.exchanges.Get().(*Exchange)
	if x == nil {
		x = newExchange(s)
	}
	x.bind(ctx)
	x.limit(r.Timeout)
	resp, err := x.Do(r)
	stopped := x.unlimit(r.Timeout)
	if x.unbind() && stopped { // unbind in any case: a context that lives on would keep the Exchange
		s.exchanges.Put(x)
	}
	return resp, err
}

// NodeState is what is known of one node.
type NodeState struct {
	URL   string
	Alive bool
	// Open and Idle count connections.
	Open, Idle int
	// Err is why the node was ejected, nil while it is alive.
	Err error
	// Refusal is the status, 401 or 403, with which it refused Config.Authorization when it was last asked for "GET /"; else 0.
	Refusal int
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

// pick returns a node that isn't among tried. Nodes that are alive take turns; those with a free connection for the client come
// first. If none
// is alive, it is the one whose failure is longest ago. It returns nil when all were tried.
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

// nodeByURL returns the node of that URL, nil if there is none.
func (s *Set) nodeByURL(url string) *node {
	for _, n := range s.nodes {
		if n.url == url {
			return n
		}
	}
	return nil
}

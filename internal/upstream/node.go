package upstream

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// node is one of the engine's nodes: its address, its connections, and whether it is alive.
type node struct {
	set    *Set
	bit    uint64             // in sets of tried nodes
	url    string             // as configured: its name in errors and hooks
	addr   string             // host:port
	host   []byte             // for the Host field
	prefix []byte             // base path without a slash at its end
	tls    func() *tls.Config // nil: the node speaks HTTP
	name   string             // that its certificate must have, unless the configuration says another

	alive    atomic.Bool
	failedAt atomic.Int64 // Set.now of the last failure
	refusal  atomic.Int32 // the status with which it refused Config.Authorization at last, 0 if it didn't

	health struct {
		sync.Mutex
		fails int           // since the last success
		next  time.Duration // Set.now of the next check
		err   error
	}
	pool pool
}

// newNode parses one URL of the configuration.
func newNode(s *Set, i int, raw string, tlsConfig func() *tls.Config) (*node, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("the URL can't be read: want http://host:port or https://host:port")
	}
	port := ""
	switch u.Scheme {
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return nil, errors.New("the URL must begin with http:// or https://")
	}
	switch {
	case u.Hostname() == "":
		return nil, errors.New("the URL has no host")
	case u.User != nil:
		return nil, errors.New("the URL has credentials, which belong in files")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return nil, errors.New("the URL has a query or fragment")
	}
	if p := u.Port(); p != "" {
		port = p
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	n := &node{
		set: s, bit: 1 << i, url: u.String(), addr: net.JoinHostPort(u.Hostname(), port), host: []byte(u.Host),
		prefix: []byte(u.EscapedPath()),
	}
	if u.Scheme == "https" {
		n.tls, n.name = tlsConfig, u.Hostname()
	}
	n.alive.Store(true)
	return n, nil
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

func (n *node) snapshot() NodeState {
	st := NodeState{URL: n.url, Alive: n.alive.Load(), Refusal: int(n.refusal.Load())}
	n.pool.Lock()
	st.Open, st.Idle = n.pool.open, len(n.pool.idle)
	n.pool.Unlock()
	n.health.Lock()
	st.Err = n.health.err
	n.health.Unlock()
	return st
}

// recordFailure records that a node couldn't be reached, or, with checked, that it failed its check. The node is ejected, and
// checked again after a wait that doubles with each check that fails. Requests that fail in that time don't make the wait
// longer.
func (n *node) recordFailure(err error, checked bool) {
	s := n.set
	now := s.now()
	n.failedAt.Store(int64(now))
	n.health.Lock()
	n.health.err = err
	first := n.alive.Swap(false)
	if first || checked {
		wait := s.cfg.EjectMin << min(n.health.fails, 20)
		if wait > s.cfg.EjectMax || wait <= 0 {
			wait = s.cfg.EjectMax
		}
		n.health.fails++
		n.health.next = now + wait
	}
	n.health.Unlock()
	if first || checked {
		n.moveReads()
	}
	if !first {
		return
	}
	s.cfg.Hooks.Ejected.Call(n.url, err)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// moveReads has the reads that wait for an answer of this node go to another one, if one is alive. The node's machine may be gone without a
// word, and then the system waits for a quarter of an hour before it gives the connection up. A write stays: it may have been applied, and
// a node that only stood still for a while will answer.
func (n *node) moveReads() {
	if !n.set.anyAlive() {
		return
	}
	n.pool.Lock()
	defer n.pool.Unlock()
	for _, u := range n.pool.users {
		if c := u.conn; c != nil && c.movable.CompareAndSwap(true, false) {
			_ = c.raw.Close()
		}
	}
}

// recordSuccess records that a node could be reached.
func (n *node) recordSuccess() {
	n.health.Lock()
	n.health.fails, n.health.err = 0, nil
	back := !n.alive.Swap(true)
	n.health.Unlock()
	if back {
		n.set.cfg.Hooks.Returned.Call(n.url)
	}
}

// recordCredentials records whether the node accepts our own credentials, by the status of its answer to a "GET /". Clients have others, so
// that the node stays alive for them.
func (n *node) recordCredentials(status int) {
	if n.set.cfg.Authorization == "" || status >= 500 {
		return
	}
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		status = 0
	}
	before := n.refusal.Swap(int32(status))
	if (before == 0) != (status == 0) {
		n.set.cfg.Hooks.Credentials.Call(n.url, status)
	}
}

package upstream

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// node is one of the engine's nodes: its address, its connections, and whether it is alive.
type node struct {
	set    *Set
	bit    uint64 // in sets of tried nodes
	url    string // as configured: its name in errors and hooks
	addr   string // host:port
	host   []byte // for the Host field
	prefix []byte // base path without a slash at its end
	tls    *tls.Config

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
func newNode(s *Set, i int, raw string, tlsConfig *tls.Config) (*node, error) {
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
		n.tls = tlsConfig.Clone()
		if n.tls.ServerName == "" {
			n.tls.ServerName = u.Hostname()
		}
	}
	n.alive.Store(true)
	return n, nil
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

package zookeeper

import (
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// hosts gives the servers in turn, by the names that the operator wrote: they are looked up when they are needed, and may be away before.
type hosts struct {
	servers []string
	at      int // the server that is next
	failed  int // how many have been tried since one was there
}

// Init takes the list.
func (h *hosts) Init(servers []string) error {
	h.servers = servers
	return nil
}

// Len is how many servers there are.
func (h *hosts) Len() int { return len(h.servers) }

// Next gives a server, and reports whether all were tried in vain: then the client rests for a second.
func (h *hosts) Next() (server string, all bool) {
	server = h.servers[h.at]
	h.at = (h.at + 1) % len(h.servers)
	all = h.failed > 0 && h.failed%len(h.servers) == 0
	h.failed++
	return server, all
}

// Connected says that the last one was there.
func (h *hosts) Connected() { h.failed = 0 }

// errNonsense reports an answer that isn't ZooKeeper's.
var errNonsense = errors.New("what answers isn't ZooKeeper")

// guard makes connections that end with the first answer that the client would stumble over, or take too much memory for.
type guard struct {
	patience time.Duration // for the first answer
	largest  uint32        // bytes of an answer
	granted  *atomic.Int64
	line     *line
}

// line is the connection that there is, if it isn't cut.
type line struct {
	mu    sync.Mutex
	now   net.Conn
	over  bool
	heard time.Time // when an answer came last
}

// cut ends the connection without a word, and all that follow.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.now != nil {
		_ = l.now.Close() // nothing is said that could be lost
	}
}

func (l *line) hear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
}

// silence is how long no answer has come.
func (l *line) silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heard)
}

// take notes the connection; it reports false if there must be none any more.
func (l *line) take(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = c
	return !l.over
}

func (g guard) dial(network, addr string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, addr, timeout)
	if err != nil {
		return nil, err
	}
	if !g.line.take(c) {
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
	return &guarded{Conn: c, guard: g}, nil
}

// guarded is one connection.
type guarded struct {
	net.Conn
	guard
	begun   bool // the client has written
	greeted bool
	head    []byte // of the answer that comes, as far as it counts
	left    uint32 // bytes that are still to come of it
}

// The sizes of answers in bytes: the first one has versions, the session's time-out, id and password; the others a header of 16.
const (
	leastGreeting, mostGreeting = 36, 128
	leastAnswer                 = 16
	sizeField, timeoutField     = 4, 12 // where they end
	seenField                   = 16    // in the client's own first message: the last zxid that it has seen
)

// Write writes the client's first message without the last zxid that the client has seen, if no server has answered for twice a session's
// time. A server whose own zxids are lower doesn't answer a client that has seen a higher one: it may be behind the others. If ZooKeeper
// has lost its data, it stays behind for ever. By then the leases that were promised are over. If ZooKeeper has lost the session, it says
// so, and the client begins a new one.
func (g *guarded) Write(p []byte) (int, error) {
	first := !g.begun
	g.begun = true
	session := time.Duration(g.granted.Load()) * time.Millisecond
	if !first || len(p) < seenField || g.line.silence() < 2*session {
		return g.Conn.Write(p)
	}
	p = slices.Clone(p)
	clear(p[seenField-8 : seenField])
	return g.Conn.Write(p)
}

// SetReadDeadline shortens the wait for the first answer: the client would wait for many sessions' time.
func (g *guarded) SetReadDeadline(t time.Time) error {
	if first := time.Now().Add(g.patience); !g.greeted && !t.IsZero() && t.After(first) {
		t = first
	}
	return g.Conn.SetReadDeadline(t)
}

// Read reads no more than one answer, or its size.
func (g *guarded) Read(p []byte) (int, error) {
	if g.left > 0 {
		p = p[:min(len(p), int(g.left))]
	} else {
		p = p[:min(len(p), sizeField-len(g.head))]
	}
	n, err := g.Conn.Read(p)
	if bad := g.see(p[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (g *guarded) see(p []byte) error {
	if g.left == 0 {
		g.head = append(g.head, p...)
		if len(g.head) < sizeField {
			return nil
		}
		g.left = binary.BigEndian.Uint32(g.head)
		least, most := uint32(leastAnswer), g.largest
		if !g.greeted {
			least, most = leastGreeting, mostGreeting
		} else {
			g.head = g.head[:0]
		}
		if g.left < least || g.left > most {
			return errNonsense
		}
		return nil
	}
	g.left -= uint32(len(p)) //nolint:gosec // Read reads no more than left
	if g.greeted {
		g.line.hear()
		return nil
	}
	g.head = append(g.head, p...)
	if g.left > 0 {
		return nil
	}
	ms := binary.BigEndian.Uint32(g.head[timeoutField-4 : timeoutField])
	id := binary.BigEndian.Uint64(g.head[timeoutField : timeoutField+8])
	g.greeted, g.head = true, nil
	const longest = 24 * 60 * 60 * 1000
	if id != 0 && (ms < 10 || ms > longest) { // without an id the session has expired
		return errNonsense
	}
	if id != 0 {
		g.granted.Store(int64(ms))
		g.line.hear()
	}
	return nil
}

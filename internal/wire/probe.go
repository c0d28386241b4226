package wire

import (
	"net"
	"syscall"
)

// PeerState is what a Probe finds out about a connection without reading from it.
type PeerState uint8

// The states of a peer.
const (
	// PeerQuiet is a connection that is open, with nothing to read.
	PeerQuiet PeerState = iota
	// PeerSent is one with bytes to read.
	PeerSent
	// PeerGone is one that the peer has closed or reset, or whose socket can't be asked. On Linux there may be bytes to read
	// before the end.
	PeerGone
)

// Probe asks a connection's socket whether the peer is still there, without blocking, consuming bytes or allocating. With TLS
// it asks the socket below, on which bytes may be records without content. Other goroutines may read and write at the same
// time, but only one goroutine at a time may use a Probe.
type Probe struct {
	raw   syscall.RawConn
	state PeerState
	look  func(fd uintptr)
}

// NewProbe returns a Probe of c, or of the connection that c wraps (its method NetConn). Without a socket to ask it returns
// nil, whose State is always PeerQuiet.
func NewProbe(c net.Conn) *Probe {
	if w, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = w.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	p := &Probe{raw: raw}
	p.look = func(fd uintptr) { p.state = peek(fd) }
	return p
}

// Acknowledged returns how many bytes the peer's system has acknowledged. ok is false where the socket can't tell. The rest of the
// written bytes waits in our own system's buffer, which may hold megabytes.
func (p *Probe) Acknowledged() (n int64, ok bool) {
	if p == nil {
		return 0, false
	}
	err := p.raw.Control(func(fd uintptr) { n, ok = acknowledged(fd) })
	return n, ok && err == nil
}

// State looks at the connection once.
func (p *Probe) State() PeerState {
	if p == nil {
		return PeerQuiet
	}
	p.state = PeerGone
	if err := p.raw.Control(p.look); err != nil {
		return PeerGone // closed on our side
	}
	return p.state
}

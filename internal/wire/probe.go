package wire

import (
	"net"
	"syscall"
)

// PeerState is what a Probe finds on a connection without reading from it.
type PeerState uint8

// The states of a peer.
const (
	// PeerQuiet is a connection that is open, with nothing to read.
	PeerQuiet PeerState = iota
	// PeerSent is one with bytes to read.
	PeerSent
	// PeerGone is one that the peer has closed or reset, on Linux also if there are bytes to read before that, or that can't be
	// asked.
	PeerGone
)

// Probe asks a connection's socket whether the peer is still there, without blocking, consuming bytes or allocating. Of a
// TLS connection it asks the socket below: its bytes may be records without content. A Probe may be used while other
// goroutines read and write, but not by two goroutines at once.
type Probe struct {
	raw   syscall.RawConn
	state PeerState
	look  func(fd uintptr)
}

// NewProbe returns a Probe of c, or of the connection that it wraps (a method NetConn). Where there is no socket to ask it
// returns nil, whose State is always PeerQuiet.
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

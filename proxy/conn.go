package proxy

import (
	"context"
	"net"
	"net/netip"
	"time"

	"optimist/internal/budget"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// conn is one client's connection. One goroutine serves it. A second one reads a request's body while the body is streamed. The
// Server's watcher looks at the connection's state every tick.
type conn struct {
	server  *Server
	nc      net.Conn    // the socket, below TLS
	tls     *secureConn // nil without TLS
	client  netip.AddrPort
	subject []byte      // of the client's certificate; nil without one
	index   int         // in Server.conns
	probe   *wire.Probe // used by the watcher while a request is served, else by readLate
	state   state
	r       wire.Reader
	up      *upstream.Exchange // made with the first request that is forwarded
	ctx     context.Context
	cancel  context.CancelCauseFunc
	x       Exchange
	taken   budget.Account // the bytes that the request under way holds

	waitPhase   phase // the phase of the next read that has to wait
	lastRequest bool  // the connection ends after this request
}

// resumeReads lets reads wait again after the watcher cut one, or Interrupt did. It returns false if the Server was closed
// meanwhile.
func (c *conn) resumeReads() bool {
	_ = c.nc.SetReadDeadline(time.Time{})
	c.state.cut.CompareAndSwap(uint32(cutIdle), uint32(notCut))
	c.r.Recover()
	return cause(c.state.cut.Load()) != cutStopped
}

// Read implements io.Reader for the wire.Reader.
func (c *conn) Read(p []byte) (int, error) {
	c.state.enter(c.waitPhase)
	n, err := c.read(p)
	for err != nil && timedOut(err) && c.undoLateCut() {
		n, err = c.read(p)
	}
	if err != nil {
		if timedOut(err) {
			err = c.cutError()
		}
		return 0, err
	}
	switch c.waitPhase {
	case idle:
		c.waitPhase = inHead
		c.state.enter(inHead)
	case inBody:
		c.state.enter(busy)
	}
	return n, nil
}

// read reads once, through TLS or from the socket.
func (c *conn) read(p []byte) (int, error) {
	if c.tls != nil {
		return c.tls.Read(p)
	}
	return c.readSocket(p)
}

func (c *conn) readSocket(p []byte) (int, error) {
	n, err := c.nc.Read(p)
	c.state.received.Add(int64(n))
	return n, err
}

// write sends bytes to the client, through TLS or to the socket.
func (c *conn) write(p []byte) error {
	if c.tls != nil {
		_, err := c.tls.Write(p)
		return err
	}
	return c.writeSocket(p)
}

// undoLateCut undoes the cut of an idle wait that had already ended when the watcher acted: a request had begun to arrive, and
// this read waits for more of it. It returns false if the read was cut for any other reason.
func (c *conn) undoLateCut() bool {
	switch why := cause(c.state.cut.Load()); {
	case why == cutIdle && c.waitPhase != idle:
	case why == notCut && !c.x.in.interrupted.Load(): // the watcher set its deadline after the cut was undone
	default:
		return false
	}
	if !c.resumeReads() {
		return false
	}
	if c.x.in.interrupted.Load() { // since then: the interruption must stay
		_ = c.nc.SetReadDeadline(past())
	}
	return true
}

// cutError is the reason for a deadline in the past.
func (c *conn) cutError() error {
	if why := cause(c.state.cut.Load()); why != notCut {
		return why.err()
	}
	return errInterrupted
}

// writeSocket sends bytes to the client. The watcher can't see how much the client has taken of a write that is under way. It cuts a
// write that may be too slow; then net.Conn says how much went out, and a client that took enough gets the rest.
func (c *conn) writeSocket(p []byte) error {
	c.state.writing.Store(1)
	defer c.state.writing.Store(0)
	for {
		n, err := c.nc.Write(p)
		switch {
		case err == nil:
			c.state.sent.Add(int64(n))
			return nil
		case !timedOut(err):
			return err
		case !c.resumeWrite(int64(n)):
			return c.cutError()
		}
		p = p[n:]
	}
}

// resumeWrite undoes the cut of a write if the client took n bytes of it and that was enough. The n bytes aren't added to
// state.sent: they belong to the time before the cut, which the watcher has finished counting.
func (c *conn) resumeWrite(n int64) bool {
	if n < c.state.missing.Load() || !c.state.cut.CompareAndSwap(uint32(cutWrite), uint32(notCut)) {
		return false
	}
	_ = c.nc.SetWriteDeadline(time.Time{})
	if cause(c.state.cut.Load()) == cutStopped { // since then: stop's deadline must stay
		_ = c.nc.SetWriteDeadline(time.Now().Add(lastAnswerTime))
	}
	return true
}

package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/obs"
	"optimist/internal/wire"
)

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, probe: wire.NewProbe(nc)}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		c.client = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	c.ctx, c.cancel = context.WithCancelCause(budget.With(wire.WithPeer(s.ctx, nc), &c.taken))
	c.taken.Open(s.budget, func() budget.Owner { return s.owner(&c.x) })
	c.r.Room = &c.taken
	c.r.Reset(c)
	c.x.c = c
	c.x.head.Identity = s.identity
	c.x.onInterim = c.x.sendInterim
	c.state.enter(idle)
	if s.tls != nil {
		c.tls = newSecureConn(c, s.tls)
	}
	return c
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	defer c.server.wg.Done()
	defer c.close()
	defer c.recoverPanic()
	for ok := c.handshake(); ok; {
		ok = c.serveOne()
	}
	c.finish()
}

// recoverPanic keeps a bug that one request meets from ending the requests of all clients.
func (c *conn) recoverPanic() {
	if p := recover(); p != nil {
		c.server.log.Error("panic while serving a request", obs.KeyError, p, slog.String("stack", string(debug.Stack())))
	}
}

// close closes the connection, and frees what it holds.
func (c *conn) close() {
	if c.up != nil {
		c.up.Close()
	}
	c.cancel(ErrLeft)
	_ = c.nc.Close()
	c.taken.End() // of a request that panicked
	c.server.remove(c)
}

// serveOne waits for one request and serves it. It reports whether another may follow.
func (c *conn) serveOne() bool {
	x := &c.x
	x.reset()
	err := c.holdBuffer()
	if err == nil {
		err = x.head.ReadRequest(&c.r, c.server.limits.MaxHeader)
	}
	if errors.Is(err, errIdle) {
		err = c.readLate()
	}
	c.state.enter(busy)
	if err != nil {
		c.refuse(err)
		return false
	}
	x.start()
	if err := x.holdHead(); err != nil {
		x.Fail(err)
	} else {
		x.serve()
	}
	return x.finish()
}

// holdBuffer takes the memory for a large buffer in which the beginning of the next request has come with the last one.
func (c *conn) holdBuffer() error {
	if c.r.Size() <= maxKeptBuffer {
		return nil
	}
	return c.taken.Take(int64(c.r.Size()))
}

// readLate reads a request that arrived while the watcher ended the idle wait for it. The client can't know that, and may not
// be able to repeat the request. It returns errIdle if no byte has arrived.
func (c *conn) readLate() error {
	if !c.resumeReads() {
		return ErrStopped
	}
	if c.probe.State() == wire.PeerQuiet {
		return errIdle
	}
	c.lastRequest = true
	return c.x.head.ReadRequest(&c.r, c.server.limits.MaxHeader)
}

// refuse answers a request that couldn't be read, and ends the connection. A client that has left gets no answer.
func (c *conn) refuse(err error) {
	if errors.Is(err, errIdle) || isConnError(err) || errors.Is(err, ErrStopped) {
		return
	}
	c.lastRequest = true
	c.x.Fail(err)
}

// finish ends the connection in a way that lets the client read its last answer.
func (c *conn) finish() {
	x := &c.x
	if c.tls != nil && !x.broken {
		c.tls.end()
	}
	if x.hasAnswer && !x.broken && (!x.in.complete() || c.r.Buffered() > 0) {
		x.forget()
		c.r = wire.Reader{}
		c.taken.End()
		c.linger()
	}
}

// linger ends the sending side, and reads and drops what the client still sends, for a bounded time. Closing at once would reset
// the connection, and the client would lose the answer that was just written.
func (c *conn) linger() {
	l := &c.server.limits
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || l.Linger < 0 {
		return
	}
	buf := make([]byte, 4<<10)
	end := time.Now().Add(l.Linger)
	for left := l.MaxLinger; left > 0; {
		silence := time.Now().Add(l.Linger / 6)
		if silence.After(end) {
			silence = end
		}
		_ = c.nc.SetReadDeadline(silence)
		if cause(c.state.cut.Load()) == cutStopped {
			return
		}
		n, err := c.nc.Read(buf)
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

// serve has the interceptor answer the request, or forwards it.
func (x *Exchange) serve() {
	switch {
	case x.c.server.intercept == nil || !x.c.server.intercept(x):
		x.forwardUnchanged()
	case !x.hasAnswer && !x.broken:
		x.Fail(errNoAnswer)
	}
}

// forwardUnchanged forwards the request as it is. Answers to sniffing clients may be rewritten.
func (x *Exchange) forwardUnchanged() {
	var err error
	if x.op.Kind == api.NodesHTTP && x.c.server.sniffing == SniffRewrite {
		err = x.forwardSniffing()
	} else {
		err = x.Forward(ForwardOptions{})
	}
	if err != nil {
		x.Fail(err)
	}
}

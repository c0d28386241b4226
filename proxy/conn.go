package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"syscall"
	"time"

	"optimist/internal/budget"
	"optimist/internal/obs"
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
	probe   *wire.Probe // of the watcher while a request is served, of readLate while none is
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

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, probe: wire.NewProbe(nc)}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		c.client = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	c.ctx, c.cancel = context.WithCancelCause(budget.With(wire.WithPeer(s.ctx, nc), &c.taken))
	c.taken.Open(s.budget, func() budget.Owner { return s.owner(&c.x) })
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

// close frees what the connection holds.
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
	err := x.head.ReadRequest(&c.r, c.server.limits.MaxHeader)
	if errors.Is(err, errIdle) {
		err = c.readLate()
	}
	c.state.enter(busy)
	if err != nil {
		c.refuse(err)
		return false
	}
	x.start()
	x.serve()
	return x.finish()
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

// resumeReads lets reads wait again after the watcher cut one, or Interrupt did. It returns false if the Server was closed
// meanwhile.
func (c *conn) resumeReads() bool {
	_ = c.nc.SetReadDeadline(time.Time{})
	c.state.cut.CompareAndSwap(uint32(cutIdle), uint32(notCut))
	c.r.Recover()
	return cause(c.state.cut.Load()) != cutStopped
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
		c.linger()
	}
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

// linger ends the sending side, and reads and drops what the client still sends, for a bounded time. Closing at once would reset
// the connection, and the client would lose the answer that was just written.
func (c *conn) linger() {
	l := &c.server.limits
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || l.Linger < 0 {
		return
	}
	buf := make([]byte, 16<<10)
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

// isConnError reports whether err says that the connection to a client broke.
func isConnError(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, &op)
}

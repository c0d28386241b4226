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

	"optimist/internal/obs"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// conn is one client's connection. It is served by one goroutine; a second one reads a request's body while that is
// streamed, and the watcher looks at its state.
type conn struct {
	server *Server
	nc     net.Conn
	client netip.AddrPort
	index  int         // in Server.conns
	probe  *wire.Probe // the watcher's; its own goroutine's during an idle wait that was cut
	state  state
	r      wire.Reader
	up     *upstream.Exchange // made with the first request that is forwarded
	ctx    context.Context
	cancel context.CancelCauseFunc
	x      Exchange

	wait phase // what waiting for the client means just now
	last bool  // no request is read after this one
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, probe: wire.NewProbe(nc)}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		c.client = netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	c.ctx, c.cancel = context.WithCancelCause(wire.WithPeer(s.ctx, nc))
	c.r.Reset(c)
	c.x.c = c
	c.x.tell = c.x.interim
	c.state.enter(idle)
	return c
}

// serve answers requests until the connection ends.
func (c *conn) serve() {
	defer c.server.wg.Done()
	defer c.close()
	defer c.survive()
	for c.next() {
	}
	c.part()
}

// survive keeps one request that met a bug from ending everybody's.
func (c *conn) survive() {
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
	c.server.forget(c)
}

// next serves one request, waiting for all of it. It reports whether another may follow.
func (c *conn) next() bool {
	x := &c.x
	x.begin()
	err := x.head.ReadRequest(&c.r, c.server.limits.MaxHeader)
	if errors.Is(err, errIdle) {
		err = c.lastCall()
	}
	c.state.enter(busy)
	if err != nil {
		c.refuse(err)
		return false
	}
	x.open()
	x.answer()
	return x.end()
}

// lastCall takes a request that arrived while the connection was being given up for idle: its client can't know, and may
// not be able to repeat it.
func (c *conn) lastCall() error {
	if !c.resume() {
		return ErrStopped
	}
	if c.probe.State() == wire.PeerQuiet {
		return errIdle
	}
	c.last = true
	return c.x.head.ReadRequest(&c.r, c.server.limits.MaxHeader)
}

// resume lets reads wait again after a cut or an interruption. It returns false if the server was closed meanwhile.
func (c *conn) resume() bool {
	_ = c.nc.SetReadDeadline(time.Time{})
	c.state.cut.CompareAndSwap(uint32(cutIdle), uint32(notCut))
	c.r.Recover()
	return cause(c.state.cut.Load()) != cutStopped
}

// refuse answers a request that couldn't be read, if there is anybody to answer, and ends the connection.
func (c *conn) refuse(err error) {
	if errors.Is(err, errIdle) || isConnError(err) || errors.Is(err, ErrStopped) {
		return
	}
	c.last = true
	c.x.Fail(err)
}

// part ends the connection so that the client gets to read what it was sent.
func (c *conn) part() {
	x := &c.x
	if x.answered && !x.broken && (!x.in.complete() || c.r.Buffered() > 0) {
		c.linger()
	}
}

// Read reads from the client, for the wire.Reader.
func (c *conn) Read(p []byte) (int, error) {
	c.state.enter(c.wait)
	n, err := c.nc.Read(p)
	for err != nil && timedOut(err) && c.cutLate() {
		n, err = c.nc.Read(p)
	}
	if err != nil {
		if timedOut(err) {
			err = c.whyCut()
		}
		return 0, err
	}
	switch c.wait {
	case idle:
		c.wait = inHead
		c.state.enter(inHead)
	case inBody:
		c.state.got.Add(int64(n))
		c.state.enter(busy)
	}
	return n, nil
}

// cutLate undoes the cut of an idle wait that had already ended when the watcher acted: a request had come, whose bytes are being
// waited for now. It returns false if the wait was cut for any other reason.
func (c *conn) cutLate() bool {
	switch why := cause(c.state.cut.Load()); {
	case why == cutIdle && c.wait != idle:
	case why == notCut && !c.x.in.interrupted.Load(): // the watcher's deadline came behind the end of its cut
	default:
		return false
	}
	if !c.resume() {
		return false
	}
	if c.x.in.interrupted.Load() { // meanwhile: it must not be undone, too
		_ = c.nc.SetReadDeadline(past())
	}
	return true
}

// whyCut is what a deadline in the past stands for.
func (c *conn) whyCut() error {
	if why := cause(c.state.cut.Load()); why != notCut {
		return why.err()
	}
	return errInterrupted
}

// write sends bytes to the client. The watcher cuts a write in which too little seems to move: how much the client took of
// it is known only here, once it has been cut.
func (c *conn) write(p []byte) error {
	c.state.writing.Store(1)
	defer c.state.writing.Store(0)
	for {
		n, err := c.nc.Write(p)
		switch {
		case err == nil:
			c.state.given.Add(int64(n))
			return nil
		case !timedOut(err):
			return err
		case !c.resumeWrite(int64(n)):
			return c.whyCut()
		}
		p = p[n:]
	}
}

// resumeWrite undoes the cut of a write of which the client took n bytes, if those were enough. They count for the time before
// the cut, and therefore not as given.
func (c *conn) resumeWrite(n int64) bool {
	if n < c.state.missing.Load() || !c.state.cut.CompareAndSwap(uint32(cutWrite), uint32(notCut)) {
		return false
	}
	_ = c.nc.SetWriteDeadline(time.Time{})
	if cause(c.state.cut.Load()) == cutStopped { // meanwhile: the time for the last word must not be undone
		_ = c.nc.SetWriteDeadline(time.Now().Add(lastWord))
	}
	return true
}

// linger ends the sending side and reads what the client still sends, for a bounded time: closing at once would reset the
// connection under the answer that was just written.
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

// isConnError reports whether a connection to a client broke.
func isConnError(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.As(err, &op)
}

package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"

	"optimist/internal/obs"
	"optimist/internal/secure"
)

// secureConn is TLS over a client's connection. Time limits are counted on the socket below it: a slow client makes progress with each
// byte, not with each record, and a write that was cut and goes on does so unseen by TLS, which could never write again after an error.
type secureConn struct{ *tls.Conn }

func newSecureConn(c *conn, config *tls.Config) *secureConn {
	return &secureConn{tls.Server(&socket{Conn: c.nc, c: c}, config)}
}

// socket is a connection's socket as TLS sees it.
type socket struct {
	net.Conn
	c *conn
}

func (s *socket) Read(p []byte) (int, error) { return s.c.readSocket(p) }

func (s *socket) Write(p []byte) (int, error) {
	if err := s.c.writeSocket(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end tells the client that nothing follows: so the client can tell a whole answer from an answer that somebody has cut.
func (s *secureConn) end() { _ = s.CloseWrite() }

// handshake agrees with the client on TLS, within Limits.HeaderTimeout. It reports whether requests may follow.
func (c *conn) handshake() bool {
	if c.tls == nil {
		return true
	}
	c.state.enter(inHead)
	err := c.tls.Handshake()
	c.state.enter(busy)
	if err != nil {
		c.refuseHandshake(err)
		return false
	}
	state := c.tls.ConnectionState()
	c.subject = secure.Subject(&state)
	return true
}

// refuseHandshake ends a connection whose client speaks no TLS that the door takes. If the client speaks HTTP, it gets an answer with the
// reason.
func (c *conn) refuseHandshake(err error) {
	if secure.PlainHTTP(err) != nil {
		c.tls = nil
		c.lastRequest = true
		c.x.Fail(&Failure{Status: 400, Type: TypeHandshake, Reason: secure.ErrPlain.Error()})
		return
	}
	c.x.broken = true
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return // the client left, as checks of a load balancer do
	}
	c.server.metrics.Failed(TypeHandshake)
	c.server.log.Debug("TLS handshake failed", obs.KeyClient, c.client.String(), obs.KeyError, err.Error())
}

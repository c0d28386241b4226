package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/internal/certtest"
	"optimist/internal/secure"
)

// newSecureProxy is newProxy with TLS; clients is whether it wants certificates of the same authority.
func newSecureProxy(t *testing.T, s *stub, clients bool, change func(o *Options)) (addr string, a *certtest.Authority, server *Server) {
	t.Helper()
	a = certtest.New(t)
	cert, key := a.Issue("by-address")
	files := secure.Files{Cert: cert, Key: key}
	if clients {
		files.ClientCA = a.File
	}
	conf, err := secure.NewTLS(secure.Options{Files: files})
	if err != nil {
		t.Fatal(err)
	}
	addr, server = newProxy(t, s, func(o *Options) {
		o.TLS = conf
		if change != nil {
			change(o)
		}
	})
	return addr, a, server
}

// dialTLS connects with TLS. The socket below is what a test slows down or cuts.
func dialTLS(t *testing.T, addr string, a *certtest.Authority, certificates ...tls.Certificate) (c *client, socket net.Conn) {
	t.Helper()
	socket, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	over := tls.Client(socket, &tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1", Certificates: certificates, NextProtos: []string{"h2", "http/1.1"}})
	_ = over.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = over.Close() })
	return &client{t: t, Conn: over, r: bufio.NewReader(over)}, socket
}

func TestRequestsAndAnswersPassThroughTLS(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<16)
	s := newStub(t, func(c *stubConn, r seen) {
		if strings.HasPrefix(r.head, "GET /large") {
			c.ok(large)
			return
		}
		c.ok(strconv.Itoa(len(r.body)))
	})
	addr, a, _ := newSecureProxy(t, s, false, nil)
	c, _ := dialTLS(t, addr, a)
	for range 2 {
		c.send(lines("GET /large HTTP/1.1", "Host: x"))
		if got := c.answer("GET"); got.body != large {
			t.Fatalf("%d bytes of a large answer", len(got.body))
		}
		c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: x", "Content-Length: "+strconv.Itoa(len(large))), large)
		if got := c.answer("PUT"); got.body != strconv.Itoa(len(large)) {
			t.Fatalf("of a large body the engine has %s", got.body)
		}
	}
	c.send(lines("GET /a HTTP/1.1", "Host: x") + lines("GET /b HTTP/1.1", "Host: x", "Connection: close")) // two in one record
	c.answer("GET")
	c.answer("GET")
	c.closed() // which with TLS includes the goodbye: without it this is an unexpected end
	if got := c.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("a client that offers HTTP/2 as well got %q", got)
	}
}

func TestHTTPOnAPortWithTLSIsAnsweredInHTTP(t *testing.T) {
	s := newStub(t, nil)
	addr, _, _ := newSecureProxy(t, s, false, nil)
	for _, line := range []string{"GET / HTTP/1.1", "PUT /a/_doc/1 HTTP/1.1", "DELETE /a HTTP/1.1"} {
		c := dial(t, addr)
		c.send(lines(line, "Host: x"))
		wantError(t, c.answer("GET"), 400, TypeHandshake)
		c.closed()
	}
	if n := len(s.requests()); n > 0 {
		t.Errorf("the engine got %d requests", n)
	}
}

func TestOnlyClientsWithACertificateComeInAndTheirSubjectIsKnown(t *testing.T) {
	s := newStub(t, nil)
	subjects := make(chan []byte, 8)
	addr, a, _ := newSecureProxy(t, s, true, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			subjects <- slices.Clone(x.Subject())
			return false
		}
	})
	subject := func(name string) []byte {
		t.Helper()
		c, _ := dialTLS(t, addr, a, a.Pair(name))
		c.send(lines("GET / HTTP/1.1", "Host: x"))
		c.answer("GET")
		return <-subjects
	}
	billing, search := subject("billing"), subject("search")
	if len(billing) == 0 || bytes.Equal(billing, search) || !bytes.Equal(billing, subject("billing")) {
		t.Errorf("the subjects are %q and %q", billing, search)
	}
	others := certtest.New(t)
	for name, certificates := range map[string][]tls.Certificate{"none": nil, "another authority's": {others.Pair("billing")}} {
		c, _ := dialTLS(t, addr, a, certificates...)
		_, err := io.WriteString(c, lines("GET / HTTP/1.1", "Host: x"))
		_, rerr := c.r.ReadByte()
		if err == nil && rerr == nil {
			t.Errorf("with %s certificate a client gets an answer", name)
		}
	}
	if n := len(s.requests()); n != 3 {
		t.Errorf("the engine got %d requests", n)
	}
}

// A client that begins no handshake, or doesn't finish it, must not keep its place.
func TestHandshakeHasTheTimeOfAHeader(t *testing.T) {
	s := newStub(t, nil)
	for name, first := range map[string]string{"nothing": "", "the beginning of a hello": "\x16\x03\x01\x02\x00\x01"} {
		addr, _, server := newSecureProxy(t, s, false, func(o *Options) { o.Limits.HeaderTimeout = 50 * time.Millisecond })
		c := dial(t, addr)
		c.send(first)
		_, _ = io.ReadAll(c.r)
		eventually(t, "the end of a client that sends "+name, func() bool { open, _ := server.Connections(); return open == 0 })
	}
}

// half holds back the second half of the next write.
type half struct {
	net.Conn
	hold bool
	rest []byte
}

func (h *half) Write(p []byte) (int, error) {
	if !h.hold {
		return h.Conn.Write(p)
	}
	h.hold, h.rest = false, slices.Clone(p[len(p)/2:])
	_, err := h.Conn.Write(p[:len(p)/2])
	return len(p), err
}

// The time limits count bytes on the socket. With TLS a body comes in records of up to 16 KiB, which take a slow client longer than
// Limits.BodyTimeout.
func TestRecordThatIsNotWholeYetCountsAsProgress(t *testing.T) {
	conns := make(chan *conn, 1)
	addr, a, _ := newSecureProxy(t, newStub(t, nil), false, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			conns <- x.c
			return false
		}
	})
	socket, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	h := &half{Conn: socket}
	over := tls.Client(h, &tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1", DynamicRecordSizingDisabled: true})
	_ = over.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = over.Close() })
	c := &client{t: t, Conn: over, r: bufio.NewReader(over)}
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: x", "Content-Length: 10000"))
	state := &wait(t, conns, "the request").state
	before := state.received.Load()
	h.hold = true
	c.send(strings.Repeat("x", 10000))
	eventually(t, "the first half of the record", func() bool { return state.received.Load() >= before+5000 })
	if _, err := socket.Write(h.rest); err != nil {
		t.Fatal(err)
	}
	if got := c.answer("PUT"); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// The watcher cuts a write, and lets it go on if the client took enough. TLS can't write any more once a write has failed.
func TestWriteThatIsCutAndGoesOnStaysWholeWithTLS(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<19)
	conns := make(chan *conn, 1)
	addr, a, _ := newSecureProxy(t, newStub(t, func(c *stubConn, _ seen) { c.ok(large) }), false, func(o *Options) {
		o.Limits.Tick = time.Minute // the test is the watcher
		o.Intercept = func(x *Exchange) bool {
			conns <- x.c
			return false
		}
	})
	c, _ := dialTLS(t, addr, a)
	c.send(lines("GET / HTTP/1.1", "Host: x"))
	served := wait(t, conns, "the request")
	cuts := 0
	sent := func() int64 { return served.state.sent.Load() }
	for last, same := int64(-1), 0; same < 50; { // until the answer waits for the client
		eventually(t, "a write", func() bool { return served.state.writing.Load() == 1 })
		if now := sent(); now != last {
			last, same = now, 0
		}
		same++
		served.cutWrite(0)
		cuts++
		eventually(t, "the cut's undoing", func() bool { return cause(served.state.cut.Load()) == notCut })
	}
	if got := c.answer("GET"); got.body != large {
		t.Errorf("after %d cuts the answer has %d bytes", cuts, len(got.body))
	}
}

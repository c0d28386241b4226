package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimist/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen; nothing waits that long unless it fails.
const patience = time.Minute

// seen is one request as the stub read it off its socket.
type seen struct {
	head string // request line and fields with their line endings
	body string // as on the wire: chunked bodies with their framing
}

// stub is an engine made of a listener and a function; it records the bytes of what it reads.
type stub struct {
	t  *testing.T
	ln net.Listener

	mu       sync.Mutex
	seen     []seen
	conns    map[net.Conn]bool
	accepted int
	wg       sync.WaitGroup
}

// stubConn is one connection to the stub.
type stubConn struct {
	net.Conn
	s *stub
	r *bufio.Reader
}

// say writes an answer, CRLF after each line of the head, an empty line, and the body.
func (c *stubConn) say(body string, lines ...string) {
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n"+body)
}

// ok answers 200 with a JSON body.
func (c *stubConn) ok(body string) {
	c.say(body, "HTTP/1.1 200 OK", "content-type: application/json", "content-length: "+strconv.Itoa(len(body)))
}

// newStub starts an engine that answers every request whose head and body it has read with handle; nil answers {"ok":true}.
func newStub(t *testing.T, handle func(c *stubConn, r seen)) *stub {
	t.Helper()
	if handle == nil {
		handle = func(c *stubConn, _ seen) { c.ok(`{"ok":true}`) }
	}
	return newRawStub(t, func(s *stub, c *stubConn) {
		for {
			r, err := c.readRequest()
			if err != nil {
				return
			}
			handle(c, r)
		}
	})
}

// newRawStub starts an engine whose connections are served by serve alone.
func newRawStub(t *testing.T, serve func(s *stub, c *stubConn)) *stub {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{t: t, ln: ln, conns: map[net.Conn]bool{}}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.accepted++
			s.mu.Unlock()
			s.wg.Go(func() {
				defer c.Close()
				serve(s, &stubConn{Conn: c, s: s, r: bufio.NewReader(c)})
			})
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *stub) stop() {
	_ = s.ln.Close()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *stub) url() string { return "http://" + s.ln.Addr().String() }

// requests returns what the stub has read so far, without the proxy's health checks.
func (s *stub) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.seen...)
}

// readRequest reads one request and records it.
func (c *stubConn) readRequest() (seen, error) {
	head, err := readHead(c.r)
	if err != nil {
		return seen{}, err
	}
	r := seen{head: head}
	switch {
	case strings.Contains(strings.ToLower(head), "\r\ntransfer-encoding: chunked\r\n"):
		r.body, err = readChunked(c.r)
	default:
		if n, ok := contentLength(head); ok {
			b := make([]byte, n)
			_, err = io.ReadFull(c.r, b)
			r.body = string(b)
		}
	}
	if err != nil {
		return seen{}, err
	}
	c.s.record(r)
	return r, nil
}

func (s *stub) record(r seen) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
}

// readHead reads up to and with the empty line.
func readHead(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), err
		}
		if line == "\r\n" && b.Len() > 2 {
			return b.String(), nil
		}
	}
}

// readChunked reads a chunked body and returns it with its framing.
func readChunked(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.Split(line, ";")[0]), 16, 64)
		if err != nil {
			return b.String(), err
		}
		if _, err := io.CopyN(&b, r, n+2); err != nil {
			return b.String(), err
		}
		if n == 0 {
			return b.String(), nil
		}
	}
}

func contentLength(head string) (int, bool) {
	for line := range strings.SplitSeq(head, "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "content-length") {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			return n, err == nil
		}
	}
	return 0, false
}

// dechunk takes the framing off a chunked body.
func dechunk(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	for s != "" {
		line, rest, ok := strings.Cut(s, "\r\n")
		n, err := strconv.ParseInt(line, 16, 64)
		if !ok || err != nil || int64(len(rest)) < n+2 {
			t.Fatalf("not a chunked body: %q", s)
		}
		b.WriteString(rest[:n])
		s = rest[n+2:]
	}
	return b.String()
}

// newProxy starts a Server in front of the stub. change may alter the options.
func newProxy(t *testing.T, s *stub, change func(o *Options)) (addr string, server *Server) {
	t.Helper()
	set, err := upstream.New(upstream.Config{URLs: []string{s.url()}, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	o := Options{Upstream: set, Limits: Limits{Tick: 10 * time.Millisecond}}
	if change != nil {
		change(&o)
	}
	return serve(t, o)
}

// serve starts a Server and stops it at the end of the test.
func serve(t *testing.T, o Options) (addr string, server *Server) {
	t.Helper()
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String(), server
}

// client is one raw connection to the proxy.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

// answer is one answer as it was on the wire.
type answer struct {
	status int
	head   string
	body   string // with its framing, if it is chunked
}

// field returns the value of the first field of that name.
func (a answer) field(name string) string {
	for line := range strings.SplitSeq(a.head, "\r\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { _ = c.Close() })
	return &client{t: t, Conn: c, r: bufio.NewReader(c)}
}

// send writes raw bytes.
func (c *client) send(parts ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c, strings.Join(parts, "")); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// lines joins lines of a head and ends it.
func lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n\r\n" }

// answer reads one answer to a request with that method.
func (c *client) answer(method string) answer {
	c.t.Helper()
	a, err := c.tryAnswer(method)
	if err != nil {
		c.t.Fatalf("answer: %v (so far %q %q)", err, a.head, a.body)
	}
	return a
}

func (c *client) tryAnswer(method string) (answer, error) {
	head, err := readHead(c.r)
	a := answer{head: head}
	if err != nil {
		return a, err
	}
	if _, err := fmt.Sscanf(head, "HTTP/1.1 %d", &a.status); err != nil {
		return a, fmt.Errorf("status line: %w", err)
	}
	n, sized := contentLength(head)
	switch {
	case method == "HEAD" || a.status < 200 || a.status == 204 || a.status == 304:
	case strings.Contains(strings.ToLower(head), "\r\ntransfer-encoding: chunked\r\n"):
		a.body, err = readChunked(c.r)
	case sized:
		b := make([]byte, n)
		_, err = io.ReadFull(c.r, b)
		a.body = string(b)
	default:
		var b []byte
		b, err = io.ReadAll(c.r)
		a.body = string(b)
	}
	return a, err
}

// closed fails the test unless the proxy ends the connection without another byte, and without a reset.
func (c *client) closed() {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if err != nil || len(b) > 0 {
		c.t.Fatalf("want an orderly end, got %q, %v", b, err)
	}
}

// gone fails the test unless the proxy ends the connection, in whatever way.
func (c *client) gone() {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		c.t.Fatalf("still connected, got %q", b)
	}
	if len(b) > 0 {
		c.t.Fatalf("unexpected bytes %q", b)
	}
}

// wantError fails the test unless a is an error of the engine's shape with that status and type.
func wantError(t *testing.T, a answer, status int, typ string) {
	t.Helper()
	if a.status != status || a.field("content-type") != "application/json" ||
		!strings.HasPrefix(a.body, `{"error":{"root_cause":[{"type":"`+typ+`","reason":"`) ||
		!strings.HasSuffix(a.body, `"status":`+strconv.Itoa(status)+"}") {
		t.Fatalf("want %d %s, got\n%s%s", status, typ, a.head, a.body)
	}
}

// wait fails the test unless ch is closed, or sends, in time.
func wait[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// connections returns how many connections the stub has accepted.
func (s *stub) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// eventually waits until holds does: for what the other side of a socket notices at its own time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// endSending ends the client's sending side.
func (c *client) endSending() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

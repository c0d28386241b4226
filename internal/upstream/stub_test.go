package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The client that the benchmarks compare with leaves its cleaners running for a while.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

// stub is a node: a real listener whose connections are served by a function, on net/http's parser rather than ours.
type stub struct {
	t        *testing.T
	l        net.Listener
	url      string
	accepted atomic.Int64 // connections
	requests atomic.Int64 // heads that were read

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// peer is the stub's side of one connection.
type peer struct {
	net.Conn
	s  *stub
	br *bufio.Reader
	n  int // number of the connection, from 1
}

func newStub(t *testing.T, serve func(p *peer)) *stub { return newStubAt(t, "127.0.0.1:0", nil, serve) }

func newStubAt(t *testing.T, addr string, tlsConfig *tls.Config, serve func(p *peer)) *stub {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &stub{t: t, l: l, url: "http://" + l.Addr().String(), conns: map[net.Conn]bool{}}
	if tlsConfig != nil {
		s.url = "https://" + l.Addr().String()
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			p := &peer{Conn: c, s: s, n: int(s.accepted.Add(1))}
			if tlsConfig != nil {
				p.Conn = tls.Server(c, tlsConfig)
			}
			p.br = bufio.NewReader(p.Conn)
			s.wg.Add(1)
			go func() {
				defer s.wg.Done()
				defer c.Close()
				serve(p)
			}()
		}
	}()
	t.Cleanup(s.close)
	return s
}

// close ends the stub and everything on it.
func (s *stub) close() {
	s.l.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// head reads the head of the next request, or returns nil at the end of the connection.
func (p *peer) head() *http.Request {
	req, err := http.ReadRequest(p.br)
	if err != nil {
		return nil
	}
	p.s.requests.Add(1)
	return req
}

// next reads the next request with its body, or returns nil at the end of the connection.
func (p *peer) next() (*http.Request, string) {
	req := p.head()
	if req == nil {
		return nil, ""
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, ""
	}
	return req, string(body)
}

// answer writes an answer with a length.
func (p *peer) answer(status int, body string) {
	fmt.Fprintf(p, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// echo answers every request with its method, target and body.
func echo(p *peer) {
	for {
		req, body := p.next()
		if req == nil {
			return
		}
		p.answer(200, req.Method+" "+req.RequestURI+" "+body)
	}
}

// newSet makes a Set without health checks, unless change turns them on.
func newSet(t *testing.T, change func(c *Config), urls ...string) *Set {
	t.Helper()
	cfg := Config{URLs: urls, HealthInterval: -1}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func put(body string) *Request {
	return &Request{Method: "PUT", Target: []byte("/i/_doc/1"), Body: []byte(body)}
}

func get() *Request { return &Request{Method: "GET", Target: []byte("/i/_doc/1"), Repeatable: true} }

// do sends r and returns the answer's body.
func do(t *testing.T, s *Set, r *Request) string {
	t.Helper()
	resp, err := s.Do(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Release()
	return fmt.Sprintf("%d %s", resp.Status, resp.Payload)
}

// fails sends r and returns its error, which must be of the class.
func fails(t *testing.T, s *Set, r *Request, class Class) *Error {
	t.Helper()
	resp, err := s.Do(context.Background(), r)
	return failed(t, resp, err, class)
}

func failed(t *testing.T, resp *Response, err error, class Class) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, %v, want an *Error", resp, err)
	}
	if e.Class != class || !errors.Is(err, class) {
		t.Fatalf("got %v, want %v", err, class)
	}
	return e
}

// refusing returns the URL of a port on which nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return "http://" + l.Addr().String()
}

// until calls ready until it holds. It is for what another goroutine, or the kernel, does soon, and nothing tells of.
func until(t *testing.T, ready func() bool) {
	t.Helper()
	for range 10_000_000 {
		if ready() {
			return
		}
	}
	t.Fatal("it never became so")
}

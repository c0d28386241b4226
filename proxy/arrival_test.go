package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestNoRequestIsMissedHoweverItArrives has requests arrive in all the ways that a wait could overlook: in one piece, in pieces,
// several in one, and at the very moment of an answer.
func TestNoRequestIsMissedHoweverItArrives(t *testing.T) {
	s := newStub(t, func(c *stubConn, r seen) { c.ok(strings.Fields(r.head)[1] + r.body) })
	addr, _ := newProxy(t, s, func(o *Options) { o.Limits.Tick = time.Minute }) // nobody looks after what was overlooked
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			c := dial(t, addr)
			for i := range 300 {
				get, put := fmt.Sprintf("/%d/%d", n, i), fmt.Sprintf("/put/%d/%d", n, i)
				one, two := lines("GET "+get+" HTTP/1.1", "Host: h"), lines("PUT "+put+" HTTP/1.1", "Host: h", "Content-Length: 3")
				want := []string{get, put + "abc"}
				switch i % 5 {
				case 0:
					c.send(one, two, "abc")
				case 1:
					c.send(one)
					c.send(two)
					c.send("abc")
				case 2:
					c.send(one, two, "a")
					c.send("bc")
				case 3:
					c.send(one[:20])
					c.send(one[20:], two[:30])
					c.send(two[30:], "abc")
				case 4:
					c.send(one, two, "abc", one, two, "abc", one[:7])
					c.send(one[7:])
					want = []string{get, put + "abc", get, put + "abc", get}
				}
				for _, w := range want {
					a, err := c.tryAnswer("GET")
					if err != nil || a.body != w {
						t.Errorf("want %q, got %q, %v", w, a.body, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestClientThatEndsItsSideWithItsRequestIsAnsweredAndLetGo(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) { o.Limits.Tick = 100 * time.Millisecond })
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	_ = c.endSending()
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	c.closed() // long before the time for idle connections is up
}

// plainListener gives connections that have no socket, as those of a TLS listener.
type plainListener struct{ net.Listener }

func (l plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return plainConn{c}, nil
}

type plainConn struct{ net.Conn }

func TestConnectionsWithoutASocketAreServedAlike(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20000)
	s := newStub(t, func(c *stubConn, r seen) { c.ok(r.body) })
	server, err := New(Options{Upstream: newSet(t, s.url()), Limits: Limits{Tick: 5 * time.Millisecond, BodyTimeout: 100 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(plainListener{ln}) }()
	c := dial(t, ln.Addr().String())
	for _, body := range []string{"", "abc", large} {
		c.send(lines("PUT / HTTP/1.1", "Host: h", fmt.Sprintf("Content-Length: %d", len(body))), body)
		if a := c.answer("PUT"); a.status != 200 || a.body != body {
			t.Fatalf("%d and %d bytes", a.status, len(a.body))
		}
	}
	slow := dial(t, ln.Addr().String())
	slow.send(lines("PUT / HTTP/1.1", "Host: h", "Content-Length: 2"), "x")
	wantError(t, slow.answer("PUT"), 408, TypeSlow)
	drained := make(chan error, 1)
	go func() { drained <- server.Drain(t.Context()) }()
	if b, err := io.ReadAll(c.r); err != nil || len(b) > 0 {
		t.Errorf("%q %v", b, err)
	}
	_ = slow.Close()
	if err := wait(t, drained, "Drain"); err != nil {
		t.Error(err)
	}
	server.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

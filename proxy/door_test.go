package proxy

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"optimist/internal/wire"
)

// TestPipelinedRequestBehindAFullBufferIsNotOverlooked has a head come in two pieces, and then requests that fill the buffer
// to its last byte, with one more behind them in the socket.
func TestPipelinedRequestBehindAFullBufferIsNotOverlooked(t *testing.T) {
	s := newStub(t, func(c *stubConn, r seen) { c.ok(strings.Fields(r.head)[1]) })
	addr, server := newProxy(t, s, func(o *Options) { o.Limits.Tick = time.Minute }) // nobody looks after what was overlooked
	c := dial(t, addr)
	const buffer = 4 << 10
	first, second := lines("GET /1 HTTP/1.1", "Host: h"), lines("GET /2 HTTP/1.1", "Host: h", "X: ")
	second = strings.Replace(second, "X: ", "X: "+strings.Repeat("x", buffer-len(first)-len(second)), 1)
	third := lines("GET /3 HTTP/1.1", "Host: h")
	c.send(first[:10])
	eventually(t, "the first piece to be read", func() bool { _, active := server.Connections(); return active == 1 })
	c.send(first[10:], second, third)
	for _, want := range []string{"/1", "/2", "/3"} {
		if a := c.answer("GET"); a.body != want {
			t.Fatalf("want %s, got %+v", want, a)
		}
	}
}

// TestInterruptAfterTheLastByteDoesntEndTheConnection is about an engine that answers at the moment at which the last bytes of the
// body are taken from the client: the interruption comes too late, and nothing is left for it to interrupt.
func TestInterruptAfterTheLastByteDoesntEndTheConnection(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			if !x.in.body.Done() {
				if err := x.Forward(ForwardOptions{OnHead: func(*wire.Head, []byte) []wire.Field {
					for !x.in.finished.Load() {
						runtime.Gosched()
					}
					x.in.Interrupt()
					return nil
				}}); err != nil {
					x.Fail(err)
				}
				return true
			}
			return false
		}
	})
	c := dial(t, addr)
	c.send(lines("PUT /a HTTP/1.1", "Host: h", "Content-Length: 20000"), strings.Repeat("x", 20000))
	if a := c.answer("PUT"); a.status != 200 || a.field("connection") != "" {
		t.Fatalf("%+v", a)
	}
	c.send(lines("GET /b HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
}

// TestScrollIsNotRepeated: the engine moves on with every request of a scroll. A second try after a lost answer would get the
// next page, and the client would never know of the one that it missed.
func TestScrollIsNotRepeated(t *testing.T) {
	for _, target := range []string{"/_search/scroll", "/_search/scroll/abc==", "/_search/scroll?scroll=1m", "/_search/%73croll", "/%5Fsearch/scr%6fll/abc"} {
		s := newStub(t, func(c *stubConn, _ seen) { _ = c.Close() })
		addr, _ := newProxy(t, s, nil)
		c := dial(t, addr)
		c.send(lines("GET "+target+" HTTP/1.1", "Host: h"))
		wantError(t, c.answer("GET"), 502, TypeLost)
		if n := len(s.requests()); n != 1 {
			t.Errorf("%s was sent %d times", target, n)
		}
	}
}

// TestBytesAfterAnAnswerAreNobodysAnswer has an engine send another answer, which nobody asked for, a moment after each one.
func TestBytesAfterAnAnswerAreNobodysAnswer(t *testing.T) {
	got, sent := make(chan struct{}), make(chan struct{})
	s := newStub(t, func(c *stubConn, r seen) {
		c.ok(strings.Fields(r.head)[1])
		if strings.Contains(r.head, "/first") {
			<-got
			c.ok("/poison")
			close(sent)
		}
	})
	addr, _ := newProxy(t, s, nil)
	one, two := dial(t, addr), dial(t, addr)
	one.send(lines("GET /first HTTP/1.1", "Host: h"))
	if a := one.answer("GET"); a.body != "/first" {
		t.Fatalf("%+v", a)
	}
	close(got)
	wait(t, sent, "the second answer")
	two.send(lines("GET /second HTTP/1.1", "Host: h"))
	if a := two.answer("GET"); a.body != "/second" {
		t.Fatalf("another request's answer: %+v", a)
	}
}

// TestInterimAnswerSaysNothingOfTheConnection: the engine's connection isn't the client's.
func TestInterimAnswerSaysNothingOfTheConnection(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say("", "HTTP/1.1 103 Early Hints", "Connection: close")
		c.ok("{}")
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 103 || a.field("connection") != "" {
		t.Fatalf("%+v", a)
	}
	if a := c.answer("GET"); a.status != 200 || a.field("connection") != "" {
		t.Fatalf("%+v", a)
	}
}

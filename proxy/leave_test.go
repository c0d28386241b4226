package proxy

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/internal/upstream"
)

// silent is an engine that reads requests and says nothing; it reports when its connection ends.
func silent(t *testing.T) (s *stub, got chan struct{}, ended chan struct{}) {
	got, ended = make(chan struct{}, 1), make(chan struct{}, 1)
	s = newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := c.readRequest(); err != nil {
			return
		}
		got <- struct{}{}
		_, _ = io.Copy(io.Discard, c.r)
		ended <- struct{}{}
	})
	return s, got, ended
}

func TestClientThatLeavesCancelsItsRequest(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"close":      func(c *client) { _ = c.Close() },
		"reset":      func(c *client) { _ = c.Conn.(interface{ SetLinger(int) error }).SetLinger(0); _ = c.Close() },
		"half close": func(c *client) { _ = c.endSending() },
	} {
		t.Run(name, func(t *testing.T) {
			s, got, ended := silent(t)
			addr, server := newProxy(t, s, nil)
			c := dial(t, addr)
			c.send(lines("POST /a/_forcemerge HTTP/1.1", "Host: h"))
			wait(t, got, "the request")
			leave(c)
			wait(t, ended, "the end of the request upstream")
			eventually(t, "the end of the connection", func() bool { open, _ := server.Connections(); return open == 0 })
		})
	}
}

func TestClientThatWaitsLongIsServed(t *testing.T) {
	release := make(chan struct{})
	s := newStub(t, func(c *stubConn, _ seen) {
		<-release
		c.ok("{}")
	})
	// No limit is for the time that the engine takes: all of them pass meanwhile.
	addr, _ := newProxy(t, s, quick(Limits{IdleTimeout: 20 * time.Millisecond, BodyTimeout: 20 * time.Millisecond,
		HeaderTimeout: 20 * time.Millisecond, WriteTimeout: 20 * time.Millisecond}))
	c := dial(t, addr)
	c.send(lines("POST /a/_forcemerge HTTP/1.1", "Host: h"), lines("GET /next HTTP/1.1", "Host: h")) // pipelined bytes are no goodbye
	timer := time.AfterFunc(200*time.Millisecond, func() { close(release) })
	defer timer.Stop()
	if a := c.answer("POST"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
}

func TestClientThatLeavesWhileSendingEndsTheRequest(t *testing.T) {
	ended := make(chan string, 1)
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := readHead(c.r); err != nil {
			return
		}
		b, _ := io.ReadAll(c.r)
		ended <- string(b)
	})
	addr, server := newProxy(t, s, nil)
	for name, tt := range map[string]struct{ head, sent string }{
		"length":  {"Content-Length: 1000000", strings.Repeat("x", 50000)},
		"chunked": {"Transfer-Encoding: chunked", "3\r\nabc\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			c.send(lines("POST /_bulk HTTP/1.1", "Host: h", tt.head), tt.sent)
			eventually(t, "the engine's connection", func() bool { return s.connections() > 0 })
			_ = c.Close()
			if got := wait(t, ended, "the end upstream"); strings.HasSuffix(got, "0\r\n\r\n") || len(got) >= 1000000 {
				t.Fatalf("the engine was given a part as the whole: %d bytes", len(got))
			}
		})
	}
	eventually(t, "the end of the connections", func() bool { open, _ := server.Connections(); return open == 0 })
}

func TestInterceptorLearnsThatTheClientLeft(t *testing.T) {
	s := newStub(t, nil)
	cause := make(chan error, 1)
	entered := make(chan struct{})
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			close(entered)
			<-x.Context().Done()
			cause <- context.Cause(x.Context())
			x.Fail(context.Cause(x.Context()))
			return true
		}
	})
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	wait(t, entered, "the interceptor")
	_ = c.Close()
	if err := wait(t, cause, "the context's end"); !errors.Is(err, ErrLeft) {
		t.Fatal(err)
	}
}

func TestStopTellsClientsWhatBecameOfTheirRequests(t *testing.T) {
	s, got, _ := silent(t)
	addr, server := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
	wait(t, got, "the request")
	server.Close()
	wantError(t, c.answer("PUT"), 504, TypeUnknown)
	c.gone()
}

// TestARequestThatTakesAStopForALeaveIsAnswered: whoever sees only that a context has ended gives up as for a client that has left.
func TestARequestThatTakesAStopForALeaveIsAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		status int
		kind   string
	}{
		"cancelled":               {context.Canceled, 503, TypeStopped},
		"cancelled after sending": {&upstream.Error{Class: upstream.Cancelled, Sent: true, Err: context.Canceled}, 504, TypeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			entered := make(chan struct{})
			addr, server := newProxy(t, newStub(t, nil), func(o *Options) {
				o.Intercept = func(x *Exchange) bool {
					close(entered)
					<-x.Context().Done()
					x.Fail(tt.err)
					return true
				}
			})
			c := dial(t, addr)
			c.send(lines("DELETE /a/_doc/1 HTTP/1.1", "Host: h"))
			wait(t, entered, "the interceptor")
			server.Close()
			wantError(t, c.answer("DELETE"), tt.status, tt.kind)
		})
	}
}

// TestClientThatLeavesBehindUnreadBytesIsNoticed is about a client that gave up an upload which the engine doesn't take: what it
// has sent lies unread before its goodbye.
func TestClientThatLeavesBehindUnreadBytesIsNoticed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems tell only of the bytes")
	}
	ended, release := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		defer close(ended)
		<-release // reads nothing at first: the sockets fill
		_, _ = io.Copy(io.Discard, c.r)
	})
	t.Cleanup(letGo)
	addr, server := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("POST /_bulk HTTP/1.1", "Host: h", "Content-Length: 1000000000"))
	_ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	piece := make([]byte, 1<<20)
	for {
		if _, err := c.Write(piece); err != nil {
			break
		}
	}
	_ = c.Conn.(interface{ SetLinger(int) error }).SetLinger(0) // or its kernel would keep the goodbye behind what isn't taken
	_ = c.Close()
	eventually(t, "the end of the connection", func() bool { open, _ := server.Connections(); return open == 0 })
	letGo()
	wait(t, ended, "the end upstream")
}

package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"optimist/internal/wire"
)

// quick are limits that a test can wait for.
func quick(l Limits) func(o *Options) {
	return func(o *Options) {
		l.Tick = 5 * time.Millisecond
		o.Limits = l
	}
}

func TestHeadThatComesDropByDropIsRefused(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, quick(Limits{HeaderTimeout: 60 * time.Millisecond}))
	for name, first := range map[string]bool{"first request": true, "later request": false} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			if !first {
				c.send(lines("GET / HTTP/1.1", "Host: h"))
				c.answer("GET")
			}
			stop := make(chan struct{})
			ended := make(chan struct{})
			go func() { // each drop alone would be in time
				defer close(ended)
				tick := time.NewTicker(10 * time.Millisecond)
				defer tick.Stop()
				for _, b := range []byte("GET / HTTP/1.1\r\nHost: h\r\nX-Slow: " + strings.Repeat("x", 10000)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					select {
					case <-stop:
						return
					case <-tick.C:
					}
				}
			}()
			a := c.answer("GET") // long before the last drop
			close(stop)
			<-ended
			wantError(t, a, 408, TypeSlow)
		})
	}
}

func TestClientThatSendsNothingIsDisconnected(t *testing.T) {
	s := newStub(t, nil)
	addr, server := newProxy(t, s, quick(Limits{IdleTimeout: 50 * time.Millisecond}))
	never := dial(t, addr)
	never.closed()
	var once *client
	eventually(t, "an answer", func() bool { // on a busy machine a client may come too late
		once = dial(t, addr)
		_, _ = io.WriteString(once, lines("GET / HTTP/1.1", "Host: h"))
		_, err := once.tryAnswer("GET")
		return err == nil
	})
	once.closed()
	eventually(t, "the connections' end", func() bool { open, active := server.Connections(); return open == 0 && active == 0 })
}

func TestBodyWithoutProgressIsRefused(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, quick(Limits{BodyTimeout: 50 * time.Millisecond}))
	for name, tt := range map[string]struct{ length, sent string }{
		"small":    {"Content-Length: 100", "x"},
		"streamed": {"Content-Length: 1000000", strings.Repeat("x", 40000)},
		"chunked":  {"Transfer-Encoding: chunked", "3\r\nabc\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", tt.length), tt.sent)
			wantError(t, c.answer("PUT"), 408, TypeSlow)
			_ = c.endSending()
			c.closed()
		})
	}
	if got := s.requests(); len(got) > 0 {
		t.Errorf("the engine took a part for a whole: %+q", got)
	}
}

func TestTricklingBodyIsRefusedAndSteadyOneIsNot(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, quick(Limits{BodyTimeout: 300 * time.Millisecond, MinRate: 2000})) // 600 bytes a window
	trickle := func(c *client, n, size int) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range n {
			if _, err := c.Write(make([]byte, size)); err != nil {
				return
			}
			<-tick.C
		}
	}
	c := dial(t, addr)
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 100000"))
	done := make(chan struct{})
	go func() { defer close(done); trickle(c, 100, 2) }()
	wantError(t, c.answer("PUT"), 408, TypeSlow)
	_ = c.Close()
	<-done

	c = dial(t, addr)
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 40000"))
	trickle(c, 40, 1000)
	if a := c.answer("PUT"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
}

func TestClientThatTakesNothingIsDisconnected(t *testing.T) {
	ended := make(chan error, 1)
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := readHead(c.r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
		piece := make([]byte, 1<<20)
		for {
			if _, err := c.Write(piece); err != nil {
				ended <- err
				return
			}
		}
	})
	addr, server := newProxy(t, s, quick(Limits{WriteTimeout: 60 * time.Millisecond}))
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	wait(t, ended, "the engine to be told that nobody reads")
	eventually(t, "the connection's end", func() bool { open, _ := server.Connections(); return open == 0 })
}

func TestSlowReaderThatReadsIsServed(t *testing.T) {
	const size = 96 << 20 // more than the socket buffers hold, by enough to take longer than the timeout
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := readHead(c.r); err != nil {
			return
		}
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
		piece := make([]byte, 1<<20)
		for range size >> 20 {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, c.r)
	})
	limits := quick(Limits{WriteTimeout: 300 * time.Millisecond})
	whole := make([]byte, size)
	for name, intercept := range map[string]func(x *Exchange) bool{
		"streamed":           nil,
		"answered in one go": func(x *Exchange) bool { _ = x.Answer(200, nil, whole); return true },
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := newProxy(t, s, func(o *Options) { limits(o); o.Intercept = intercept })
			c := dial(t, addr)
			c.send(lines("GET / HTTP/1.1", "Host: h"))
			if _, err := readHead(c.r); err != nil {
				t.Fatal(err)
			}
			readSlowly(t, c, size)
		})
	}
}

// readSlowly reads size bytes, the first half of them with pauses.
func readSlowly(t *testing.T, c *client, size int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	buf := make([]byte, 512<<10)
	for got := 0; got < size; {
		n, err := c.r.Read(buf)
		if err != nil {
			t.Fatalf("after %d bytes: %v", got, err)
		}
		got += n
		if got < size/2 {
			<-tick.C
		}
	}
}

func TestClientThatTakesNothingOfALargeAnswerIsDisconnected(t *testing.T) {
	whole := make([]byte, 96<<20)
	ended := make(chan error, 1)
	limits := quick(Limits{WriteTimeout: 60 * time.Millisecond})
	addr, server := newProxy(t, newStub(t, nil), func(o *Options) {
		limits(o)
		o.Intercept = func(x *Exchange) bool { ended <- x.Answer(200, nil, whole); return true }
	})
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if err := wait(t, ended, "the end of the answer"); !errors.Is(err, errWriteTimeout) {
		t.Errorf("it ended with %v", err)
	}
	eventually(t, "the connection's end", func() bool { open, _ := server.Connections(); return open == 0 })
}

func TestClientsOverTheLimitAreToldSo(t *testing.T) {
	s := newStub(t, nil)
	told := new(counters)
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Limits.MaxConnections, o.Metrics = 2, told
	})
	a, b := dial(t, addr), dial(t, addr)
	for _, c := range []*client{a, b} {
		c.send(lines("GET / HTTP/1.1", "Host: h"))
		c.answer("GET")
	}
	over := dial(t, addr)
	over.send(lines("GET / HTTP/1.1", "Host: h"))
	wantError(t, over.answer("GET"), 503, TypeCrowded)
	over.closed()
	_ = a.Close()
	eventually(t, "a free place", func() bool {
		c := dial(t, addr)
		defer c.Close()
		c.send(lines("GET / HTTP/1.1", "Host: h"))
		a, err := c.tryAnswer("GET")
		return err == nil && a.status == 200
	})
	b.send(lines("GET / HTTP/1.1", "Host: h"))
	if got := b.answer("GET"); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	if told.failures(TypeCrowded) == 0 {
		t.Error("not counted")
	}
}

func TestManySlowClientsDontKeepOneFromBeingServed(t *testing.T) {
	s := newStub(t, nil)
	addr, server := newProxy(t, s, func(o *Options) {})
	for range 300 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: h\r\nContent-Le")
	}
	eventually(t, "all of them", func() bool { open, _ := server.Connections(); return open == 300 })
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	if open := s.connections(); open != 1 {
		t.Errorf("%d connections to the engine: slow clients must not hold any", open)
	}
}

// A client reads a large answer at a few KB a second. Our own system takes nothing more of the answer for minutes, because its buffer is
// full: the client makes progress all the same. The test has the watcher look when the client has read enough, or nothing.
func TestASlowButSteadyReaderIsNotCut(t *testing.T) {
	whole := make([]byte, 64<<20)
	ended := make(chan error, 1)
	addr, server := newProxy(t, newStub(t, nil), func(o *Options) {
		o.Limits = Limits{Tick: time.Hour, WriteTimeout: 2 * time.Hour, MinRate: 10} // 72,000 bytes in two looks
		o.Intercept = func(x *Exchange) bool { ended <- x.Answer(200, nil, whole); return true }
	})
	c := dial(t, addr)
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	var served *conn
	eventually(t, "a write that waits", func() bool {
		server.mu.Lock()
		defer server.mu.Unlock()
		if len(server.conns) == 0 { // not accepted yet
			return false
		}
		served = server.conns[0]
		return served.state.writing.Load() == 1
	})
	probe := wire.NewProbe(served.nc)
	acknowledged := func() int64 {
		n, ok := probe.Acknowledged()
		if !ok {
			t.Skip("this system can't be asked what was acknowledged")
		}
		return n
	}
	var full int64
	eventually(t, "full buffers", func() bool {
		before := full
		runtime.Gosched()
		full = acknowledged()
		return full > 0 && full == before
	})
	buf := make([]byte, 256<<10)
	for range 40 {
		served.inspect(&server.ticks, false)
		before := acknowledged()
		for acknowledged()-before < server.ticks.writeBytes {
			if _, err := c.Conn.Read(buf); err != nil {
				t.Fatalf("the answer broke off: %v", err)
			}
		}
		served.inspect(&server.ticks, false)
		if why := cause(served.state.cut.Load()); why != notCut {
			t.Fatal(why.err())
		}
	}
	eventually(t, "the end of the answer of a client that reads nothing any more", func() bool {
		served.inspect(&server.ticks, false)
		select {
		case err := <-ended:
			if !errors.Is(err, errWriteTimeout) {
				t.Errorf("it ended with %v", err)
			}
			return true
		default:
			return false
		}
	})
}

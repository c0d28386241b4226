package proxy

import (
	"net"
	"testing"
	"time"

	"optimist/internal/wire"
)

// The watcher ends an idle wait while a request already lies in the socket: it is served, and ends the connection.
func TestRequestThatArrivedBeforeTheIdleWaitWasCutIsServed(t *testing.T) {
	server, err := New(Options{Upstream: newSet(t, newStub(t, nil).url()), Limits: Limits{Tick: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for name, tt := range map[string]struct {
		request string
		status  int
	}{
		"with a request":    {lines("GET / HTTP/1.1", "Host: h"), 200},
		"without a request": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := dial(t, ln.Addr().String())
			nc, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			c := newConn(server, nc)
			client.send(tt.request)
			if tt.request != "" {
				eventually(t, "the bytes", func() bool { return c.probe.State() == wire.PeerSent })
			}
			c.cutRead(cutIdle)
			server.mu.Lock()
			c.index, server.conns = len(server.conns), append(server.conns, c)
			server.mu.Unlock()
			server.wg.Add(1)
			go c.serve()
			if tt.status > 0 {
				if a := client.answer("GET"); a.status != tt.status || a.field("connection") != "close" {
					t.Errorf("%+v", a)
				}
			}
			client.closed()
		})
	}
}

// The watcher decides that a connection is idle, and a request comes before it acts on that. The request's head was in time to be
// read; its body must be, too.
func TestRequestThatMeetsTheEndOfAnIdleWaitIsServed(t *testing.T) {
	cut := make(chan struct{})
	addr, _ := newProxy(t, newStub(t, nil), func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			x.c.cutRead(cutIdle)
			close(cut)
			body, err := x.Body(1 << 10)
			if err != nil {
				x.Fail(err)
				return true
			}
			_ = x.Answer(200, nil, body)
			return true
		}
	})
	c := dial(t, addr)
	c.send(lines("PUT /a HTTP/1.1", "Host: h", "Content-Length: 2"))
	wait(t, cut, "the cut")
	c.send("{}")
	if a := c.answer("PUT"); a.status != 200 || a.body != "{}" {
		t.Errorf("%+v", a)
	}
}

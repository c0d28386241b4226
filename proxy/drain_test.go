package proxy

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/internal/wire"
)

func TestDrainCutsNoRequest(t *testing.T) {
	reached, release := make(chan struct{}, 2), make(chan struct{})
	s := newStub(t, func(c *stubConn, r seen) {
		if strings.Contains(r.head, "/slow") {
			reached <- struct{}{}
			<-release
		}
		c.ok("{}")
	})
	addr, server := newProxy(t, s, nil)
	idle, slow, sending := dial(t, addr), dial(t, addr), dial(t, addr)
	idle.send(lines("GET / HTTP/1.1", "Host: h"))
	idle.answer("GET")
	slow.send(lines("PUT /slow HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
	wait(t, reached, "the slow request")
	sending.send(lines("PUT /slow HTTP/1.1", "Host: h", "Content-Length: 4"), "{}")
	eventually(t, "the half request", func() bool { _, active := server.Connections(); return active == 2 })

	drained := make(chan error, 1)
	go func() { drained <- server.Drain(t.Context()) }()
	idle.closed()
	eventually(t, "the listener's end", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	sending.send("{}")
	wait(t, reached, "the request that was still arriving")
	select {
	case err := <-drained:
		t.Fatalf("drained with requests under way: %v", err)
	default:
	}
	close(release)
	for _, c := range []*client{slow, sending} {
		a := c.answer("PUT")
		if a.status != 200 || a.field("Connection") != "close" {
			t.Errorf("%+v", a)
		}
		c.closed()
	}
	if err := wait(t, drained, "Drain"); err != nil {
		t.Error(err)
	}
	if err := server.Drain(t.Context()); err != nil {
		t.Errorf("a second Drain: %v", err)
	}
}

func TestDrainGivesUpWithItsContext(t *testing.T) {
	s, got, ended := silent(t)
	addr, server := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("POST /a/_forcemerge HTTP/1.1", "Host: h"))
	wait(t, got, "the request")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := server.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	server.Close()
	wait(t, ended, "the end upstream")
}

func TestDrainUnderLoadLosesNoRequest(t *testing.T) {
	s := newStub(t, nil)
	addr, server := newProxy(t, s, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			c := dial(t, addr)
			for {
				if _, err := c.Write([]byte(lines("GET / HTTP/1.1", "Host: h"))); err != nil {
					return
				}
				a, err := c.tryAnswer("GET")
				if err != nil {
					// Only between two requests may the connection end without having said so, and then without a byte.
					if a.head != "" {
						t.Errorf("an answer was cut: %q %v", a.head, err)
					}
					return
				}
				if a.field("Connection") == "close" {
					return
				}
			}
		})
	}
	eventually(t, "load", func() bool { return len(s.requests()) > 200 })
	if err := server.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestServeAfterCloseReturns(t *testing.T) {
	s := newStub(t, nil)
	_, server := newProxy(t, s, nil)
	server.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Serve(ln); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("no upstream, no error")
	}
}

func TestLogNamesNoSecrets(t *testing.T) {
	s := newStub(t, nil)
	log, level := &logged{}, new(slog.LevelVar)
	addr, _ := newProxy(t, s, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})) })
	c := dial(t, addr)
	request := lines("GET /a/_doc/1?token=hunter2 HTTP/1.1", "Host: h", "Authorization: Basic c2VjcmV0", "Cookie: sid=hunter2", "Content-Length: 7") + "hunter2"
	c.send(request)
	c.answer("GET")
	c.send(lines("GET /quiet HTTP/1.1", "Host: h"))
	c.answer("GET")
	if got := log.String(); got != "" {
		t.Fatalf("a line at info: %s", got)
	}
	level.Set(slog.LevelDebug)
	c.send(request)
	c.answer("GET")
	eventually(t, "the line", func() bool { return strings.Contains(log.String(), "path=/a/_doc/1 op=get status=200") })
	if got := log.String(); strings.Contains(got, "hunter2") || strings.Contains(got, "c2VjcmV0") {
		t.Errorf("secrets: %s", got)
	}
}

// Who looks for why a write went as it did has the line of each request, and not the answers.
func TestLogTellsTheOutcomeOfWrites(t *testing.T) {
	outcome := []wire.Field{{Name: []byte("Optimist-Outcome"), Value: []byte("merged;attempts=2;base=session")}}
	for name, intercept := range map[string]func(x *Exchange) bool{
		"answered": func(x *Exchange) bool {
			mine := []wire.Field{{Name: outcome[0].Name, Value: bytes.Clone(outcome[0].Value)}}
			_ = x.Answer(200, mine, nil)
			clear(mine[0].Value) // of a buffer that is used again
			return true
		},
		"forwarded": func(x *Exchange) bool {
			_ = x.Forward(ForwardOptions{OnHead: func(*wire.Head, []byte) []wire.Field { return outcome }})
			return true
		},
		"failed": func(x *Exchange) bool { x.Fail(ErrTooLarge, outcome...); return true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(c *stubConn, _ seen) {
				c.say("{}", "HTTP/1.1 200 OK", "Content-Length: 2", "Optimist-Outcome: not ours")
			})
			log := &logged{}
			addr, _ := newProxy(t, s, func(o *Options) {
				o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				o.Intercept = func(x *Exchange) bool { return string(x.Op().Path) != "/a/_search" && intercept(x) }
			})
			c := dial(t, addr)
			c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 0"))
			c.answer("PUT")
			eventually(t, "the line", func() bool { return strings.Contains(log.String(), `op=index`) })
			if got := log.String(); !strings.HasSuffix(got, ` outcome="merged;attempts=2;base=session"`+"\n") {
				t.Errorf("logged %s", got)
			}
			c = dial(t, addr)
			c.send(lines("GET /a/_search HTTP/1.1", "Host: h"))
			c.answer("GET")
			eventually(t, "the line", func() bool { return strings.Contains(log.String(), `op=search`) })
			if got := log.String(); strings.Count(got, "outcome=") != 1 {
				t.Errorf("logged %s", got)
			}
		})
	}
}

// logged is what was logged. It is safe for concurrent use.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

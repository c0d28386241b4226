package proxy

import (
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"optimist/internal/enginetest"
)

// fullListener is one of a process that has no file descriptor left, the first few times.
type fullListener struct {
	net.Listener
	left atomic.Int32
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

// TestConnectionsThatTheSystemDoesNotGiveFloodNoLog: clients cause them, by many connections.
func TestConnectionsThatTheSystemDoesNotGiveFloodNoLog(t *testing.T) {
	log := new(enginetest.Log)
	server, err := New(Options{Upstream: newSet(t, newStub(t, nil).url()), Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	full := &fullListener{Listener: ln}
	full.left.Store(5)
	go func() { _ = server.Serve(full) }()
	c := dial(t, ln.Addr().String())
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	if n := strings.Count(log.String(), "accept failed"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, log)
	}
}

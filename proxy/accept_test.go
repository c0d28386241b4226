package proxy

import (
	"io"
	"log/slog"
	"net"
	"runtime"
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

// floodedListener has the same connection again and again, as fast as it is asked, and ends after many.
type floodedListener struct {
	net.Listener
	conn     net.Conn
	accepted atomic.Int32
}

const flood = 2000

func (l *floodedListener) Accept() (net.Conn, error) {
	if l.accepted.Add(1) > flood {
		return nil, net.ErrClosed
	}
	return l.conn, nil
}

// closedConn is a connection that its client has ended.
type closedConn struct{ net.Conn }

func (closedConn) Read([]byte) (int, error) { return 0, io.EOF }

func TestAFloodOfConnectionsGivesWayToWhatIsUnderWay(t *testing.T) {
	server, err := New(Options{Upstream: newSet(t, newStub(t, nil).url()), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	flooded := &floodedListener{Listener: ln, conn: closedConn{near}}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // whoever doesn't give way keeps the only processor
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(flooded)
	}()
	turns := 0
	for ; flooded.accepted.Load() < flood; turns++ {
		runtime.Gosched() // as a request that goes on
	}
	<-served
	if turns < flood/10 {
		t.Errorf("a request got %d turns while %d connections were accepted", turns, flood)
	}
}

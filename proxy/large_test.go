package proxy

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"
)

// largeSize is what goes through in one message. Anything that collects it shows.
func largeSize() int64 {
	if testing.Short() || raceEnabled {
		return 128 << 20
	}
	return 1 << 30
}

// maxGrowth is how much memory in bytes a message of any size may cost.
const maxGrowth = 64 << 20

// TestLargeMessagesMoveThroughInLittleMemory sends a request and an answer of 1 GiB each, at once.
func TestLargeMessagesMoveThroughInLittleMemory(t *testing.T) {
	for _, framing := range []string{"length", "chunked"} {
		t.Run(framing, func(t *testing.T) {
			size := largeSize()
			s := newRawStub(t, func(_ *stub, c *stubConn) {
				if _, err := readHead(c.r); err != nil {
					return
				}
				if n := readLarge(c.r, framing == "chunked"); n != size {
					t.Errorf("the engine got %d bytes", n)
					return
				}
				writeLarge(c, "HTTP/1.1 200 OK\r\n", framing == "chunked", size)
			})
			addr, _ := newProxy(t, s, nil)
			c := dial(t, addr)
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			grown := watchMemory(t)
			var wg sync.WaitGroup
			wg.Go(func() { writeLarge(c, "POST /_bulk HTTP/1.1\r\nHost: h\r\n", framing == "chunked", size) })
			if _, err := readHead(c.r); err != nil {
				t.Fatal(err)
			}
			if n := readLarge(c.r, framing == "chunked"); n != size {
				t.Errorf("the client got %d bytes", n)
			}
			wg.Wait()
			if g := grown(); g > maxGrowth {
				t.Errorf("memory grew by %d MiB", g>>20)
			} else {
				t.Logf("%d MiB each way, memory grew by %d KiB", size>>20, g>>10)
			}
		})
	}
}

// writeLarge writes a message of size zeros.
func writeLarge(w io.Writer, head string, chunked bool, size int64) {
	const piece = 1 << 20
	framing := fmt.Sprintf("Content-Length: %d", size)
	buf := make([]byte, piece)
	if chunked {
		framing = "Transfer-Encoding: chunked"
		buf = fmt.Appendf(nil, "%x\r\n%s\r\n", piece, buf)
	}
	_, _ = io.WriteString(w, head+framing+"\r\n\r\n")
	for range size / piece {
		if _, err := w.Write(buf); err != nil {
			return
		}
	}
	if chunked {
		_, _ = io.WriteString(w, "0\r\n\r\n")
	}
}

// readLarge reads a body and returns its size. It looks at the framing only as far as it must.
func readLarge(r io.Reader, chunked bool) int64 {
	if !chunked {
		n, _ := io.CopyN(io.Discard, r, largeSize())
		return n
	}
	var total int64
	line := make([]byte, 0, 32)
	for {
		line = line[:0]
		for len(line) < 2 || line[len(line)-1] != '\n' {
			line = line[:len(line)+1]
			if _, err := io.ReadFull(r, line[len(line)-1:]); err != nil {
				return -1
			}
		}
		var n int64
		if _, err := fmt.Sscanf(string(line), "%x", &n); err != nil {
			return -1
		}
		if _, err := io.CopyN(io.Discard, r, n+2); err != nil {
			return -1
		}
		if total += n; n == 0 {
			return total
		}
	}
}

// watchMemory looks at what the Go runtime has from the system, until the function it returns is called; that returns the
// most above what it was at the beginning.
func watchMemory(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base := m.Sys - m.HeapReleased
	stop, result := make(chan struct{}), make(chan uint64, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if now := m.Sys - m.HeapReleased; now > base {
				most = max(most, now-base)
			}
			select {
			case <-stop:
				result <- most
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 { close(stop); return <-result }
}

// TestSlowClientHoldsTheEngineUp shows the back-pressure: what the client doesn't take, the engine isn't let send.
func TestSlowClientHoldsTheEngineUp(t *testing.T) {
	progress := make(chan int, 1000)
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := readHead(c.r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
		piece := make([]byte, 1<<20)
		for i := range 1000 {
			_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			if _, err := c.Write(piece); err != nil {
				progress <- i
				return
			}
		}
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if got := wait(t, progress, "the engine to be held up"); got > 64 {
		t.Errorf("%d MiB were taken from the engine for a client that reads nothing", got)
	}
}

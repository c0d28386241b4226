package proxy

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"optimist/internal/budget"
)

// longHead is a request's head of so many bytes, and some, without its empty line.
func longHead(line string, size int) string {
	return line + " HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", size) + "\r\n"
}

// Large heads of requests under way come out of the budget, also while they come. Small ones need none of it.
func TestLargeHeadsComeOutOfTheBudget(t *testing.T) {
	b := budget.New(budget.Options{Limit: 1 << 20})
	addr, _ := newProxy(t, newStub(t, nil), func(o *Options) { o.Budget = b })
	const size, most = 40 << 10, 50
	for name, c := range map[string]struct{ first, last string }{
		"whole": {longHead("PUT /i/_doc/1", size) + "Content-Length: 2\r\n\r\n", "{}"},
		"half":  {longHead("PUT /i/_doc/1", size), "Content-Length: 0\r\n\r\n"},
	} {
		var under []*client
		for refused := false; !refused; {
			before, cl, gone := b.Used(), dial(t, addr), make(chan answer, 1)
			cl.send(c.first)
			go func() {
				a, _ := cl.tryAnswer("PUT")
				gone <- a
			}()
			eventually(t, "the head", func() bool { return b.Used() > before || len(gone) > 0 })
			if refused = len(gone) > 0; refused {
				wantError(t, <-gone, 503, TypeOverloaded)
				break
			}
			if under = append(under, cl); len(under) == most {
				t.Fatalf("%s: %d requests are under way", name, most)
			}
			if len(under) == 1 {
				defer func() {
					if a := wait(t, gone, "an answer"); a.status != 200 {
						t.Errorf("%s: %d %s", name, a.status, a.body)
					}
				}()
			}
		}
		small := dial(t, addr)
		small.send("GET /i/_doc/2 HTTP/1.1\r\nHost: h\r\n\r\n")
		if a := small.answer("GET"); a.status != 200 || len(under) < 2 {
			t.Errorf("%s: %d requests are under way, and a small one gets %d %s", name, len(under), a.status, a.body)
		}
		for _, cl := range under[1:] {
			_ = cl.Close()
		}
		eventually(t, "the memory of the others", func() bool { return b.Used() < 300<<10 })
		under[0].send(c.last)
		eventually(t, "the memory", func() bool { return b.Used() == 0 })
	}
}

// Idle connections are many: a large head that was answered, or refused, leaves nothing.
func TestNothingOfALargeHeadIsKept(t *testing.T) {
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		buf, seen := make([]byte, 4096), ""
		for {
			n, err := c.Conn.Read(buf)
			if err != nil {
				return
			}
			if seen += string(buf[:n]); strings.HasSuffix(seen, "\r\n\r\n") {
				seen = ""
				_, _ = c.Conn.Write([]byte("HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"))
			} else {
				seen = seen[max(0, len(seen)-4):]
			}
		}
	})
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			x.Local = x.Head().EndToEnd(nil) // as an interceptor may keep for the next request
			return false
		}
	})
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, c := range []struct {
		name, request string
		status        int
	}{
		{"one field", longHead("GET /i/_doc/1", 60<<10) + "\r\n", 401},
		{"many fields", longHead("GET /i/_doc/1", 50<<10) + strings.Repeat("a:\r\n", 500) + "\r\n", 401},
		{"a field that isn't sent", longHead("GET /i/_doc/1", 100) + "Keep-Alive: " + strings.Repeat("a", 50<<10) + "\r\n\r\n", 401},
		{"too many options", longHead("GET /i/_doc/1", 100) + "Connection: " + strings.Repeat("abc,", 14<<10) + "x\r\n\r\n", 431},
		{"too many fields", longHead("GET /i/_doc/1", 50<<10) + strings.Repeat("a:\r\n", 600) + "\r\n", 431},
	} {
		const connections = 100
		before := heap()
		var clients []*client
		for range connections {
			cl := dial(t, addr)
			cl.send(c.request)
			if a := cl.answer("GET"); a.status != c.status {
				t.Fatalf("%s: %d %s", c.name, a.status, a.body)
			}
			clients = append(clients, cl)
		}
		least := int64(0)
		eventually(t, fmt.Sprint("the memory of ", c.name), func() bool {
			least = (heap() - before) / connections
			return least < 24<<10
		})
		t.Logf("%s: %d bytes a connection", c.name, least)
		for _, cl := range clients {
			_ = cl.Close()
		}
	}
}

package hostile

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A thousand connections send heads as large as they may be, and wait. What is under way comes out of the budget. What was answered, or
// refused, leaves nothing.
func TestLargeHeadsStayWithinTheBudget(t *testing.T) {
	const connections = 1000
	const config = "limits: {max_guarded_body: 4MiB, memory: 48MiB, max_connections: 2000}\nsessions: {memory: 8MiB}\n"
	long := "X-Long: " + strings.Repeat("a", 60<<10) + "\r\n"
	fields := strings.Repeat("a:"+strings.Repeat("b", 114)+"\r\n", 500)
	kept := "a:" + strings.Repeat("b", 7<<10) + "\r\n"
	write := "PUT /i/_doc/1 HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
	read := "GET /i/_doc/1 HTTP/1.1\r\nHost: h\r\n"
	for _, c := range []struct {
		name, head string
		answered   bool // all of them are
	}{
		{"a field, and no body", write + long + "\r\n", false},
		{"fields, and no body", write + fields + "\r\n", false},
		{"no end", write + long, false},
		{"a field, answered", read + long + "\r\n", true},
		{"fields, answered", read + fields + "\r\n", true},
		{"a small field, answered", read + kept + "\r\n", true},
		{"too many fields", write + strings.Repeat("a:\r\n", 15000) + "\r\n", true},
		{"a bulk behind a field, answered", strings.Replace(write, "PUT /i/_doc/1", "POST /i/_bulk", 1) + long + "\r\n" + strings.Repeat("\n", 100), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := startRefused(t, config)
			if status := g.exchange([]byte(read + "\r\n")); status != http.StatusUnauthorized {
				t.Fatalf("%d", status)
			}
			var conns []net.Conn
			grown := g.growth(t, func() {
				var wg sync.WaitGroup
				for range connections {
					conn := g.dial(t)
					conns = append(conns, conn)
					if _, err := io.WriteString(conn, c.head); err != nil {
						t.Fatal(err)
					}
					if !c.answered {
						continue
					}
					wg.Go(func() {
						res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
						if err != nil {
							t.Error(err)
							return
						}
						_ = res.Body.Close()
					})
				}
				wg.Wait()
				wait(t, "a small request", func() bool { return g.exchange([]byte(read+"\r\n")) == http.StatusUnauthorized })
			})
			now, _ := g.rss(t)
			t.Logf("%d MiB are resident; %d KiB grown for a connection", now/mebi, grown/connections>>10)
			for _, conn := range conns {
				_ = conn.Close()
			}
			g.holds(t, grown)
		})
	}
}

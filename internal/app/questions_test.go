package app

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/enginetest"
	"optimist/internal/session"
)

// TestSeveralDocumentsAskOnceWhatTheirIndexIs has an engine that doesn't say what its index is.
func TestSeveralDocumentsAskOnceWhatTheirIndexIs(t *testing.T) {
	var asked atomic.Int64
	w := newWorldOn(t, "", Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/shop" {
			return false
		}
		asked.Add(1)
		out.WriteHeader(http.StatusNotFound)
		return true
	}))
	for id := range 5 {
		w.put(fmt.Sprintf("/shop/_doc/%d?routing=a", id), `{}`)
	}
	for range 2 {
		a := w.ask(w.proxied, "POST", "/shop/_mget?routing=a", `{"ids":["0","1","2","3","4","none"]}`, "Optimist-Session", "s")
		if n := asked.Load(); a.Status != 200 || n != 1 {
			t.Errorf("%d %s: asked %d times", a.Status, a.Body, n)
		}
	}
}

// TestAReadWhoseClientLeavesWhileTheEngineIsAskedIsNoBase has the client leave when its read is here, and what the index is isn't.
func TestAReadWhoseClientLeavesWhileTheEngineIsAskedIsNoBase(t *testing.T) {
	for name, request := range map[string]string{
		"a document": "GET /shop/_doc/1?routing=a", "none": "GET /shop/_doc/none?routing=a", "whether there is": "HEAD /shop/_doc/none?routing=a",
	} {
		t.Run(name, func(t *testing.T) {
			var leave atomic.Pointer[net.Conn]
			var ahead atomic.Int64 // by how much the clock is
			left := make(chan struct{})
			engine := enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
				if conn := leave.Swap(nil); conn != nil && r.URL.Path == "/shop" {
					ahead.Add(int64(time.Second)) // before, no client is taken for one that has left
					_ = (*conn).Close()
					close(left)
				} else if conn != nil {
					leave.Store(conn)
				}
				return false
			})
			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			w := &world{t: t, direct: engine, app: runningWith(t, Options{Config: configured(t, "", engine), Now: now})}
			w.proxied = w.app.URL()
			w.put("/shop/_doc/1?routing=a", `{"n":1}`)
			conn, err := net.Dial("tcp", strings.TrimPrefix(w.proxied, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			leave.Store(&conn)
			if _, err := fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: h\r\nOptimist-Session: s\r\n\r\n", request); err != nil {
				t.Fatal(err)
			}
			<-left
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/else", `{}`), 201, "") // it waits for the answer, too
			w.app.Close()                                                      // the read has ended
			target := strings.TrimSuffix(request[strings.LastIndex(request, "/")+1:], "?routing=a")
			if b := w.base("shop", target); b.Kind != session.KindNone {
				t.Errorf("%+v", b)
			}
		})
	}
}

package app

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// serveAt serves a new engine, which is empty, at an address.
func serveAt(t *testing.T, address string) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(enginetest.Forward(t, enginetest.Serve(t)))
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// TestAnEngineThatLostItsDataIsNoBaseOfOldReads: the engine that comes up again counts from zero. Another client's document has the numbers
// that the client has read.
func TestAnEngineThatLostItsDataIsNoBaseOfOldReads(t *testing.T) {
	for name, save := range map[string]func(w *world) answer{
		"a document": func(w *world) answer { return w.save(me, `{"l":["old","mine"]}`) },
		"an item": func(w *world) answer {
			return w.ask(w.proxied, "POST", "/shop/_bulk", "{\"index\":{\"_id\":\"1\"}}\n{\"l\":[\"old\",\"mine\"]}\n", "Optimist-Session", me)
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine := serveAt(t, "127.0.0.1:0")
			w := newWorldOn(t, "rules: [{name: r, match: {index: [shop]}, base: {lost: reject}}]\n", Identity{}, engine.URL)
			w.put("/shop/_doc/2", `{}`)
			w.put(doc1, `{"l":["old"]}`)
			w.read(me, "/shop/_doc/2")
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/2", `{"n":1}`, "Optimist-Session", me), 200, "guarded") // it knows what the index is
			w.read(me, doc1)
			engine.CloseClientConnections()
			engine.Close()
			if a := w.read(other, doc1); a.Status < http.StatusInternalServerError {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			serveAt(t, strings.TrimPrefix(engine.URL, "http://"))
			w.put("/shop/_doc/2", `{}`)
			w.put(doc1, `{"l":["another's"]}`)
			a := save(w)
			if got := w.ask(w.direct, "GET", "/shop/_source/1", ""); string(got.Body) != `{"l":["another's"]}` {
				t.Errorf("%d [%s] %s: stored is %s", a.Status, a.Outcome(), a.Body, got.Body)
			}
		})
	}
}

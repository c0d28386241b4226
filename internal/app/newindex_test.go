package app

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"optimist/internal/enginetest"
)

const me, other = "me", "other"

// save reads nothing and writes what its session has made of what it wrote last.
func (w *world) save(session, body string) answer {
	return w.ask(w.proxied, "PUT", doc1, body, "Optimist-Session", session)
}

func (w *world) read(session, target string) answer {
	return w.ask(w.proxied, "GET", target, "", "Optimist-Session", session)
}

func TestAnIndexMadeAnewAroundOptimistIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		renew func(w *world)
		look  func(w *world) answer
	}{
		"a read of an older revision": {func(w *world) { w.put(doc1, `{"n":0}`) }, func(w *world) answer { return w.read(other, doc1) }},
		"another document under the same numbers": {func(w *world) {
			for range 4 {
				w.put(doc1, `{"n":0}`)
			}
		}, func(w *world) answer { return w.read(other, doc1) }},
		"a multi-get of an older revision": {func(w *world) { w.put(doc1, `{"n":0}`) }, func(w *world) answer {
			return w.ask(w.proxied, "POST", "/shop/_mget", `{"ids":["1"]}`, "Optimist-Session", other)
		}},
		"a missing index": {func(*world) {}, func(w *world) answer { return w.read(other, doc1) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget], lost: reject}, merge: {paths: {/n: sum}}}\n", Identity{})
			w.put(doc1, `{"n":1}`)
			w.read(me, doc1)
			w.wants(w.save(me, `{"n":2}`), 200, "guarded;attempts=1;base=session")
			w.read(other, doc1)
			w.read(me, doc1)
			w.wants(w.save(me, `{"n":3}`), 200, "guarded;attempts=1;base=session")
			w.put(doc1, `{"n":3,"by":"somebody else"}`)
			w.read(me, doc1) // revision 3
			w.read(other, doc1)
			if a := w.ask(w.direct, "DELETE", "/shop", ""); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			c.renew(w)
			c.look(w)
			a := w.save(me, `{"n":4,"by":"somebody else"}`)
			if !strings.Contains(a.Outcome(), "base=lost;reason=index") {
				t.Errorf("%d [%s]: the base of another index", a.Status, a.Outcome())
			}
			if name == "a read of an older revision" { // which is one of the new index
				w.wants(w.save(other, `{"n":5}`), 200, "guarded;attempts=1;base=session")
			}
		})
	}
}

// TestAMultiGetIsOfItsOwnTimeInEachIndex: a multi-get shows that one of its indices is another one. While its answer is under way, a client
// makes another of its indices anew: what it shows of that is no base.
func TestAMultiGetIsOfItsOwnTimeInEachIndex(t *testing.T) {
	for name, renew := range map[string]func(w *world){
		"a missing index":   func(*world) {},
		"an older revision": func(w *world) { w.put(doc1, `{"n":0}`) },
	} {
		t.Run(name, func(t *testing.T) {
			const late = "/late/_doc/1"
			engine, arrived, release := enginetest.Serve(t), make(chan struct{}), make(chan struct{})
			between := enginetest.Between(t, engine, func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/_mget" {
					return false
				}
				body, _ := io.ReadAll(r.Body)
				a := enginetest.Ask(t, r.Method, engine+"/_mget", string(body))
				close(arrived)
				<-release
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, a.Body)
				return true
			})
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop, late]}, base: {reads: [get, mget], lost: reject}}\n", Identity{}, between)
			w.put(late, `{"v":"old"}`)
			w.put(doc1, `{"n":1}`)
			w.read(other, doc1)
			w.wants(w.save(other, `{"n":2}`), 200, "guarded;attempts=1;base=session")
			w.ask(w.direct, "DELETE", "/shop", "")
			renew(w)
			var all sync.WaitGroup
			all.Go(func() {
				w.ask(w.proxied, "POST", "/_mget", `{"docs":[{"_index":"shop","_id":"1"},{"_index":"late","_id":"1"}]}`, "Optimist-Session", me)
			})
			<-arrived
			w.ask(w.proxied, "DELETE", "/late", "")
			w.put(late, `{"v":"new"}`) // under the same numbers
			close(release)
			all.Wait()
			w.wants(w.ask(w.proxied, "PUT", late, `{"v":"mine"}`, "Optimist-Session", me), 409, "refused;attempts=0;base=lost;reason=index")
		})
	}
}

// TestAStaleReadForgetsNothing: a read that needn't be of the newest revision proves nothing of its index.
func TestAStaleReadForgetsNothing(t *testing.T) {
	for _, query := range []string{"?realtime=false", "?preference=_replica", "?realtime=0&preference=x"} {
		t.Run(query, func(t *testing.T) {
			var stale atomic.Pointer[string] // the first answer to a read, as a replica or an old searcher has it
			engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
				body := stale.Load()
				if body == nil || "?"+r.URL.RawQuery != query {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, *body)
				return true
			})
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}}\n", Identity{}, engine)
			w.put(doc1, `{"n":1}`)
			first := w.read(me, doc1).Body
			stale.Store(&first)
			w.wants(w.save(me, `{"n":2}`), 200, "guarded;attempts=1;base=session")
			if a := w.read(other, doc1+query); a.Body != first {
				t.Fatalf("read %s", a.Body)
			}
			w.wants(w.save(me, `{"n":3}`), 200, "guarded;attempts=1;base=view")
		})
	}
}

// TestAReadOfANodeThatIsCutOffForgetsNothing: a node that is cut off answers from a copy of the shard that the others have given up. That
// shows an older revision than was acknowledged, under the same primary term. Or the node doesn't know an index that is newer. The index is
// the same, so other clients' bases are.
func TestAReadOfANodeThatIsCutOffForgetsNothing(t *testing.T) {
	const doc2 = "/shop/_doc/2"
	const missing = `{"error":{"root_cause":[{"type":"index_not_found_exception","reason":"no such index [shop]","index":"shop"}],` +
		`"type":"index_not_found_exception","reason":"no such index [shop]","index":"shop"},"status":404}`
	for name, c := range map[string]struct {
		session  string // of the client that the node answers
		answer   string // "": the document as it was first
		unasked  bool   // nobody says what the index is
		attempts string // of the client's own write
	}{
		"an old revision":                      {other, "", false, "merged;attempts=2;base=session"},
		"an old revision, and nobody is asked": {other, "", true, "merged;attempts=2;base=session"},
		"an old revision, without a session":   {"", "", false, "merged;attempts=2;base=session"},
		"no index":                             {other, missing, false, "merged;attempts=2;base=absent"},
		"no index, and nobody is asked":        {other, missing, true, "merged;attempts=2;base=absent"},
	} {
		t.Run(name, func(t *testing.T) {
			var stale atomic.Pointer[string]
			engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
				switch body := stale.Load(); {
				case body == nil:
					return false
				case r.Method == http.MethodGet && r.URL.Path == doc2:
					w.Header().Set("Content-Type", "application/json")
					if c.answer != "" {
						w.WriteHeader(http.StatusNotFound)
					}
					_, _ = io.WriteString(w, *body)
					return true
				case r.Method == http.MethodGet && r.URL.Path == "/shop" && c.unasked:
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				return false
			})
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", Identity{Infer: true}, engine)
			w.put(doc1, `{"n":1}`)
			w.put(doc2, `{"n":1}`)
			old := cmp.Or(c.answer, w.read(me, doc2).Body)
			w.wants(w.ask(w.proxied, "PUT", doc2, `{"n":2}`, "Optimist-Session", me), 200, "guarded;attempts=1;base=session")
			w.read(me, doc1)
			w.put(doc1, `{"n":11}`)
			stale.Store(&old)
			var session []string
			if c.session != "" {
				session = []string{"Optimist-Session", c.session}
			}
			if a := w.ask(w.proxied, "GET", doc2, "", session...); a.Body != old {
				t.Fatalf("read %s", a.Body)
			}
			stale.Store(nil) // the node has noticed
			w.wants(w.save(me, `{"n":2}`), 200, "merged;attempts=2;base=session")
			w.wants(w.ask(w.proxied, "PUT", doc2, `{"n":2}`, session...), 200, c.attempts)
			want := map[string]string{doc1: `{"n":12}`, doc2: `{"n":3}`}
			if c.answer != "" {
				want[doc2] = `{"n":4}` // the client has counted from nothing
			}
			for target, n := range want {
				if a := w.ask(w.direct, "GET", strings.Replace(target, "_doc", "_source", 1), ""); a.Body != n {
					t.Errorf("%s: %s, want %s", target, a.Body, n)
				}
			}
		})
	}
}

// TestAMultiGetAsksOnceWhatAnIndexIs: while the engine doesn't answer, each question takes a second.
func TestAMultiGetAsksOnceWhatAnIndexIs(t *testing.T) {
	var stale atomic.Pointer[string]
	var asked atomic.Int64
	engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		body := stale.Load()
		switch {
		case body == nil:
			return false
		case r.URL.Path == "/shop/_mget":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, *body)
			return true
		case r.Method == http.MethodGet && r.URL.Path == "/shop":
			asked.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget]}}\n", Identity{}, engine)
	read := func() answer {
		return w.ask(w.proxied, "POST", "/shop/_mget", `{"ids":["1","2","3"]}`, "Optimist-Session", me)
	}
	docs := []string{doc1, "/shop/_doc/2", "/shop/_doc/3"}
	for _, target := range docs {
		w.put(target, `{"n":1}`)
	}
	old := read().Body
	for _, target := range docs {
		w.wants(w.ask(w.proxied, "PUT", target, `{"n":2}`, "Optimist-Session", me), 200, "guarded;attempts=1;base=session")
	}
	stale.Store(&old)
	if a := read(); a.Body != old || asked.Load() != 1 {
		t.Errorf("asked %d times, for %s", asked.Load(), a.Body)
	}
}

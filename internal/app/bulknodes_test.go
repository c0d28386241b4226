package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// node is one way to the engine, which all nodes share. fault gets every request first; it reports whether it has answered.
type node struct {
	*httptest.Server
	fault func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) bool
	seen  atomic.Int64
}

func newNode(t *testing.T, engine string, fault func(int64, http.ResponseWriter, *http.Request, http.Handler) bool) *node {
	t.Helper()
	to, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	next := httputil.NewSingleHostReverseProxy(to)
	n := &node{fault: fault}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if k := n.seen.Add(1); n.fault == nil || !n.fault(k, w, r, next) {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(n.Close)
	return n
}

// unavailable is how an engine answers that has lost its cluster, or a balancer that has lost the engine.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(`{"error":{"root_cause":[],"type":"master_not_discovered_exception","reason":null},"status":503}`))
}

// TestBulksSurviveNodesThatFail has clients read documents together, put an entry into each, and write them back by one bulk, while one of
// two nodes misbehaves for a while. What was acknowledged is there once, and nothing is there twice.
func TestBulksSurviveNodesThatFail(t *testing.T) {
	const from, to = 10, 40 // between these requests the node misbehaves
	for name, c := range map[string]struct {
		fault func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) bool
		loses bool // items may get an error
	}{
		"answers 503": {func(n int64, w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			if n < from || n >= to {
				return false
			}
			unavailable(w)
			return true
		}, true},
		"answers 503, and has done it": {func(n int64, w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if n < from || n >= to {
				return false
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			unavailable(w)
			return true
		}, true},
		"resets connections when it has done it": {func(n int64, _ http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if n < from || n >= to {
				return false
			}
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}, true},
		"is drained": {func(n int64, w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			if n >= from { // it ends each connection with the answer, as long as there are any
				w.Header().Set("Connection", "close")
			}
			return false
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := enginetest.Serve(t)
			bad, good := newNode(t, engine, c.fault), newNode(t, engine, nil)
			cells := newCells(t, engine, bad.URL, good.URL)
			if cells.work(t); bad.seen.Load() < to && c.loses {
				t.Errorf("the node has seen %d requests: it misbehaved too little", bad.seen.Load())
			}
			if failed := cells.check(t); failed > 0 && !c.loses {
				t.Errorf("%d items failed", failed)
			}
		})
	}
}

// TestABulkOnASlowNodeHoldsUpNoOther: one node doesn't answer one client's bulk until the other has answered many of other clients.
func TestABulkOnASlowNodeHoldsUpNoOther(t *testing.T) {
	engine := enginetest.Serve(t)
	stuck, enough := make(chan struct{}), make(chan struct{})
	var answered atomic.Int64
	var held atomic.Bool
	slow := newNode(t, engine, func(_ int64, _ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.HasSuffix(r.URL.Path, "/_bulk") && held.CompareAndSwap(false, true) {
			close(stuck)
			<-enough
		}
		return false
	})
	quick := newNode(t, engine, func(_ int64, w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		next.ServeHTTP(w, r)
		if strings.HasSuffix(r.URL.Path, "/_bulk") && held.Load() && answered.Add(1) == 8 {
			close(enough)
		}
		return true
	})
	cells := newCells(t, engine, slow.URL, quick.URL)
	var first sync.WaitGroup
	first.Go(func() {
		for n := 0; !held.Load(); n++ {
			cells.round(t, "first", fmt.Sprint("first-", n))
		}
	})
	<-stuck
	cells.work(t)
	first.Wait()
	if failed := cells.check(t); failed > 0 {
		t.Errorf("%d items failed", failed)
	}
}

// cells are documents, each with a list of entries.
type cells struct {
	engine, proxy string
	ids           []string

	mu     sync.Mutex
	acked  map[string][]string // by the document
	failed map[string][]string
}

func newCells(t *testing.T, engine string, nodes ...string) *cells {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\nlocks: {path: ''}\nupstream: {health_interval: 0s}\n"),
		config.Overrides{Upstream: nodes, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s := &cells{engine: engine, proxy: running(t, c).URL(), acked: map[string][]string{}, failed: map[string][]string{}}
	w := &world{t: t}
	for i := range 6 {
		s.ids = append(s.ids, fmt.Sprint(i))
		w.ask(engine, "PUT", fmt.Sprintf("/cells/_doc/%d", i), `{"entries":[]}`)
	}
	return s
}

// work has four clients do their rounds at the same time.
func (s *cells) work(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			for round := range 15 {
				s.round(t, fmt.Sprintf("c%d", client), fmt.Sprintf("c%d-%d", client, round))
			}
		})
	}
	wg.Wait()
}

// round has a client put an entry into every document. If it can't read, or gets no answer for its bulk, it goes on all the same.
func (s *cells) round(t *testing.T, session, entry string) {
	w := &world{t: t}
	read := w.ask(s.proxy, "POST", "/cells/_mget", `{"ids":["`+strings.Join(s.ids, `","`)+`"]}`, "Optimist-Session", session)
	if read.Status != http.StatusOK {
		return
	}
	var bulk strings.Builder
	for _, d := range gjson.Get(read.Body, "docs").Array() {
		var entries []string
		if err := json.Unmarshal([]byte(d.Get("_source.entries").Raw), &entries); err != nil {
			t.Errorf("%v: %s", err, d)
			return
		}
		text, _ := json.Marshal(map[string][]string{"entries": append(entries, entry)}) // strings
		fmt.Fprintf(&bulk, "{\"index\":{\"_id\":%q}}\n%s\n", d.Get("_id").Str, text)
	}
	a := w.ask(s.proxy, "POST", "/cells/_bulk", bulk.String(), "Optimist-Session", session)
	items := gjson.Get(a.Body, "items").Array()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, id := range s.ids {
		if a.Status == http.StatusOK && len(items) == len(s.ids) && items[k].Get("index.status").Int() < 300 {
			s.acked[id] = append(s.acked[id], entry)
		} else {
			s.failed[id] = append(s.failed[id], entry)
		}
	}
}

// check holds what was acknowledged against what is stored. It returns how many items failed.
func (s *cells) check(t *testing.T) (failed int) {
	t.Helper()
	w := &world{t: t}
	for _, id := range s.ids {
		stored := map[string]int{}
		for _, entry := range gjson.Get(w.ask(s.engine, "GET", "/cells/_doc/"+id, "").Body, "_source.entries").Array() {
			stored[entry.Str]++
		}
		for _, entry := range s.acked[id] {
			if stored[entry] != 1 {
				t.Errorf("%s: the entry %s was acknowledged, and is there %d times", id, entry, stored[entry])
			}
		}
		for entry, n := range stored {
			if n > 1 || !slices.Contains(s.acked[id], entry) && !slices.Contains(s.failed[id], entry) {
				t.Errorf("%s: the entry %s is there %d times", id, entry, n)
			}
		}
		failed += len(s.failed[id])
	}
	return failed
}

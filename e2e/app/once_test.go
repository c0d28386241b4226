package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// gate stands between optimist and the engine, and holds one request: before it goes to the engine, or before its answer comes back.
type gate struct {
	*httptest.Server
	engine *httputil.ReverseProxy

	mu      sync.Mutex
	holds   func(r *http.Request) bool // nil: nothing more
	after   bool
	held    chan struct{} // closed when the request is held
	release chan bool     // true: what is held before goes to the engine after all
	done    chan struct{} // closed when that has its answer
}

func newGate(t *testing.T, engine string) *gate {
	t.Helper()
	u, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{engine: httputil.NewSingleHostReverseProxy(u)}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// hold has the gate hold the next request that fits.
func (g *gate) hold(fits func(r *http.Request) bool, after bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds, g.after = fits, after
	g.held, g.release, g.done = make(chan struct{}), make(chan bool, 1), make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	held := g.holds != nil && g.holds(r)
	if held {
		g.holds = nil
	}
	g.mu.Unlock()
	if !held {
		g.engine.ServeHTTP(w, r)
		return
	}
	defer close(g.done)
	// What is held outlives who sent it: a request that is under way when its sender dies may still arrive.
	r = r.Clone(context.WithoutCancel(r.Context()))
	body := new(strings.Builder)
	buf := make([]byte, 1<<16)
	for {
		n, err := r.Body.Read(buf)
		body.Write(buf[:n])
		if err != nil {
			break
		}
	}
	r.Body = http.NoBody
	if body.Len() > 0 {
		r.Body = readCloser{strings.NewReader(body.String())}
	}
	answer := httptest.NewRecorder()
	if g.after {
		g.engine.ServeHTTP(answer, r)
	}
	close(g.held)
	if <-g.release && !g.after {
		g.engine.ServeHTTP(answer, r)
	}
	panic(http.ErrAbortHandler) // nobody is there who waits for the answer
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// once are the rules for requests with a key: they count a number, which may not be done twice.
const once = "rules:\n- {name: marked, match: {index: ['*']}, write_id: _writes, merge: {paths: {/n: sum}}}\n"

// step is a step of a request with a key at which its proxy is killed.
type step struct {
	name  string
	fits  func(r *http.Request) bool
	after bool
}

// steps are all of them, of requests that write documents by these methods.
func steps(index string) []step {
	writes := func(path string, nth int) func(r *http.Request) bool {
		seen := 0
		return func(r *http.Request) bool {
			if r.Method == http.MethodGet || r.Method == http.MethodHead || !strings.HasPrefix(r.URL.Path, path) || strings.Contains(r.URL.Path, "optimist-probe") {
				return false
			}
			seen++
			return seen == nth
		}
	}
	const records = "/optimist-idempotency/_"
	return []step{
		{"before the record", writes(records, 1), false},
		{"after the record", writes(records, 1), true},
		{"before the write", writes("/"+index+"/_", 1), false},
		{"after the write", writes("/"+index+"/_", 1), true},
		{"before the completion", writes(records, 2), false},
		{"after the completion", writes(records, 2), true},
	}
}

// TestAKillBetweenAnyTwoStepsCountsOnce: a proxy is killed at each step of a request with a key. The client repeats through another proxy,
// and through the one that was started again: there is one effect at most, and everybody who is told of a success is told the same.
func TestAKillBetweenAnyTwoStepsCountsOnce(t *testing.T) {
	targets := func(t *testing.T, test func(t *testing.T, e target)) { test(t, inMemory(t)) }
	if long() {
		targets = eachTarget
	}
	targets(t, func(t *testing.T, e target) {
		g := newGate(t, e.url)
		o := optimist.Options{Upstream: []string{g.URL}, Config: once}
		one, two := optimist.Start(t, o), optimist.Start(t, o)
		for _, c := range []struct{ name, method, path, body, media string }{
			{"a patch", "PATCH", "/_doc/1", `[{"op":"increment","path":"/n","value":1}]`, "application/vnd.optimist-patch+json"},
			{"a document", "PUT", "/_doc/1", `{"n":1}`, "application/json"},
			{"a document without id", "POST", "/_doc", `{"n":1}`, "application/json"},
			{"a bulk", "POST", "/_bulk", "{\"index\":{}}\n{\"n\":1}\n", "application/x-ndjson"},
		} {
			for k, s := range steps("") {
				for _, late := range []bool{false, true} {
					if late && (s.after || k == 0) {
						continue
					}
					name := fmt.Sprintf("%s/%s", c.name, s.name)
					if late {
						name += ", and what was sent arrives late"
					}
					t.Run(name, func(t *testing.T) {
						index := e.index(t)
						s := steps(index)[k] // it counts anew
						if c.method == "PATCH" {
							e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1", `{"n":0}`)
						}
						killAt(t, e, g, one, two, &s, late, keyedRequest{c.method, "/" + index + c.path, c.body, c.media, name}, index)
					})
				}
			}
		}
	})
}

type keyedRequest struct{ method, path, body, media, key string }

func (r *keyedRequest) send(t *testing.T, p *optimist.Process) (answer, error) {
	t.Helper()
	return do(t.Context(), r.method, p.URL+r.path, r.body, http.Header{"Idempotency-Key": {`"` + r.key + `"`}, "Content-Type": {r.media}})
}

func killAt(t *testing.T, e target, g *gate, one, two *optimist.Process, s *step, late bool, r keyedRequest, index string) {
	t.Helper()
	g.hold(s.fits, s.after)
	first := make(chan error, 1)
	go func() {
		a, err := r.send(t, one)
		if err == nil {
			err = fmt.Errorf("the client has an answer: %v", a)
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.holds != nil { // it never came
				g.holds = nil
				close(g.held)
				close(g.done)
			}
		} else {
			err = nil
		}
		first <- err
	}()
	<-g.held
	one.Kill()
	if err := <-first; err != nil {
		g.release <- false
		t.Fatal(err)
	}
	told := ""
	repeat := func(p *optimist.Process) string {
		a, err := r.send(t, p)
		if err != nil {
			t.Fatal(err)
		}
		kind := gjson.Get(a.body, "error.type").Str
		switch {
		case a.status < 300 && told != "" && told != a.body:
			t.Errorf("clients are told %s and %s", told, a.body)
		case a.status < 300:
			told = a.body
			return "done"
		case a.status == http.StatusConflict && kind == "idempotency_key_in_use", a.status == http.StatusGatewayTimeout && kind == "unknown_outcome":
			return "unknown"
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
		return ""
	}
	if !late {
		g.release <- false
		<-g.done
	}
	outcomes := []string{repeat(two)}
	if late {
		g.release <- true
		<-g.done
	}
	if err := one.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	outcomes = append(outcomes, repeat(one), repeat(two))
	n := effects(t, e, index)
	done := outcomes[2] == "done"
	marked := !strings.HasPrefix(r.key, "a bulk")
	wants := map[string]bool{ // whether everybody knows in the end that it was done
		"before the record": true, "after the record": false, "before the write": late && marked, "after the write": marked,
		"before the completion": marked || late, "after the completion": true,
	}
	if n > 1 || done && n != 1 || done != wants[s.name] || !done && n == 1 && wants[s.name] {
		t.Errorf("repeats were told %v; there are %d effects", outcomes, n)
	}
}

// effects is how often the request counted.
func effects(t *testing.T, e target, index string) (n int64) {
	t.Helper()
	e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_refresh", "")
	gjson.Get(e.send(t, http.StatusOK, http.MethodGet, "/"+index+"/_search", "").body, "hits.hits").ForEach(func(_, hit gjson.Result) bool {
		n += hit.Get("_source.n").Int()
		return true
	})
	return n
}

// An operator deletes the index of the records while optimist runs. The engine creates it again with the next record. A proxy that starts
// later must take it for an index of records, or every request with a key is refused from then on.
func TestARecordsIndexThatIsDeletedIsMadeAsBefore(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		records := index + "-keys"
		config := "idempotency: {index: " + records + "}\nrules: []\n"
		defer func() {
			for _, path := range []string{"/" + records, "/_index_template/" + records} {
				enginetest.Ask(t, "DELETE", e.URL+path, "")
			}
		}()
		write := func(p *optimist.Process, key string) {
			t.Helper()
			a := enginetest.Ask(t, "PUT", p.URL+"/"+index+"/_doc/1", `{"n":1}`, "Idempotency-Key", key)
			if a.Status != http.StatusOK && a.Status != http.StatusCreated {
				t.Errorf("%s: %d %s", key, a.Status, a.Body)
			}
		}
		p := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: config})
		write(p, "before")
		enginetest.Ask(t, "DELETE", e.URL+"/"+records, "")
		write(p, "after")
		write(optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: config}), "later")
	})
}

package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// stamping is for an application that writes back whole what it reads. No session is looked at: the stamp alone tells the base.
const stamping = `rules:
  - name: stamped
    base: {stamp: _rev, from: [stamp], reads: [get, mget, search]}
    merge: {paths: {` + app.CounterPath + `: sum}}
`

// turns is a load balancer that gives each request to the next of the proxies.
func turns(t *testing.T, proxies ...*optimist.Process) string {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	var to []http.Handler
	for _, p := range proxies {
		u, err := url.Parse(p.URL)
		if err != nil {
			t.Fatal(err)
		}
		to = append(to, &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, Transport: transport,
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // an answer that never comes
		})
	}
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to[int(n.Add(1))%len(to)].ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
	})
	return s.URL
}

// refusedAsConflicts fails the test if anything was lost, or refused otherwise than by a 409.
func refusedAsConflicts(t *testing.T, r *app.Result) {
	t.Helper()
	lossless(t, r)
	if r.Refused != r.Statuses[409] || r.Acknowledged == 0 {
		t.Errorf("refused otherwise than by a conflict, or nothing acknowledged: %s", r)
	}
}

// TestStampedApplicationLosesNothingThroughTwoProxies that take turns: the one that gets a write has not served what it is based on, and its
// body is not known there as a rule.
func TestStampedApplicationLosesNothingThroughTwoProxies(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, left, right := e.index(t), optimistFor(t, e, stamping), optimistFor(t, e, stamping)
		balanced := turns(t, left, right)
		for _, shape := range app.Shapes() {
			t.Run(shape.String(), func(t *testing.T) {
				r, o := run(t, &app.Application{
					URLs: []string{balanced}, Store: e.url, Path: "/" + index + "/_doc/" + shape.String(),
					Shape: shape, Workers: 16, Rounds: rounds(16), Looks: 10, Steps: 3,
				})
				refusedAsConflicts(t, &r)
				spoken(t, o)
				if r.Errors != 0 || r.Unknown != 0 {
					t.Errorf("%s", &r)
				}
			})
		}
	})
}

// TestStampedApplicationOutlivesItsProxies: both are killed under load, and started again; what clients hold is older than they are.
func TestStampedApplicationOutlivesItsProxies(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, left, right := e.index(t), optimistFor(t, e, stamping), optimistFor(t, e, stamping)
		balanced := turns(t, left, right)
		for _, shape := range app.Shapes() {
			t.Run(shape.String(), func(t *testing.T) {
				a := &app.Application{
					URLs: []string{balanced}, Store: e.url, Path: "/" + index + "/_doc/" + shape.String(),
					Shape: shape, Workers: 16, Rounds: 2 * rounds(16),
				}
				const restarts = 2
				due := make(chan struct{}, restarts)
				var ended atomic.Int64
				every := int64(a.Workers * a.Rounds / (restarts + 1))
				a.Round = func() {
					if n := ended.Add(1); n%every == 0 && n/every <= restarts {
						due <- struct{}{}
					}
				}
				restarted := make(chan error, 1)
				go func() {
					for range restarts {
						<-due
						left.Kill()
						right.Kill()
						for _, p := range []*optimist.Process{left, right} {
							if err := p.Start(t.Context()); err != nil {
								restarted <- err
								return
							}
						}
					}
					restarted <- nil
				}()
				r, _ := run(t, a)
				if err := <-restarted; err != nil {
					t.Fatal(err)
				}
				refusedAsConflicts(t, &r)
				if r.Errors == 0 {
					t.Error("nobody noticed: nothing was tested")
				}
			})
		}
	})
}

// TestStampedApplicationIsRefusedNothingByOneProxy, whatever its habits: copies are told apart by their stamps, and no session is needed. Those
// who keep theirs and save it again and again among them.
func TestStampedApplicationIsRefusedNothingByOneProxy(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, stamping)
		more := append(habits[len(habits)-1:],
			habit{"plain", func(*app.Application) {}, nil},
			habit{"from-memory", func(a *app.Application) { a.Memory = 5 }, nil},
			habit{"from-memory-and-all-of-it", func(a *app.Application) { a.Memory, a.Looks, a.Idle, a.Steps = 5, 10, 10, 3 }, nil})
		for _, habit := range more {
			for _, shape := range app.Shapes() {
				for _, sessions := range []app.Sessions{app.Unnamed, app.Pooled} {
					if sessions == app.Pooled && e.name != "embedded" && !long() {
						continue // who shares connections with whom is the proxy's matter alone
					}
					t.Run(fmt.Sprintf("%s/%s/%d", habit.name, shape, sessions), func(t *testing.T) {
						a := &app.Application{
							URLs: []string{p.URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%s-%d", index, habit.name, shape, sessions),
							Shape: shape, Workers: 16, Rounds: rounds(16), Sessions: sessions,
						}
						habit.set(a)
						r, o := run(t, a)
						flawless(t, &r)
						spoken(t, o)
						if o.ambiguous != 0 {
							t.Errorf("%d were guesses", o.ambiguous)
						}
					})
				}
			}
		}
	})
}

var stampText = regexp.MustCompile(`,?"_rev":"\d+-\d+-[0-9a-v]{10}-[0-9a-v]{10}"`)

// TestRepeatedPutOfACopyCountsOnce: the client gives up, and sends the same again, while its first try is still out.
func TestRepeatedPutOfACopyCountsOnce(t *testing.T) {
	const patience = 100 * time.Millisecond
	e := inMemory(t)
	index := e.index(t)
	p := optimistFor(t, slow(t, e, 10, 2*patience), stamping)
	for _, shape := range app.Shapes() {
		r, _ := run(t, &app.Application{
			URLs: []string{p.URL}, Store: e.url, Path: "/" + index + "/_doc/" + shape.String(),
			Shape: shape, Workers: 8, Rounds: rounds(16), Timeout: patience,
		})
		lossless(t, &r)
		if r.Refused != 0 || r.Unknown != 0 || r.Found != r.Acknowledged { // errors are reads that a busy machine was too slow for
			t.Errorf("a repeated write is refused, or its end isn't known: %s", &r)
		}
		if r.Repeats == 0 {
			t.Error("nobody repeated a write: nothing was tested")
		}
	}
}

// TestStampOfAnotherDocumentGuardsNothing: not of another id or routing, nor of an index of the same name that is another one by now.
func TestStampOfAnotherDocumentGuardsNothing(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		for _, by := range []string{"proxied", "direct"} {
			index, p := e.index(t), optimistFor(t, e, stamping)
			doc := "/" + index + "/_doc/1"
			e.send(t, 200, "DELETE", "/"+index, "")
			e.send(t, 200, "PUT", "/"+index, `{"settings":{"number_of_shards":2,"number_of_replicas":0}}`) // in one shard, a document is the same by all routings
			e.send(t, 201, "PUT", doc, `{"a":1}`)
			e.send(t, 201, "PUT", "/"+index+"/_doc/2", `{"a":2}`)
			mine := stampedSource(t, p.URL+doc)
			for _, other := range []string{"/" + index + "/_doc/2", "/" + index + "/_doc/1?routing=elsewhere"} {
				a, err := do(t.Context(), "PUT", p.URL+other, mine, nil)
				if err != nil || a.status > 201 || !strings.HasPrefix(a.outcome(), "passed;attempts=1;base=none") {
					t.Errorf("%s: %d %s [%s] %v", other, a.status, a.body, a.outcome(), err)
				}
			}
			mine = stampedSource(t, p.URL+doc)
			switch by {
			case "proxied":
				request(t, 200, "DELETE", p.URL+"/"+index, "", nil)
			case "direct":
				e.send(t, 200, "DELETE", "/"+index, "")
				p.Kill() // or wait for a second: so old can what is known of an index be
				if err := p.Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			e.send(t, 201, "PUT", doc, `{"a":"another"}`)
			a := request(t, 200, "PUT", p.URL+doc, mine, nil)
			if !strings.HasPrefix(a.outcome(), "passed;attempts=1;base=none") {
				t.Errorf("%s: %s", by, a.outcome())
			}
			if got := e.source(t, doc); strings.Contains(got, "_rev") {
				t.Errorf("stored is %s", got)
			}
		}
	})
}

// stampedSource is a document as a client gets it, with its stamp.
func stampedSource(t *testing.T, url string) string {
	t.Helper()
	body := request(t, 200, "GET", strings.Replace(url, "/_doc/", "/_source/", 1), "", nil).body
	if len(stampText.FindAllString(body, -1)) != 1 {
		t.Fatalf("no stamp in %s", body)
	}
	return body
}

// TestStampedAnswersAreTheEnginesButForTheStamps on every engine, in every form in which documents are served whole.
func TestStampedAnswersAreTheEnginesButForTheStamps(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, stamping)
		e.send(t, 200, "PUT", "/"+index+"/_mapping", `{"dynamic":false}`)
		e.send(t, 200, "POST", "/_aliases", `{"actions":[{"add":{"index":"`+index+`","alias":"alias-of-`+index+`"}}]}`)
		doc := "/" + index + "/_doc/"
		e.send(t, 201, "PUT", doc+"1?refresh=true", "{ \"a\" : 9007199254740993.10 ,\n \"\\u00e9\":[1, {\"x\":\"}\"}]}")
		e.send(t, 201, "PUT", doc+"2?refresh=true", `{}`)
		e.send(t, 201, "PUT", doc+"r%C3%BC%2F3?routing=x%2By&refresh=true", `{"a":{"_rev":1}}`)
		took := regexp.MustCompile(`"took" ?: ?\d+`)
		for _, q := range []struct {
			method, path, body string
			stamps             int
		}{
			{"GET", doc + "1", "", 1}, {"GET", doc + "1?pretty", "", 1}, {"GET", doc + "2?pretty=true", "", 1}, {"GET", doc + "r%C3%BC%2F3?routing=x%2By", "", 1},
			{"GET", strings.Replace(doc, "/app-", "/alias-of-app-", 1) + "1", "", 1}, {"HEAD", doc + "1", "", 0}, {"GET", doc + "absent", "", 0},
			{"GET", "/" + index + "/_source/1", "", 1}, {"GET", "/" + index + "/_source/1?pretty", "", 1}, {"GET", "/" + index + "/_source/r%C3%BC%2F3?routing=x%2By&pretty", "", 1},
			{"GET", "/" + index + "/_source/2?pretty", "", 1}, {"GET", "/" + index + "/_source/absent", "", 0},
			{"POST", "/" + index + "/_mget", `{"ids":["1","absent","2"]}`, 2},
			{"POST", "/_mget?pretty", `{"docs":[{"_index":"` + index + `","_id":"rü/3","routing":"x+y"},{"_index":"` + index + `","_id":"1","_source":["a"]}]}`, 1},
			{"POST", "/" + index + "/_search", `{"sort":["_doc"]}`, 3}, {"POST", "/" + index + "/_search?pretty", `{"sort":["_doc"],"version":true,"track_total_hits":true}`, 3},
			{"POST", "/" + index + "/_search?seq_no_primary_term=true&routing=x%2By", `{"size":5}`, -1}, {"POST", "/" + index + "/_search", `{"size":0}`, 0},
			{"POST", "/" + index + "/_search", `{"_source":["a"]}`, 0}, {"POST", "/" + index + "/_search?filter_path=hits.hits", `{}`, 0}, {"GET", doc + "1?_source=false", "", 0},
			{"GET", doc + "1?filter_path=_source,_id", "", 0}, {"GET", doc + "1?format=yaml", "", 0},
		} {
			direct, proxied := sent(t, q.method, e.url+q.path, q.body), sent(t, q.method, p.URL+q.path, q.body)
			stamps := stampText.FindAllString(proxied.body, -1)
			if got := stampText.ReplaceAllString(proxied.body, ""); proxied.status != direct.status || took.ReplaceAllString(got, "") != took.ReplaceAllString(direct.body, "") ||
				q.stamps >= 0 && len(stamps) != q.stamps || q.stamps < 0 && len(stamps) == 0 {
				t.Errorf("%s %s %s: %d stamps, want %d\ndirect  %d %s\nproxied %d %s", q.method, q.path, q.body, len(stamps), q.stamps, direct.status, direct.body, proxied.status, proxied.body)
			}
			if q.method == "HEAD" {
				if want := sent(t, "GET", p.URL+q.path, "").header.Get("Content-Length"); proxied.header.Get("Content-Length") != want {
					t.Errorf("%s: %s bytes, and %s by GET", q.path, proxied.header.Get("Content-Length"), want)
				}
			}
		}
		a := sent(t, "POST", p.URL+"/"+index+"/_update/1?_source=true", `{"doc":{"b":1}}`)
		if a.status != 200 || len(stampText.FindAllString(a.body, -1)) != 1 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func sent(t *testing.T, method, url, body string) answer {
	t.Helper()
	a, err := do(t.Context(), method, url, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestStampsOfManyReadersAreToldApart: each of many that read the same revision at once, by one connection or another, has one of its own.
func TestStampsOfManyReadersAreToldApart(t *testing.T) {
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/1"
	p := optimistFor(t, e, stamping)
	e.send(t, 201, "PUT", doc, `{"a":1}`)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				a, err := do(t.Context(), "GET", p.URL+doc, "", nil)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen[stampText.FindString(a.body)] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 400 {
		t.Errorf("%d stamps for 400 reads", len(seen))
	}
}

package locks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// enforcing starts a proxy whose rule enforces locks on an index.
func enforcing(t *testing.T, upstream, index, locks string) *optimist.Process {
	t.Helper()
	return optimist.Start(t, optimist.Options{Upstream: []string{upstream}, Config: "locks: {index: " + locks + "}\n" +
		"rules: [{name: enforced, match: {index: [" + index + "]}, locks: enforce, lock_path: /path}]\n"})
}

// grant is a lease.
type grant struct{ lock, owner, token string }

// acquired takes a lock, and waits for it.
func acquired(t *testing.T, url, lock, owner, ttl string) grant {
	t.Helper()
	a := enginetest.Ask(t, "PUT", url+lock+"?owner="+owner+"&ttl="+ttl+"&wait=30s", "")
	if a.Status > 201 {
		t.Fatalf("PUT %s: %d %s", lock, a.Status, a.Body)
	}
	return grant{lock, owner, gjson.Get(a.Body, "token").Raw}
}

func (h grant) release(t *testing.T, url string) {
	t.Helper()
	if a := enginetest.Ask(t, "DELETE", url+h.lock+"?owner="+h.owner+"&token="+h.token, ""); a.Status != 200 {
		t.Errorf("DELETE %s: %d %s", h.lock, a.Status, a.Body)
	}
}

// valve holds up writes of documents on their way from a proxy to the engine, while it is closed.
type valve struct {
	mu   sync.Mutex
	open chan struct{} // nil: it is open
	held chan struct{} // gets one for each write that is held up
}

func (v *valve) handle(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	v.mu.Lock()
	open := v.open
	v.mu.Unlock()
	if open != nil && r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/_doc/") && !strings.Contains(r.URL.Path, "gate") &&
		!strings.Contains(r.URL.Path, "-locks") {
		v.held <- struct{}{}
		<-open
	}
	pass.ServeHTTP(w, r)
}

func (v *valve) close() (release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	open := make(chan struct{})
	v.open = open
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.open = nil
		close(open)
	}
}

// TestAWriteOfAStaleHolderNeverLandsOnWhatItsSuccessorWrote holds a write up between its proxy's look at the lock and the engine, until
// somebody else has the lock and has written the document. So it holds up one by the holder, whose lease lapses, and one by a client that
// knows of no locks, in an index that was free of them. The planted bug looks at the lock once, and writes without a guard.
func TestAWriteOfAStaleHolderNeverLandsOnWhatItsSuccessorWrote(t *testing.T) {
	engine.Each(t, []engine.Kind{engine.OpenSearch38, engine.ES9}, staleHolder) // with scripts, and without
}

func TestAWriteOfAStaleHolderNeverLandsOnElasticsearch7(t *testing.T) {
	engine.Long(t)
	engine.Each(t, []engine.Kind{engine.ES7}, staleHolder)
}

func staleHolder(t *testing.T, e *engine.Engine) {
	index, locks := e.Index(t), e.Index(t)+"-locks"
	v := &valve{held: make(chan struct{}, 10)}
	slow := engine.Between(t, e.URL, v.handle)
	a, b := enforcing(t, slow, index, locks), enforcing(t, e.URL, index, locks)
	naive := httptest.NewServer(lookOnce(t, b.URL, slow))
	t.Cleanup(naive.Close)
	t.Cleanup(func() { _, _ = e.Do(t.Context(), "DELETE", "/"+locks, "") })
	for _, c := range []struct {
		name, through string
		holder, lands bool
		touch         string
		status        int
		want          string
	}{
		{"a stranger's", a.URL, false, false, "", 423, `{"by":"b"}`}, // first: the index is free of locks
		{"stale holder's", a.URL, true, false, "", 409, `{"by":"b"}`},
		{"touched", a.URL, true, false, "&fence=touch", 409, `{"by":"nobody"}`}, // the successor writes nothing
		{"the planted bug's", naive.URL, true, true, "", 200, `{"by":"b"}`},
	} {
		if c.lands && e.Kind != engine.All()[0] {
			continue // it says something of the test, not of the engine
		}
		target := "/" + index + "/_doc/" + strings.ReplaceAll(c.name[:7], " ", "-")
		lock := strings.Replace(target, "_doc", "_lock/doc", 1)
		if got := enginetest.Ask(t, "PUT", b.URL+target, `{"by":"nobody"}`); got.Status != 201 {
			t.Fatalf("%s: %d %s", c.name, got.Status, got.Body)
		}
		var first grant
		var fields []string
		if c.holder {
			first = acquired(t, b.URL, lock, "a", "1500ms")
			fields = []string{"Optimist-Lock-Token", first.token}
		}
		open := v.close()
		late := make(chan enginetest.Answer, 1)
		go func() { late <- enginetest.Try(t, "PUT", c.through+target, `{"by":"a"}`, fields...) }()
		<-v.held
		second := acquired(t, b.URL, lock, "b", "60s"+c.touch) // when the first lease has ended
		if c.touch == "" {
			if got := enginetest.Ask(t, "PUT", b.URL+target, `{"by":"b"}`, "Optimist-Lock-Token", second.token); got.Status != 200 {
				t.Fatalf("%s: the successor: %d %s", c.name, got.Status, got.Body)
			}
		}
		open()
		got := <-late
		stored := enginetest.Ask(t, "GET", e.URL+strings.Replace(target, "_doc", "_source", 1), "").Body
		if got.Status != c.status || (stored != c.want) != c.lands {
			t.Errorf("%s write: %d %s; stored is %s", c.name, got.Status, got.Body, stored)
		}
		second.release(t, b.URL)
	}
}

// event is a document for a data stream.
const event = `{"@timestamp":"2026-01-01T00:00:00Z","path":"/a/b"}`

// dataStream makes a data stream with the document 1.
func dataStream(t *testing.T, e *engine.Engine) string {
	t.Helper()
	stream := e.Index(t)
	for _, path := range []string{"/_index_template/" + stream, "/_data_stream/" + stream} {
		t.Cleanup(func() { _, _ = e.Do(context.Background(), "DELETE", path, "") })
	}
	for _, c := range [][2]string{
		{"/_index_template/" + stream, `{"index_patterns":["` + stream + `"],"data_stream":{},"priority":500}`},
		{"/" + stream + "/_create/1", event},
	} {
		if a := enginetest.Ask(t, "PUT", e.URL+c[0], c[1]); a.Status > 201 {
			t.Fatalf("%s: %d %s", c[0], a.Status, a.Body)
		}
	}
	return stream
}

// TestATouchFindsEachDocumentOfAnID: those with a routing are on another shard, and those of a data stream in an index behind it.
func TestATouchFindsEachDocumentOfAnID(t *testing.T) {
	engine.Each(t, []engine.Kind{engine.OpenSearch38, engine.ES9}, func(t *testing.T, e *engine.Engine) {
		index, stream, locks := e.Index(t), dataStream(t, e), e.Index(t)+"-locks"
		t.Cleanup(func() { _, _ = e.Do(context.Background(), "DELETE", "/"+locks, "") })
		var documents []string
		ask := func(method, url, body string) string {
			t.Helper()
			a := enginetest.Ask(t, method, url, body)
			if a.Status > 201 {
				t.Fatalf("%s %s: %d %s", method, url, a.Status, a.Body)
			}
			return a.Body
		}
		ask("PUT", e.URL+"/"+index, `{"settings":{"number_of_shards":5},"aliases":{"`+index+`-a":{"routing":"a"}}}`)
		routings := []string{"", "?routing=a", "?routing=b", "?routing=c"}
		for _, routing := range routings {
			documents = append(documents, "/"+index+"/_doc/1"+routing)
			ask("PUT", e.URL+"/"+index+"/_doc/1"+routing, `{"of":"`+routing+`"}`)
		}
		ask("POST", e.URL+"/"+stream+"/_rollover", "")
		second := gjson.Get(ask("PUT", e.URL+"/"+stream+"/_create/2", event), "_index").Str
		ask("POST", e.URL+"/"+stream+"/_refresh", "")
		first := gjson.Get(ask("POST", e.URL+"/"+stream+"/_search", `{"query":{"ids":{"values":["1"]}}}`), "hits.hits.0._index").Str
		documents = append(documents, "/"+first+"/_doc/1", "/"+second+"/_doc/2")
		p := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: "locks: {index: " + locks + "}\n"})
		before := make([]string, len(documents))
		for n, touch := range []string{index, index + "-a", stream} {
			for i, target := range documents {
				before[i] = ask("GET", e.URL+target, "")
			}
			ask("POST", p.URL+"/"+touch+"/_lock/docs", `{"owner":"a","ids":["1","2"],"fence":"touch"}`)
			for i, target := range documents {
				after, touched := ask("GET", e.URL+target, ""), (n == 2) == (i >= len(routings))
				if (gjson.Get(after, "_version").Int() > gjson.Get(before[i], "_version").Int()) != touched ||
					gjson.Get(after, "_routing").Str != gjson.Get(before[i], "_routing").Str {
					t.Errorf("%s, touched by %s: %s became %s", target, touch, before[i], after)
				}
			}
		}
	})
}

// TestALockOfADataStreamCountsByEachOfItsNames: the engines tell the aliases of a stream apart from those of the indices behind it.
func TestALockOfADataStreamCountsByEachOfItsNames(t *testing.T) {
	engine.Each(t, []engine.Kind{engine.OpenSearch38, engine.ES9}, func(t *testing.T, e *engine.Engine) {
		stream, locks := dataStream(t, e), e.Index(t)+"-locks"
		t.Cleanup(func() { _, _ = e.Do(context.Background(), "DELETE", "/"+locks, "") })
		names := []string{stream}
		alias := enginetest.Ask(t, "POST", e.URL+"/_aliases", `{"actions":[{"add":{"index":"`+stream+`","alias":"`+stream+`-a","is_write_index":true}}]}`)
		if alias.Status == 200 { // OpenSearch has none
			names = append(names, stream+"-a")
		} else if e.Kind == engine.ES9 {
			t.Fatalf("the alias: %d %s", alias.Status, alias.Body)
		}
		p := enforcing(t, e.URL, stream, locks)
		at := enginetest.Ask(t, "GET", e.URL+"/"+stream+"?filter_path=*.data_stream", "").Body
		behind, _, _ := strings.Cut(strings.TrimPrefix(at, `{"`), `"`)
		for _, of := range append(names, behind) {
			for _, lock := range []string{"/" + of + "/_lock/doc/1", "/" + of + "/_lock/tree/a"} {
				held := acquired(t, p.URL, lock, "a", "60s")
				for _, through := range append(names, behind) {
					if a := enginetest.Ask(t, "PUT", p.URL+"/"+through+"/_create/1", event); a.Status != 423 {
						t.Errorf("a create by %s, with %s: %d %s", through, lock, a.Status, a.Body)
					}
				}
				update := []string{"POST", p.URL + "/" + behind + "/_update/1", `{"doc":{"of":"` + lock + `"}}`}
				if a := enginetest.Ask(t, update[0], update[1], update[2]); a.Status != 423 {
					t.Errorf("an update, with %s: %d %s", lock, a.Status, a.Body)
				}
				if a := enginetest.Ask(t, update[0], update[1], update[2], "Optimist-Lock-Token", held.token); a.Status != 200 {
					t.Errorf("an update by the holder, with %s: %d %s", lock, a.Status, a.Body)
				}
				held.release(t, p.URL)
			}
		}
	})
}

// lookOnce is a proxy with the bug: it looks at the lock, and then forwards the write as it is.
func lookOnce(t *testing.T, locks, upstream string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		holder := enginetest.Try(t, "GET", locks+strings.Replace(r.URL.Path, "_doc", "_lock/doc", 1), "")
		if gjson.Get(holder.Body, "owner").Str != "a" {
			w.WriteHeader(http.StatusLocked)
			return
		}
		a := enginetest.Try(t, r.Method, upstream+r.URL.Path, string(body))
		w.WriteHeader(a.Status)
	})
}

// TestAHolderWhoseProxyIsStoppedDoesNoHarm has a holder write again and again through a proxy that is stopped at any moment, for longer
// than the lease lasts. Its successor writes once. When the proxy goes on, that write has to stay.
func TestAHolderWhoseProxyIsStoppedDoesNoHarm(t *testing.T) {
	engine.Each(t, engine.All()[:1], func(t *testing.T, e *engine.Engine) { stoppedHolders(t, e, 3) })
}

func TestHoldersWhoseProxiesAreStoppedDoNoHarmManyTimes(t *testing.T) {
	engine.Long(t)
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) { stoppedHolders(t, e, 60) })
}

func stoppedHolders(t *testing.T, e *engine.Engine, rounds int) {
	index, locks := e.Index(t), e.Index(t)+"-locks"
	a, b := enforcing(t, e.URL, index, locks), enforcing(t, e.URL, index, locks)
	t.Cleanup(func() { _, _ = e.Do(t.Context(), "DELETE", "/"+locks, "") })
	for n := range rounds {
		target := fmt.Sprintf("/%s/_doc/%d", index, n)
		lock := strings.Replace(target, "_doc", "_lock/doc", 1)
		first := acquired(t, b.URL, lock, "a", "400ms")
		begun, answers := make(chan struct{}), make(chan int, 1000)
		var writers sync.WaitGroup
		for range 4 {
			writers.Go(func() {
				for k := range 200 {
					got := enginetest.Try(t, "PUT", a.URL+target, fmt.Sprintf(`{"by":"a","n":%d}`, k), "Optimist-Lock-Token", first.token)
					if answers <- got.Status; got.Status == 409 {
						return
					}
				}
			})
		}
		go func() {
			for range 3 + n%7 { // the moment differs from round to round
				<-answers
			}
			close(begun)
			for range answers {
			}
		}()
		<-begun
		stop(t, a, syscall.SIGSTOP)
		second := acquired(t, b.URL, lock, "b", "60s")
		got := enginetest.Ask(t, "PUT", b.URL+target, `{"by":"b"}`, "Optimist-Lock-Token", second.token)
		stop(t, a, syscall.SIGCONT)
		if got.Status > 201 {
			t.Fatalf("round %d: the successor: %d %s", n, got.Status, got.Body)
		}
		writers.Wait()
		close(answers)
		if stored := enginetest.Ask(t, "GET", e.URL+strings.Replace(target, "_doc", "_source", 1), "").Body; stored != `{"by":"b"}` {
			t.Fatalf("round %d: stored is %s", n, stored)
		}
		second.release(t, b.URL)
	}
}

func stop(t *testing.T, p *optimist.Process, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID(), s); err != nil {
		t.Fatal(err)
	}
}

// TestATreeIsEnforcedAcrossProxies has a directory locked through one proxy while clients write below it through another.
func TestATreeIsEnforcedAcrossProxies(t *testing.T) {
	engine.Each(t, engine.Scripted()[:1], treeAcrossProxies)
}

func TestATreeIsEnforcedAcrossProxiesOnAllEngines(t *testing.T) {
	engine.Long(t)
	engine.Each(t, engine.All(), treeAcrossProxies)
}

func treeAcrossProxies(t *testing.T, e *engine.Engine) {
	index, locks := e.Index(t), e.Index(t)+"-locks"
	a, b := enforcing(t, e.URL, index, locks), enforcing(t, e.URL, index, locks)
	t.Cleanup(func() { _, _ = e.Do(t.Context(), "DELETE", "/"+locks, "") })
	write := func(p *optimist.Process, id, path string, fields ...string) int {
		return enginetest.Ask(t, "PUT", p.URL+"/"+index+"/_doc/"+id, `{"path":"`+path+`"}`, fields...).Status
	}
	for range 3 { // the index is found to be free of locks
		write(a, "1", "/clinton/projects/a.txt")
	}
	lease := acquired(t, b.URL, "/"+index+"/_lock/tree/clinton/projects", "mover", "1500ms")
	if s := write(a, "1", "/clinton/projects/a.txt"); s != 423 {
		t.Errorf("below the lock: %d", s)
	}
	if s := write(a, "1", "/clinton/projects/b.txt", "Optimist-Lock-Token", lease.token); s != 200 {
		t.Errorf("by the holder, through the other proxy: %d", s)
	}
	if s := write(a, "2", "/clinton/photos/a.jpg"); s != 201 {
		t.Errorf("beside the lock: %d", s)
	}
	enginetest.Wait(t, "the end of the lease", func() bool { return write(a, "1", "/clinton/projects/a.txt") == 200 })
	if s := write(a, "1", "/clinton/projects/b.txt", "Optimist-Lock-Token", lease.token); s != 409 {
		t.Errorf("by the holder whose lease has ended: %d", s)
	}
}

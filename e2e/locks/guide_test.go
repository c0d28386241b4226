package locks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// reader is a program that was written by the Definitive Guide: it knows documents, and nothing of leases.
type reader struct {
	t       testing.TB
	url     string
	session string
}

func (r reader) try(method, path, body string) (status int, answer gjson.Result, err error) {
	req, err := http.NewRequestWithContext(context.Background(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		return 0, answer, err
	}
	req.Header.Set("Content-Type", "application/json")
	if r.session != "" {
		req.Header.Set("Optimist-Session", r.session)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, answer, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, gjson.ParseBytes(b), err
}

// do makes a request that has to be answered with the status and the result, or the error's type.
func (r reader) do(method, path, body string, status int, word string) gjson.Result {
	r.t.Helper()
	got, a, err := r.try(method, path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if said := a.Get("result").Str + a.Get("error.type").Str; got != status || said != word {
		r.t.Fatalf("%s %s %s: %d %s, want %d %s: %s", method, path, body, got, said, status, word, a.Raw)
	}
	return a
}

// eachGuide gives each test two sessions at two proxies whose index fs is one of locks.
func eachGuide(t *testing.T, ttl string, test func(t *testing.T, e *engine.Engine, a, b reader)) {
	t.Helper()
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		var rs []reader
		for i := range 2 {
			p := optimist.Start(t, optimist.Options{Upstream: []string{e.URL},
				Config: "locks: {index: " + index + ", compat: {index: fs, type: lock, ttl: " + ttl + "}}\n"})
			rs = append(rs, reader{t, p.URL, fmt.Sprint("reader ", i)})
		}
		test(t, e, rs[0], rs[1])
		if status, _, err := (reader{t, e.URL, ""}).try("GET", "/fs", ""); err != nil || status != 404 {
			t.Errorf("the engine has an index of locks: %d %v", status, err)
		}
	})
}

const (
	inConflict = "version_conflict_engine_exception"
	failed     = "illegal_argument_exception"

	// As the book prints it, without a comma behind the script.
	reentrant = `{
  "upsert": { "process_id": 123 },
  "script": "if ( ctx._source.process_id != process_id ) { assert false }; ctx.op = 'noop';"
  "params": {
    "process_id": 123
  }
}`
	countUp = `{
  "upsert": {
    "lock_type":  "shared",
    "lock_count": 1
  },
  "script": "if (ctx._source.lock_type == 'exclusive') { assert false }; ctx._source.lock_count++"
}`
	countDown = `{
  "script": "if (--ctx._source.lock_count == 0) { ctx.op = 'delete' } "
}`
)

func TestDefinitiveGuideGlobalLock(t *testing.T) {
	eachGuide(t, "1m", func(t *testing.T, _ *engine.Engine, a, b reader) {
		first := a.do("PUT", "/fs/lock/global/_create", "{}", 201, "created")
		b.do("PUT", "/fs/lock/global/_create", "{}", 409, inConflict)
		b.do("DELETE", "/fs/lock/global", "", 403, "not_the_owner")
		a.do("DELETE", "/fs/lock/global", "", 200, "deleted")
		second := b.do("PUT", "/fs/_create/global", "{}", 201, "created")
		if second.Get("_seq_no").Int() <= first.Get("_seq_no").Int() || second.Get("_seq_no").Int() == 0 {
			t.Errorf("token %s after %s", second.Get("_seq_no"), first.Get("_seq_no"))
		}
		a.do("PUT", "/fs/_doc/global", "{}", 400, failed)
		b.do("DELETE", "/fs/_doc/global", "", 200, "deleted")
		b.do("DELETE", "/fs/_doc/global", "", 404, "not_found")
	})
}

// TestDefinitiveGuideDeadHolder is the book's first open question: how do we know that we can release the locks held by the dead process?
func TestDefinitiveGuideDeadHolder(t *testing.T) {
	eachGuide(t, "300ms", func(t *testing.T, _ *engine.Engine, a, b reader) {
		a.do("PUT", "/fs/lock/global/_create", "{}", 201, "created")
		for {
			status, _, err := b.try("PUT", "/fs/lock/global/_create", "{}")
			if err != nil {
				t.Fatal(err)
			}
			if status == 201 {
				break
			}
		}
		if status, answer, err := a.try("DELETE", "/fs/lock/global", ""); err != nil || status != 403 && status != 404 {
			t.Errorf("the dead releases what it lost: %d %s %v", status, answer.Raw, err)
		}
	})
}

func TestDefinitiveGuideDocumentLocks(t *testing.T) {
	eachGuide(t, "1m", func(t *testing.T, _ *engine.Engine, a, b reader) {
		b.do("PUT", "/fs/lock/2/_create", `{ "process_id": 7 }`, 201, "created")
		const bulk = `{ "create": { "_id": 1}}
{ "process_id": 123    }
{ "create": { "_id": 2}}
{ "process_id": 123    }
`
		parts := a.do("PUT", "/fs/lock/_bulk", bulk, 200, "")
		if !parts.Get("errors").Bool() || parts.Get("items.0.create.status").Int() != 201 || parts.Get("items.1.create.status").Int() != 409 ||
			parts.Get("items.1.create.error.type").Str != inConflict {
			t.Error(parts)
		}
		b.do("DELETE", "/fs/lock/2", "", 200, "deleted")
		a.do("POST", "/fs/lock/1/_update", reentrant, 200, "noop")
		a.do("POST", "/fs/lock/2/_update", reentrant, 201, "created")
		a.do("POST", "/fs/_update/2", reentrant, 200, "noop")
		b.do("POST", "/fs/lock/1/_update", strings.ReplaceAll(reentrant, "123", "124"), 400, failed)
		for i := range 20 {
			a.do("POST", fmt.Sprintf("/fs/lock/f%d/_update", i), reentrant, 201, "created")
		}
		a.do("POST", "/fs/_refresh", "", 200, "")
		page := a.do("GET", "/fs/lock/_search?scroll=1m", `{ "sort" : ["_doc"], "query": { "match" : { "process_id" : 123 } } }`, 200, "")
		var release strings.Builder
		n := 0
		for hits := page.Get("hits.hits").Array(); len(hits) > 0; hits = page.Get("hits.hits").Array() {
			for _, hit := range hits {
				n++
				fmt.Fprintf(&release, "{ \"delete\": { \"_id\": %s}}\n", hit.Get("_id").Raw)
			}
			page = a.do("GET", "/_search/scroll", `{"scroll":"1m","scroll_id":`+page.Get("_scroll_id").Raw+`}`, 200, "")
		}
		if n != 22 {
			t.Errorf("%d of 22 locks found", n)
		}
		if released := a.do("PUT", "/fs/lock/_bulk", release.String(), 200, ""); released.Get("errors").Bool() {
			t.Error(released)
		}
		b.do("POST", "/fs/lock/1/_update", strings.ReplaceAll(reentrant, "123", "124"), 201, "created")
		b.do("DELETE", "/fs/lock/_query", `{ "query": { "term": { "process_id": 124 } } }`, 200, "")
		a.do("PUT", "/fs/lock/1/_create", `{ "process_id": 123 }`, 201, "created")
	})
}

func TestDefinitiveGuideTreeLocks(t *testing.T) {
	eachGuide(t, "1m", func(t *testing.T, _ *engine.Engine, a, b reader) {
		ancestors := []string{"%2Fclinton", "%2Fclinton%2fprojects", "%2Fclinton%2fprojects%2felasticsearch"}
		const readme, other = "%2Fclinton%2fprojects%2felasticsearch%2fREADME.txt", "%2Fclinton%2fprojects%2felasticsearch%2fLICENSE"
		for _, dir := range ancestors {
			a.do("POST", "/fs/lock/"+dir+"/_update", countUp, 201, "created")
			b.do("POST", "/fs/lock/"+dir+"/_update", countUp, 200, "updated")
		}
		a.do("PUT", "/fs/lock/"+readme+"/_create", `{ "lock_type": "exclusive" }`, 201, "created")
		b.do("PUT", "/fs/lock/"+readme+"/_create", `{ "lock_type": "exclusive" }`, 409, inConflict)
		b.do("PUT", "/fs/lock/"+other+"/_create", `{ "lock_type": "exclusive" }`, 201, "created")
		b.do("PUT", "/fs/lock/%2Fclinton/_create", `{ "lock_type": "exclusive" }`, 409, inConflict)
		if doc := b.do("GET", "/fs/lock/%2Fclinton", "", 200, ""); doc.Get("_source").Raw != `{"lock_type":"shared","lock_count":2}` {
			t.Error(doc)
		}
		a.do("DELETE", "/fs/lock/"+readme, "", 200, "deleted")
		b.do("DELETE", "/fs/lock/"+other, "", 200, "deleted")
		for i := len(ancestors) - 1; i >= 0; i-- {
			a.do("POST", "/fs/lock/"+ancestors[i]+"/_update", countDown, 200, "updated")
			b.do("POST", "/fs/lock/"+ancestors[i]+"/_update", countDown, 200, "deleted")
		}
		b.do("PUT", "/fs/lock/%2Fclinton/_create", `{ "lock_type": "exclusive" }`, 201, "created")
		a.do("POST", "/fs/lock/%2Fclinton/_update", countUp, 400, failed)
	})
}

// TestDefinitiveGuideExcludes has many who read the book contend for one lock, at both proxies, and in one session, too.
func TestDefinitiveGuideExcludes(t *testing.T) {
	eachGuide(t, "1m", func(t *testing.T, _ *engine.Engine, a, b reader) {
		var mu sync.Mutex // held only while the lock is
		var done atomic.Int32
		var wg sync.WaitGroup
		for i := range 8 {
			r := []reader{a, b}[i%2]
			wg.Go(func() {
				for n := 0; n < 5; {
					status, answer, err := r.try("PUT", "/fs/lock/global/_create", "{}")
					switch {
					case err != nil || status != 201 && status != 409:
						t.Errorf("%d %s %v", status, answer.Raw, err)
						return
					case status == 409:
						continue
					}
					if !mu.TryLock() {
						t.Error("two have the lock")
						return
					}
					done.Add(1)
					mu.Unlock()
					if status, answer, err = r.try("DELETE", "/fs/lock/global", ""); err != nil || status != 200 {
						t.Errorf("%d %s %v", status, answer.Raw, err)
						return
					}
					n++
				}
			})
		}
		wg.Wait()
		if done.Load() != 40 {
			t.Errorf("%d of 40 have worked", done.Load())
		}
	})
}

// TestDefinitiveGuideShapes holds the answers against the engine's own to the same requests, in today's language.
func TestDefinitiveGuideShapes(t *testing.T) {
	eachGuide(t, "1m", func(t *testing.T, e *engine.Engine, a, _ reader) {
		index := e.Index(t)
		real := reader{t, e.URL, ""}
		const upsert = `{"script":{"source":"if (ctx._source.process_id != params.process_id) { throw new IllegalStateException('locked') } ctx.op = 'noop'",` +
			`"params":{"process_id":%d}},"upsert":{"process_id":%d}}`
		const up = `{"script":{"source":"if (ctx._source.lock_type == 'exclusive') { throw new IllegalStateException('locked') } ctx._source.lock_count++"},` +
			`"upsert":{"lock_type":"shared","lock_count":1}}`
		const down = `{"script":{"source":"if (--ctx._source.lock_count == 0) { ctx.op = 'delete' }"}}`
		for _, q := range []struct {
			method, path, body string
			scripted           bool
		}{
			{"PUT", "/_create/g", "{}", false}, {"PUT", "/_create/g", "{}", false}, {"GET", "/_doc/g", "", false},
			{"DELETE", "/_doc/g", "", false}, {"DELETE", "/_doc/g", "", false}, {"GET", "/_doc/g", "", false}, {"GET", "/_source/g", "", false},
			{"POST", "/_update/1", fmt.Sprintf(upsert, 1, 1), true}, {"POST", "/_update/1", fmt.Sprintf(upsert, 1, 1), true},
			{"POST", "/_update/1", fmt.Sprintf(upsert, 2, 2), true}, {"POST", "/_update/c", up, true}, {"POST", "/_update/c", up, true},
			{"POST", "/_update/c", down, true}, {"POST", "/_update/c", down, true}, {"POST", "/_update/c", down, true},
			{"PUT", "/_bulk?refresh=true", `{"create":{"_id":"b"}}` + "\n" + `{"process_id":5}` + "\n" + `{"create":{"_id":"b"}}` + "\n{}\n" +
				`{"delete":{"_id":"none"}}` + "\n", false},
			{"GET", "/_search?scroll=1m", `{"query":{"term":{"process_id":5}}}`, false}, {"POST", "/_refresh", "", false},
		} {
			if q.scripted && !e.Kind.Scripts() {
				continue
			}
			theirs, want, err := real.try(q.method, "/"+index+q.path, q.body)
			if err != nil {
				t.Fatal(err)
			}
			ours, got, err := a.try(q.method, "/fs"+q.path, q.body)
			if err != nil || ours != theirs {
				t.Errorf("%s %s: %d %v, the engine %d\n%s\n%s", q.method, q.path, ours, err, theirs, got.Raw, want.Raw)
				continue
			}
			for _, part := range []string{"result", "found", "_source", "_version", "error.type", "error.reason", "error.caused_by.type", "errors",
				"items.0.create.status", "items.1.create.error.type", "items.2.delete.result", "hits.total", "hits.hits.0._source",
				"timed_out", "_shards.failed"} {
				g, w := got.Get(part), want.Get(part)
				if part == "error.reason" || part == "_version" {
					if g.Exists() != w.Exists() {
						t.Errorf("%s %s: %s is %s, the engine's %s", q.method, q.path, part, g.Raw, w.Raw)
					}
					continue
				}
				if g.Raw != w.Raw {
					t.Errorf("%s %s: %s is %s, the engine's %s", q.method, q.path, part, g.Raw, w.Raw)
				}
			}
		}
	})
}

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/demo/app"
	"optimist/internal/obs"
)

// TestClientThatWritesFromMemoryRevertsNothing: what it holds is older than what is stored, which it never looks at again.
func TestClientThatWritesFromMemoryRevertsNothing(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		index, proxies := e.index(t), proxies(t, e)
		for _, known := range []struct {
			name string
			app.Guard
			app.Sessions
		}{
			{"unguarded", app.Unguarded, app.Named},
			{"if-match", app.ByMatch, app.Named},
			{"numbers-of-the-last-answer", app.ByAnswer, app.Named},
			{"unnamed-if-match", app.ByMatch, app.Unnamed},
			{"credentials", app.Unguarded, app.Credentialed},
			{"credentials-numbers-of-the-last-answer", app.ByAnswer, app.Credentialed},
		} {
			for _, shape := range app.Shapes() {
				t.Run(known.name+"/"+shape.String(), func(t *testing.T) {
					r, _ := run(t, &app.Application{
						URLs: []string{proxies[shape].URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%s", index, known.name, shape),
						Shape: shape, Workers: 16, Rounds: rounds(16), Sessions: known.Sessions, Guard: known.Guard, Memory: 5,
					})
					lossless(t, &r)
					// A 409 to a guard of the client's own is right. To those of the last answer the application expects it, and counts it apart.
					if known.Sessions != app.Unnamed && r.Refused > 0 || r.Refused != r.Statuses[409]-r.Conflicts || r.Errors > 0 {
						t.Errorf("refused: %s", &r)
					}
				})
			}
		}
	})
}

// TestNumbersOfAMergedAnswerConflictWhenUsedAsAGuard is the same without luck: the client holds a document that lacks a change.
func TestNumbersOfAMergedAnswerConflictWhenUsedAsAGuard(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		doc := "/" + e.index(t) + "/_doc/1"
		p := optimistFor(t, e, "")
		e.send(t, 201, "PUT", doc, `{"a":0,"b":0}`)
		request(t, 200, "GET", p.URL+doc, "", session("mine"))
		request(t, 200, "GET", p.URL+doc, "", session("other"))
		request(t, 200, "PUT", p.URL+doc, `{"a":0,"b":1}`, session("other"))
		merged := request(t, 200, "PUT", p.URL+doc, `{"a":1,"b":0}`, session("mine"))
		if !strings.HasPrefix(merged.outcome(), "merged") {
			t.Fatalf("outcome %q", merged.outcome())
		}
		var n struct {
			SeqNo int64 `json:"_seq_no"`
			Term  int64 `json:"_primary_term"`
		}
		if err := json.Unmarshal([]byte(merged.body), &n); err != nil {
			t.Fatal(err)
		}
		guarded := fmt.Sprintf("%s%s?if_seq_no=%d&if_primary_term=%d", p.URL, doc, n.SeqNo, n.Term)
		request(t, 409, "PUT", guarded, `{"a":2,"b":0}`, session("mine"))
		if got := e.source(t, doc); got != `{"a":1,"b":1}` {
			t.Errorf("stored is %s", got)
		}
		request(t, 200, "PUT", p.URL+doc, `{"a":2,"b":0}`, session("mine"))
		if got := e.source(t, doc); got != `{"a":2,"b":1}` {
			t.Errorf("stored is %s", got)
		}
	})
}

// TestReadsPassABusyLane: a write to the document is out and isn't answered, others wait for it, and reads don't.
func TestReadsPassABusyLane(t *testing.T) {
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/1"
	e.send(t, 201, "PUT", doc, `{"n":0}`)
	out, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	p := optimistFor(t, between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method != http.MethodPut {
			pass.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		pass.ServeHTTP(rec, r)
		once.Do(func() {
			close(out)
			<-release
		})
		copyTo(w, rec)
	}), "")
	var wg sync.WaitGroup
	const writers = 4
	for i := range writers {
		request(t, 200, "GET", p.URL+doc, "", session(fmt.Sprint("writer-", i)))
	}
	for i := range writers {
		wg.Go(func() {
			a, err := do(t.Context(), "PUT", p.URL+doc, fmt.Sprintf(`{"n":0,"w%d":1}`, i), session(fmt.Sprint("writer-", i)))
			if err != nil || a.status != 200 {
				t.Errorf("%v %v", a, err)
			}
		})
	}
	<-out
	// These return while no write has been answered: a read that waited for the lane would never.
	for _, who := range []http.Header{nil, session("writer-0"), session("reader")} {
		for _, path := range []string{doc, strings.Replace(doc, "_doc", "_source", 1)} {
			request(t, 200, "GET", p.URL+path, "", who)
		}
		request(t, 200, "POST", p.URL+strings.Replace(doc, "_doc/1", "_mget", 1), `{"ids":["1"]}`, who)
	}
	close(release)
	wg.Wait()
	got := e.source(t, doc)
	for i := range writers {
		if !strings.Contains(got, fmt.Sprintf(`"w%d":1`, i)) {
			t.Errorf("writer %d is missing in %s", i, got)
		}
	}
}

// TestReaderNeverSeesWhatNobodyWrote: each worker writes two fields that say the same, and only ever more.
func TestReaderNeverSeesWhatNobodyWrote(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		path := "/" + e.index(t) + "/_doc/1"
		p := optimistFor(t, e, "")
		a := &app.Application{URLs: []string{p.URL}, Store: e.url, Path: path, Shape: app.Fields, Workers: 16, Rounds: rounds(16), Sessions: app.Named}
		if err := a.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var readers sync.WaitGroup
		for i := range 2 {
			readers.Go(func() { watch(ctx, t, p.URL+path, session(fmt.Sprint("reader-", i))) })
		}
		tally := work(t, a)
		stop()
		readers.Wait()
		r := count(t, a, tally)
		flawless(t, &r)
	})
}

// watch reads the document until ctx ends.
func watch(ctx context.Context, t *testing.T, url string, who http.Header) {
	seen := make(map[string]int64)
	for reads := 0; ; reads++ {
		a, err := do(ctx, http.MethodGet, url, "", who)
		if ctx.Err() != nil {
			t.Logf("%d reads", reads)
			return
		}
		if err != nil || a.status != 200 {
			t.Errorf("reading: %v %v", a, err)
			return
		}
		var d struct {
			Source map[string]any `json:"_source"`
		}
		if err := json.Unmarshal([]byte(a.body), &d); err != nil {
			t.Error(err)
			return
		}
		for name, v := range d.Source {
			n, ok := v.(float64)
			twice, pair := d.Source[name+"_twice"].(float64)
			if !ok || !pair {
				continue
			}
			if twice != 2*n || int64(n) < seen[name] {
				t.Errorf("%s is %v, twice of it %v, after %d", name, n, twice, seen[name])
			}
			seen[name] = int64(n)
		}
	}
}

// TestReadThatWasGivenUpIsNoBase: a client gives a read up and reads again. The first read's answer comes to optimist last; the client
// never sees it.
func TestReadThatWasGivenUpIsNoBase(t *testing.T) {
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/1"
	e.send(t, 201, "PUT", doc, `{"list":[]}`)
	read, release := make(chan struct{}), make(chan struct{})
	var reads atomic.Int64
	p := optimistFor(t, between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/_doc/") {
			pass.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		pass.ServeHTTP(rec, r)
		if reads.Add(1) == 1 {
			close(read)
			<-release
		}
		copyTo(w, rec)
	}), "")
	mine := session("mine")
	impatient, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		if a, err := do(impatient, "GET", p.URL+doc, "", mine); err == nil {
			t.Errorf("answered: %s", a.body)
		}
	}()
	<-read
	e.send(t, 200, "PUT", doc, `{"list":["a"]}`)
	request(t, 200, "GET", p.URL+doc, "", mine)
	leave()
	<-left
	close(release)
	eventually(t, "the end of both reads", func() bool { return p.Metric(t, obs.MetricRequests, `op="get"`) == 2 })
	e.send(t, 200, "PUT", doc, `{"list":["a","b"]}`)
	request(t, 200, "PUT", p.URL+doc, `{"list":["a","c"]}`, mine)
	if got := e.source(t, doc); got != `{"list":["a","b","c"]}` {
		t.Errorf("stored is %s", got)
	}
}

// TestReadThatNobodyWaitsForIsNoBase: a client gives a read up and saves what it has from the one before. That its connection is closed isn't
// noticed at once; the answer that it never saw must not be what its change is counted from.
func TestReadThatNobodyWaitsForIsNoBase(t *testing.T) {
	e := inMemory(t)
	index := e.index(t)
	const watchAll = "rules: [{name: r, base: {reads: [get, mget, search]}}]\n"
	for i, c := range []struct {
		op, method, path, body string
		ended                  float64 // requests of the kind by the end
	}{
		{"get", "GET", "/_doc/%s", "", 2}, {"mget", "POST", "/_mget", `{"ids":["%s"]}`, 1}, {"search", "POST", "/_search", `{"query":{"ids":{"values":["%s"]}}}`, 1},
	} {
		for k, who := range []http.Header{session("mine"), nil} {
			id := fmt.Sprint(i, "-", k)
			doc := fmt.Sprintf("/%s/_doc/%s", index, id)
			path, body := "/"+index+strings.ReplaceAll(c.path, "%s", id), strings.ReplaceAll(c.body, "%s", id)
			read, release := make(chan struct{}), make(chan struct{})
			var givenUp atomic.Bool
			p := optimistFor(t, between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
				if r.URL.Path != path || !givenUp.CompareAndSwap(true, false) {
					pass.ServeHTTP(w, r)
					return
				}
				rec := httptest.NewRecorder()
				pass.ServeHTTP(rec, r)
				close(read)
				<-release
				copyTo(w, rec)
			}), watchAll)
			e.send(t, 201, "PUT", doc, `{"list":["a"]}`)
			request(t, 200, "GET", p.URL+doc, "", who)
			e.send(t, 200, "PUT", doc, `{"list":["a","b"]}`)
			impatient, leave := context.WithCancel(t.Context())
			left := make(chan struct{})
			givenUp.Store(true)
			go func() {
				defer close(left)
				if a, err := do(impatient, c.method, p.URL+path, body, who); err == nil {
					t.Errorf("answered: %s", a.body)
				}
			}()
			<-read
			time.AfterFunc(60*time.Millisecond, leave) // what takes no time nobody gives up
			<-left
			close(release)
			eventually(t, "the end of the read", func() bool { return p.Metric(t, obs.MetricRequests, `op="`+c.op+`"`) == c.ended })
			request(t, 200, "PUT", p.URL+doc, `{"list":["a","c"]}`, who)
			if got := e.source(t, doc); got != `{"list":["a","b","c"]}` {
				t.Errorf("%s, %v: stored is %s", c.op, who, got)
			}
		}
	}
}

// TestIfMatchWithTheLastAnswersTagAppliesNothingTwice: the tag of a merged answer is that of the base, which somebody else of the same
// unnamed session has read, too, and not written back yet.
func TestIfMatchWithTheLastAnswersTagAppliesNothingTwice(t *testing.T) {
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/1"
	p := optimistFor(t, e, "")
	e.send(t, 201, "PUT", doc, `{"list":[]}`)
	match := func(a answer) http.Header { return http.Header{"If-Match": {a.header.Get("ETag")}} }
	mine := request(t, 200, "GET", p.URL+doc, "", nil)
	request(t, 200, "GET", p.URL+doc, "", nil) // somebody else's
	e.send(t, 200, "PUT", doc, `{"list":["x"]}`)
	mine = request(t, 200, "PUT", p.URL+doc, `{"list":["a"]}`, match(mine))
	again, err := do(t.Context(), "PUT", p.URL+doc, `{"list":["a","b"]}`, match(mine))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]string{200: `{"list":["x","a","b"]}`, 409: `{"list":["x","a"]}`}[again.status]
	if got := e.source(t, doc); got != want {
		t.Errorf("%d, %s: stored is %s", again.status, again.outcome(), got)
	}
}

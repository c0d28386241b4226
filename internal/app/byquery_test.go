package app

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"optimist/internal/enginetest"
)

// queryEngine answers changes by query one after the other as it is told to, and knows the index shop.
type queryEngine struct {
	mu       sync.Mutex
	requests []string
	answers  []string // "status body"
}

func (e *queryEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "_by_query"):
		e.requests = append(e.requests, r.URL.RequestURI()+" "+string(body))
		status, text, _ := strings.Cut(e.answers[0], " ")
		if len(e.answers) > 1 {
			e.answers = e.answers[1:]
		}
		code := 0
		_, _ = fmt.Sscan(status, &code)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	case strings.HasSuffix(r.URL.Path, "/_refresh"):
		e.requests = append(e.requests, "refresh")
		_, _ = io.WriteString(w, `{}`)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"type":"index_not_found_exception"},"status":404}`)
	}
}

// TestChangesByQueryGoOnUntilNothingConflicts, and say what all attempts have done.
func TestChangesByQueryGoOnUntilNothingConflicts(t *testing.T) {
	const (
		stopped = `409 {"took":1,"timed_out":false,"total":5,"deleted":2,"batches":1,"version_conflicts":1,"noops":0,"retries":{"bulk":0,"search":1},` +
			`"failures":[{"index":"shop","id":"1","status":409}]}`
		left    = `200 {"took":1,"timed_out":false,"total":3,"deleted":2,"batches":1,"version_conflicts":1,"noops":0,"retries":{"bulk":0,"search":0},"failures":[]}`
		done    = `200 {"took":2,"timed_out":false,"total":1,"deleted":1,"batches":1,"version_conflicts":0,"noops":0,"retries":{"bulk":0,"search":0},"failures":[]}`
		failed  = `200 {"took":2,"timed_out":false,"total":1,"deleted":0,"version_conflicts":1,"failures":[{"status":400},{"status":409}]}`
		refused = `400 {"error":{"type":"parsing_exception","reason":"unknown query [nope]"},"status":400}`
		all     = `{"took":4,"timed_out":false,"total":5,"deleted":5,"batches":3,"version_conflicts":0,"noops":0,"retries":{"bulk":0,"search":1},"failures":[]}`
	)
	const rerun = "rules:\n- {name: r, match: {index: [shop]}, rerun: true}\n"
	for name, c := range map[string]struct {
		rules, request string
		answers        []string
		attempts       int
		want, outcome  string
	}{
		"a delete goes on": {"", "/shop/_delete_by_query", []string{stopped, left, done}, 3, all, "retried;attempts=3;base=none"},
		"what is filtered is filtered in the end": {"", "/shop/_delete_by_query?filter_path=deleted&conflicts=proceed", []string{stopped, left, done}, 3,
			`{"deleted":5}`, "retried;attempts=3;base=none"},
		"an error isn't filtered": {"", "/shop/_delete_by_query?filter_path=deleted", []string{refused}, 1, refused[4:],
			"passed;attempts=1;base=none;reason=by_query"},
		"once is enough":              {"", "/shop/_delete_by_query", []string{done}, 1, done[4:], "passed;attempts=1;base=none;reason=by_query"},
		"other failures end it":       {"", "/shop/_delete_by_query", []string{failed}, 1, failed[4:], "passed;attempts=1;base=none;reason=by_query"},
		"an update may not run twice": {"", "/shop/_update_by_query", []string{stopped}, 1, stopped[4:], "passed;attempts=1;base=none;reason=by_query"},
		"unless its rule says so":     {rerun, "/shop/_update_by_query", []string{stopped, left, done}, 3, all, "retried;attempts=3;base=none"},
		"also of a rule that leaves deletes alone": {strings.Replace(rerun, "[shop]", "[shop], ops: [index, update]", 1), "/shop/_update_by_query",
			[]string{stopped, left, done}, 3, all, "retried;attempts=3;base=none"},
		"one with a bound would do more": {"", "/shop/_delete_by_query?max_docs=5", []string{stopped}, 1, stopped[4:], "passed;attempts=1;base=none;reason=by_query"},
		"nobody waits for a task": {"", "/shop/_delete_by_query?wait_for_completion=false", []string{`200 {"task":"a:1"}`}, 1, `{"task":"a:1"}`,
			"passed;attempts=1;base=none;reason=by_query"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &queryEngine{answers: c.answers}
			server := httptest.NewServer(e)
			defer server.Close()
			w := newWorldOn(t, c.rules, Identity{}, server.URL)
			a := w.ask(w.proxied, "POST", c.request, `{"query":{"match_all":{}}}`)
			if a.Body != c.want || a.Outcome() != c.outcome {
				t.Errorf("%d %s [%s], want %s [%s]", a.Status, a.Body, a.Outcome(), c.want, c.outcome)
			}
			sent := 0
			for _, r := range e.requests {
				if r != "refresh" {
					sent++
				}
			}
			if sent != c.attempts || len(e.requests) != 2*sent-1 {
				t.Errorf("%q", e.requests)
			}
		})
	}
}

// TestChangesByQueryThatMayNotGoOn change no more documents than the client allows. Those that find the same again may.
func TestChangesByQueryThatMayNotGoOn(t *testing.T) {
	const all, left, done = `"query":{"match_all":{}}`, `200 {"total":2,"deleted":1,"version_conflicts":1,"failures":[]}`,
		`200 {"total":1,"deleted":1,"version_conflicts":0,"failures":[]}`
	for name, c := range map[string]struct {
		query, body string
		attempts    int
	}{
		"all":                               {"", "{" + all + "}", 2},
		"the first few of each shard":       {"?terminate_after=5", "{" + all + "}", 1},
		"the first few, as the body says":   {"", "{" + all + `,"terminate_after":5}`, 1},
		"so many":                           {"?max_docs=5", "{" + all + "}", 1},
		"so many, as the body says":         {"", "{" + all + `,"max_docs":5}`, 1},
		"so many, as was said before":       {"", "{" + all + `,"size":5}`, 1},
		"a query in the target":             {"?q=a:1", "", 2},
		"one slice of several, in the body": {"", "{" + all + `,"slice":{"id":0,"max":2}}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			e := &queryEngine{answers: []string{left, done}}
			server := httptest.NewServer(e)
			defer server.Close()
			w := newWorldOn(t, "", Identity{}, server.URL)
			a := w.ask(w.proxied, "POST", "/shop/_delete_by_query"+c.query, c.body)
			sent := 0
			for _, r := range e.requests {
				if strings.Contains(r, "_by_query") {
					sent++
				}
			}
			if sent != c.attempts {
				t.Errorf("%d attempts: %s [%s] %q", sent, a.Body, a.Outcome(), e.requests)
			}
		})
	}
}

// TestAChangeByQueryThatSomebodyStopsIsNotBegunAgain: the documents that are left are left on purpose.
func TestAChangeByQueryThatSomebodyStopsIsNotBegunAgain(t *testing.T) {
	const head, done = `"total":9,"deleted":1,"version_conflicts":1`, `200 {"total":1,"deleted":1,"version_conflicts":0,"failures":[]}`
	for name, c := range map[string]struct {
		status, more string
		attempts     int
	}{
		"nobody does":                {"200", `"timed_out":false,"failures":[]`, 2},
		"the task is cancelled":      {"200", `"timed_out":false,"canceled":"by user request","failures":[]`, 1},
		"it is after a conflict":     {"409", `"timed_out":false,"canceled":"by user request","failures":[{"status":409}]`, 1},
		"one slice of it is":         {"200", `"slices":[{"slice_id":0},{"slice_id":1,"canceled":"by user request"}],"failures":[]`, 1},
		"none of its slices is":      {"200", `"slices":[{"slice_id":0},{"slice_id":1}],"failures":[]`, 2},
		"the time is over":           {"200", `"timed_out":true,"failures":[]`, 1},
		"its search is cancelled":    {"200", `"failures":[{"status":409},{"shard":0,"status":400,"reason":{"type":"task_cancelled_exception"}}]`, 1},
		"its search failed, somehow": {"200", `"failures":[{"shard":0,"reason":{"type":"search_exception"}}]`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := &queryEngine{answers: []string{c.status + " {" + head + "," + c.more + "}", done}}
			server := httptest.NewServer(e)
			defer server.Close()
			w := newWorldOn(t, "", Identity{}, server.URL)
			a := w.ask(w.proxied, "POST", "/shop/_delete_by_query?conflicts=proceed", `{"query":{"match_all":{}}}`)
			if sent := 2*c.attempts - 1; len(e.requests) != sent {
				t.Errorf("%s [%s] %q", a.Body, a.Outcome(), e.requests)
			}
		})
	}
}

// TestAChangeByQueryGoesOnThoughItsAnswersAreCompressed, by a balancer that nobody has asked for that.
func TestAChangeByQueryGoesOnThoughItsAnswersAreCompressed(t *testing.T) {
	e := &queryEngine{answers: []string{`200 {"total":2,"deleted":1,"version_conflicts":1,"failures":[]}`,
		`200 {"total":1,"deleted":1,"version_conflicts":0,"failures":[]}`}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "_by_query") {
			e.ServeHTTP(w, r)
			return
		}
		plain := httptest.NewRecorder()
		e.ServeHTTP(plain, r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(plain.Code)
		z := gzip.NewWriter(w)
		_, _ = z.Write(plain.Body.Bytes())
		_ = z.Close()
	}))
	defer server.Close()
	w := newWorldOn(t, "", Identity{}, server.URL)
	a := w.ask(w.proxied, "POST", "/shop/_delete_by_query?filter_path=deleted", `{}`)
	if a.Body != `{"deleted":2}` || a.Outcome() != "retried;attempts=2;base=none" || a.Header.Get("Content-Encoding") != "" {
		t.Errorf("%q [%s] %v", a.Body, a.Outcome(), a.Header)
	}
}

// TestAChangeByQueryGoesOnAtTheSpeedAtWhichItEnded: somebody has slowed it down.
func TestAChangeByQueryGoesOnAtTheSpeedAtWhichItEnded(t *testing.T) {
	const done = `200 {"total":1,"deleted":1,"version_conflicts":0,"failures":[]}`
	for query, want := range map[string]string{
		"": "?requests_per_second=7.5", "?requests_per_second=900&scroll_size=20": "?scroll_size=20&requests_per_second=7.5",
	} {
		e := &queryEngine{answers: []string{`200 {"total":2,"deleted":1,"version_conflicts":1,"requests_per_second":7.5,"failures":[]}`, done}}
		server := httptest.NewServer(e)
		w := newWorldOn(t, "", Identity{}, server.URL)
		w.ask(w.proxied, "POST", "/shop/_delete_by_query"+query, `{}`)
		if len(e.requests) != 3 || e.requests[0] != "/shop/_delete_by_query"+query+" {}" || e.requests[2] != "/shop/_delete_by_query"+want+" {}" {
			t.Errorf("%q", e.requests)
		}
		server.Close()
	}
}

// TestWhatALaterAttemptByQuerySaysIsNotMixedWithWhatEarlierOnesDid: an error has no counters, and the parts of the last attempt aren't those
// of the whole.
func TestWhatALaterAttemptByQuerySaysIsNotMixedWithWhatEarlierOnesDid(t *testing.T) {
	const left = `200 {"total":2,"deleted":1,"version_conflicts":1,"slices":[{"slice_id":0,"total":2,"deleted":1}],"failures":[]}`
	for _, c := range []struct{ second, want string }{
		{`503 {"error":{"type":"unavailable"},"status":503}`, `{"error":{"type":"unavailable"},"status":503}`},
		{`200 {"total":1,"deleted":1,"version_conflicts":0,"slices":[{"slice_id":0,"total":1,"deleted":1}],"failures":[]}`,
			`{"total":2,"deleted":2,"version_conflicts":0,"failures":[]}`},
	} {
		e := &queryEngine{answers: []string{left, c.second}}
		server := httptest.NewServer(e)
		w := newWorldOn(t, "", Identity{}, server.URL)
		if a := w.ask(w.proxied, "POST", "/shop/_delete_by_query", `{"query":{"match_all":{}}}`); a.Body != c.want {
			t.Errorf("%d %s, want %s", a.Status, a.Body, c.want)
		}
		server.Close()
	}
}

// TestChangesByQueryThatNeverEndAreGivenUp: the answer is the engine's last one.
func TestChangesByQueryThatNeverEndAreGivenUp(t *testing.T) {
	e := &queryEngine{answers: []string{`200 {"total":2,"deleted":1,"version_conflicts":1,"failures":[]}`}}
	server := httptest.NewServer(e)
	defer server.Close()
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, retry: {max_attempts: 3}}\n", Identity{}, server.URL)
	a := w.ask(w.proxied, "POST", "/shop/_delete_by_query", `{"query":{"match_all":{}}}`)
	if want := `{"total":4,"deleted":3,"version_conflicts":1,"failures":[]}`; a.Status != 200 || a.Body != want {
		t.Errorf("%d %s, want %s", a.Status, a.Body, want)
	}
}

// TestOnesOwnChangeByQueryEndsWhatWasReadBefore: nobody knows which documents it changed, and how. A client may have worked that into what
// it writes next, and as a change of what it read before it would count twice.
func TestOnesOwnChangeByQueryEndsWhatWasReadBefore(t *testing.T) {
	const doc, query = "/shop/_doc/1", `{"query":{"match_all":{}}}`
	trace := func(id string) []string {
		return []string{"traceparent", "00-" + strings.Repeat(id, 16) + "-00f067aa0ba902b7-01"}
	}
	named := func(id string) []string { return []string{"Optimist-Session", id} }
	const update, remove = "/shop/_update_by_query?refresh=true", "/shop/_delete_by_query?refresh=true"
	const reindex, copied = "/_reindex?refresh=true", `{"source":{"index":"old"},"dest":{"index":"shop"}}`
	none := strings.Replace(query, "match_all", "match_none", 1)
	for name, c := range map[string]struct {
		reader, changer []string
		target, query   string
		status          int
		instead         int // the status that the change by query is answered with, instead of the engine
	}{
		"a named session's own":     {named("a"), named("a"), update, query, 409, 0},
		"that of another":           {named("a"), named("b"), update, query, 200, 0},
		"a trace's own":             {trace("ab"), trace("ab"), update, query, 409, 0},
		"that of another trace":     {trace("ab"), trace("cd"), update, query, 200, 0},
		"a named session's deletes": {named("a"), named("a"), remove, none, 409, 0},
		"one that stops halfway":    {named("a"), named("a"), update, query, 409, 409},
		"one that fails somewhere":  {named("a"), named("a"), update, query, 409, 400},
		"one that nobody may send":  {named("a"), named("a"), update, query, 200, 401},
		"its own reindex":           {named("a"), named("a"), reindex, copied, 409, 200},
		"the reindex of another":    {named("a"), named("b"), reindex, copied, 200, 200},
	} {
		for _, kind := range []string{"read", "written"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				target, err := url.Parse(enginetest.Serve(t))
				if err != nil {
					t.Fatal(err)
				}
				forward := httputil.NewSingleHostReverseProxy(target)
				engine := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					if c.instead != 0 && (strings.HasSuffix(r.URL.Path, "_by_query") || r.URL.Path == "/_reindex") {
						rw.WriteHeader(c.instead)
						return
					}
					forward.ServeHTTP(rw, r)
				}))
				defer engine.Close()
				// Two sessions may share a cell of package indexstate by chance. That they share one in two proxies is no chance.
				var w *world
				var a answer
				for try := 0; try == 0 || try == 1 && a.Status != c.status; try++ {
					w = newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n",
						Identity{Infer: true, Address: true, Traces: true}, engine.URL)
					w.put(doc, `{"n":1,"m":0}`)
					w.wants(w.ask(w.proxied, "PUT", fmt.Sprint("/shop/_doc/0", try), `{"n":0}`), 201, "passed;attempts=1;base=none")
					w.ask(w.proxied, "GET", doc, "", c.reader...)
					if kind == "written" {
						w.ask(w.proxied, "PUT", doc, `{"n":1,"m":1}`, c.reader...)
					}
					if a := w.ask(w.proxied, "POST", c.target, c.query, c.changer...); a.Status != cmp.Or(c.instead, 200) {
						t.Fatalf("%d %s", a.Status, a.Body)
					}
					w.put(doc, `{"n":2,"m":1}`)
					a = w.ask(w.proxied, "PUT", doc, `{"n":3,"m":1}`, c.reader...)
				}
				if a.Status != c.status {
					t.Errorf("%d %s [%s], want %d", a.Status, a.Body, a.Outcome(), c.status)
				}
				w.ask(w.proxied, "GET", doc, "", c.reader...)
				w.put(doc, `{"n":5,"m":1}`)
				if a := w.ask(w.proxied, "PUT", doc, `{"n":4,"m":1}`, c.reader...); a.Status != 200 {
					t.Errorf("after a new read: %d %s [%s]", a.Status, a.Body, a.Outcome())
				}
			})
		}
	}
}

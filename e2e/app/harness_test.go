// Package app_test lets an application that knows nothing of versions work through the real program on the embedded and the real
// engines, and counts what it loses. It doesn't measure speed: e2e/bench does.
package app_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// sum is the configuration for the shape that counts: the one thing that needs a rule.
const sum = `rules:
  - {name: counters, merge: {paths: {` + app.CounterPath + `: sum}}}
`

// patient is sum for a document that others write without a pause, past the proxy: there is no bound to how often one can come second.
const patient = `rules:
  - name: counters
    merge: {paths: {` + app.CounterPath + `: sum}}
    retry: {max_attempts: 1000, max_elapsed: 1m, backoff: {base_interval: 1ms, max_interval: 10ms}}
`

// target is an engine that the application works on.
type target struct {
	name string
	url  string
}

// eachTarget runs the test on the embedded engine and on the real ones.
func eachTarget(t *testing.T, test func(t *testing.T, e target)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, inMemory(t)) })
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) { test(t, target{e.Kind.String(), e.URL}) })
}

// eachInferenceTarget is eachTarget for what is about the choice of bases alone, and about repeats. Both are made of what clients have sent and
// seen, the same on every engine: OpenSearch stands for all real ones, but with E2E_LONG.
func eachInferenceTarget(t *testing.T, test func(t *testing.T, e target)) {
	t.Helper()
	if long() {
		eachTarget(t, test)
		return
	}
	t.Run("embedded", func(t *testing.T) { test(t, inMemory(t)) })
	engine.Each(t, []engine.Kind{engine.OpenSearch38}, func(t *testing.T, e *engine.Engine) { test(t, target{e.Kind.String(), e.URL}) })
}

// inMemory serves an embedded engine for a test.
func inMemory(t testing.TB) target {
	t.Helper()
	return target{"embedded", engine.Embedded(t)}
}

// index makes an index of the test's own. Its documents aren't searched: without mappings they cost the engine less.
func (e target) index(t testing.TB) string {
	t.Helper()
	name := e.reserve(t, "app-")
	e.send(t, http.StatusOK, http.MethodPut, "/"+name,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"dynamic":false}}`)
	return name
}

// absent is the name of an index that isn't there before somebody writes to it.
func (e target) absent(t testing.TB) string {
	t.Helper()
	return e.reserve(t, "absent-")
}

// reserve makes the name of an index that no other test uses, and sees to it that the index is gone after the test.
func (e target) reserve(t testing.TB, prefix string) string {
	t.Helper()
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails, says its documentation
	name := prefix + hex.EncodeToString(unique)
	t.Cleanup(func() {
		// Not the test's context: it has ended.
		if _, err := do(context.Background(), http.MethodDelete, e.url+"/"+name+"?ignore_unavailable=true", "", nil); err != nil {
			t.Log(err) // the engine may have ended before
		}
	})
	return name
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) outcome() string { return a.header.Get("Optimist-Outcome") }

// send does one request that has to be answered with the status.
func (e target) send(t testing.TB, status int, method, path, body string) answer {
	t.Helper()
	return request(t, status, method, e.url+path, body, nil)
}

func request(t testing.TB, status int, method, url, body string, header http.Header) answer {
	t.Helper()
	a, err := do(t.Context(), method, url, body, header)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, url, a.status, status, a.body)
	}
	return a
}

func do(ctx context.Context, method, url, body string, header http.Header) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}, err
}

// session is the header of a thread of work.
func session(name string) http.Header { return http.Header{app.SessionHeader: {name}} }

// source is the document as it is stored.
func (e target) source(t testing.TB, path string) string {
	t.Helper()
	return e.send(t, http.StatusOK, http.MethodGet, strings.Replace(path, "/_doc/", "/_source/", 1), "").body
}

// optimistFor runs the program in front of an engine.
func optimistFor(t testing.TB, e target, config string, args ...string) *optimist.Process {
	t.Helper()
	return optimist.Start(t, optimist.Options{
		Upstream: []string{e.url}, Config: config, Args: args,
		// The proxy's own code is the same in front of all engines: its races are looked for where the engine costs the least.
		Race: e.name == "embedded" || long(),
	})
}

// long reports whether there is time for much.
func long() bool { return os.Getenv("E2E_LONG") == "1" }

// rounds is how often each of the workers reads and writes: some hundred writes in all, or some thousand.
func rounds(workers int) int {
	n := max(400/workers, 6)
	if long() {
		n *= 10
	}
	return n
}

// outcomes counts what answers to writes say of themselves.
type outcomes struct {
	mu        sync.Mutex
	kinds     map[string]int
	ambiguous int
	silent    int // answers that say nothing
	restarted int // answers to writes whose base was known from before the proxy's start
}

func (o *outcomes) note(_ int, h http.Header) {
	kind, rest, _ := strings.Cut(h.Get("Optimist-Outcome"), ";")
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kinds == nil {
		o.kinds = make(map[string]int)
	}
	o.kinds[kind]++
	if kind == "" {
		o.silent++
	}
	if strings.Contains(rest, "reason=restart") && !strings.Contains(rest, "base=lost") {
		o.restarted++
	}
	if strings.Contains(rest, "ambiguous") {
		o.ambiguous++
	}
}

// limit is how long one application may work. It takes seconds; what hangs is to be told from what is slow.
const limit = 5 * time.Minute

// run lets an application work, to its end.
func run(t *testing.T, a *app.Application) (app.Result, *outcomes) {
	t.Helper()
	o := &outcomes{}
	a.OnAnswer = o.note
	if err := a.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := count(t, a, work(t, a))
	t.Logf("%s; %d ambiguous, %v", &r, o.ambiguous, o.kinds)
	return r, o
}

// work lets the workers work, to their end.
func work(t *testing.T, a *app.Application) *app.Tally {
	t.Helper()
	most := limit
	if long() {
		most *= 10
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	tally := a.Work(ctx)
	if ctx.Err() != nil {
		t.Errorf("the application hasn't finished after %v", most)
	}
	return tally
}

func count(t *testing.T, a *app.Application, tallies ...*app.Tally) app.Result {
	t.Helper()
	r, err := a.Count(t.Context(), tallies...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lossless fails the test unless everything that was acknowledged, and nothing else, is in the document, undamaged.
func lossless(t *testing.T, r *app.Result) {
	t.Helper()
	if r.Lost != 0 || r.Invented != 0 || r.Damaged != nil {
		t.Errorf("not lossless: %s", r)
	}
}

// flawless fails the test unless, in addition, every request was answered with success.
func flawless(t *testing.T, r *app.Result) {
	t.Helper()
	lossless(t, r)
	if r.Refused != 0 || r.Errors != 0 || r.Unknown != 0 || r.Found != r.Acknowledged {
		t.Errorf("not flawless: %s", r)
	}
}

// spoken fails the test if a write through optimist was answered without an outcome.
func spoken(t *testing.T, o *outcomes) {
	t.Helper()
	if o.silent != 0 {
		t.Errorf("%d answers without an outcome", o.silent)
	}
}

// eventually waits until a condition holds that something else brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("still not: %s", what)
		}
	}
}

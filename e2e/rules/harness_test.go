// Package rules_test shows on the embedded and the real engines what rules and PATCH do to documents: the built program, as its users run
// it. It doesn't measure speed, and leaves to e2e/app what applications do that know nothing of either.
package rules_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// The media types of a PATCH.
const (
	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
	operations = "application/vnd.optimist-patch+json"
)

// target is something that answers as an engine does: an engine, optimist, or what is put between them.
type target struct {
	name   string
	url    string
	client *http.Client // nil is the default one
}

// own is the target as a client of its own asks it, with connections that it keeps.
func (e target) own(t testing.TB) target {
	t.Helper()
	e.client = &http.Client{Transport: &http.Transport{}}
	t.Cleanup(e.client.CloseIdleConnections)
	return e
}

// eachTarget runs the test on the embedded engine and on the real ones.
func eachTarget(t *testing.T, test func(t *testing.T, e target)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) { test(t, inMemory(t)) })
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) { test(t, target{name: e.Kind.String(), url: e.URL}) })
}

// inMemory serves an embedded engine for a test.
func inMemory(t testing.TB) target {
	t.Helper()
	return target{name: "embedded", url: engine.Embedded(t)}
}

// index makes an index of the test's own, whose documents aren't looked into: their names may be any that JSON has.
func (e target) index(t testing.TB) string {
	t.Helper()
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails, says its documentation
	name := "rules-" + hex.EncodeToString(unique)
	e.send(t, http.StatusOK, http.MethodPut, "/"+name,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"enabled":false}}`)
	t.Cleanup(func() {
		// Not the test's context: it has ended.
		if _, err := e.do(context.Background(), http.MethodDelete, "/"+name, "", nil); err != nil {
			t.Log(err) // the engine may have ended before
		}
	})
	return name
}

// optimistFor runs the program in front of an engine.
func optimistFor(t testing.TB, e target, config string) target {
	t.Helper()
	p := optimist.Start(t, optimist.Options{
		Upstream: []string{e.url}, Config: config,
		// The proxy's own code is the same in front of all engines: its races are looked for where the engine costs the least.
		Race: e.name == "embedded" || long(),
	})
	return target{name: e.name, url: p.URL}
}

// long reports whether there is time for much.
func long() bool { return os.Getenv("E2E_LONG") == "1" }

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) outcome() string { return a.header.Get("Optimist-Outcome") }

// get is what the body has at a path of gjson's.
func (a answer) get(path string) gjson.Result { return gjson.Get(a.body, path) }

// told is the revision that the answer to a write names; source is what that is to have.
func (a answer) told(source string) revision {
	return revision{source, a.get("_seq_no").Int(), a.get("_version").Int()}
}

// send does one request that has to be answered with the status. header are names and values in turn.
func (e target) send(t testing.TB, status int, method, path, body string, header ...string) answer {
	t.Helper()
	a := e.try(t, method, path, body, header...)
	if a.status != status {
		t.Fatalf("%s %s: %d [%s], want %d: %s", method, path, a.status, a.outcome(), status, a.body)
	}
	return a
}

// try does one request.
func (e target) try(t testing.TB, method, path, body string, header ...string) answer {
	t.Helper()
	h := make(http.Header)
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	a, err := e.do(t.Context(), method, path, body, h)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// patch sends a PATCH of a media type.
func (e target) patch(t testing.TB, status int, media, path, body string) answer {
	t.Helper()
	return e.send(t, status, http.MethodPatch, path, body, "Content-Type", media)
}

func (e target) do(ctx context.Context, method, path, body string, header http.Header) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := e.client
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}, err
}

// revision is a document as it is stored.
type revision struct {
	source         string
	seqNo, version int64
}

// stored asks an engine for the document at a path.
func (e target) stored(t testing.TB, path string) revision {
	t.Helper()
	a := e.send(t, http.StatusOK, http.MethodGet, path, "")
	return revision{a.get("_source").Raw, a.get("_seq_no").Int(), a.get("_version").Int()}
}

// refused fails the test unless an answer is an error of the engine's form, of a type, with words in its reason.
func refused(t testing.TB, a answer, status int, kind, says string) {
	t.Helper()
	if a.status != status || a.get("status").Int() != int64(status) || a.get("error.type").Str != kind ||
		a.get("error.root_cause.0.type").Str != kind || !strings.Contains(a.get("error.reason").Str, says) {
		t.Errorf("got %d [%s] %s\nwant %d %s, with %q in the reason", a.status, a.outcome(), a.body, status, kind, says)
	}
}

// between puts a server between optimist and an engine: handle gets each request, and may answer by itself, or have pass answer.
func between(t *testing.T, e target, handle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) target {
	t.Helper()
	return target{name: e.name, url: engine.Between(t, e.url, handle)}
}

// isWrite reports whether a request that optimist sends writes the document at a path.
func isWrite(r *http.Request, path string) bool {
	return r.Method == http.MethodPut && r.URL.Path == path
}

// isRead reports whether a request that optimist sends reads the document at a path.
func isRead(r *http.Request, path string) bool {
	return r.Method == http.MethodGet && r.URL.Path == path
}

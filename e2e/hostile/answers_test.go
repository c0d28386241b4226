package hostile

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/template"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// hostileAnswer is one of the answers of testdata/answers.txtar.
type hostileAnswer struct {
	name  string
	bytes []byte
	cut   bool // it isn't whole
}

func hostileAnswers(t *testing.T) (list []hostileAnswer) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "answers.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	functions := template.FuncMap{
		"repeat": func(n int, text string) string { return strings.Repeat(text, n) },
		"gzip": func(text string) string {
			return string(zipped(func(w io.Writer) { _, _ = io.WriteString(w, text) }))
		},
	}
	for _, f := range archive.Files {
		head, body, _ := strings.Cut(string(f.Data), "\n\n")
		body = strings.TrimSuffix(body, "\n")
		make := func(text string) string {
			var b bytes.Buffer
			if err := template.Must(template.New(f.Name).Funcs(functions).Parse(text)).Execute(&b, nil); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		body = make(body)
		head = strings.ReplaceAll(strings.ReplaceAll(head, "\n", "\r\n"), "LENGTH", strconv.Itoa(len(body)))
		if head = make(head); strings.Contains(string(f.Data), "\n\n") {
			head += "\r\n\r\n"
		}
		list = append(list, hostileAnswer{f.Name, []byte(head + body), strings.HasPrefix(f.Name, "cut")})
	}
	return list
}

// answerPath is a way on which optimist reads an answer: by a client's request, the answer to which request of the engine is hostile.
type answerPath struct {
	name, request, body string
	hostile             func(r *http.Request) bool
	before              func(g *target, t *testing.T)
	passes              bool // the answer is the client's, too
	slow                bool // optimist tries again for seconds
}

func is(method, path string) func(r *http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.HasPrefix(r.URL.Path, path) }
}

func answerPaths() []answerPath {
	const media = "\x00application/json-patch+json"
	conflicted := func(g *target, t *testing.T) {
		g.put(t, "/i/_doc/1", `{"n":1}`)
		enginetest.Try(t, "GET", g.URL+"/i/_doc/1", "", "Optimist-Session", "s")
		g.put(t, "/i/_doc/1", `{"n":2}`)
	}
	return []answerPath{
		{"get", "GET /i/_doc/1", "", is("GET", "/i/_doc/1"), nil, true, false},
		{"source", "GET /i/_source/1", "", is("GET", "/i/_"), nil, true, false},
		{"mget", "POST /i/_mget", `{"ids":["1","2"]}`, is("POST", "/i/_mget"), nil, true, false},
		{"search", "POST /i/_search", `{}`, is("POST", "/i/_search"), nil, true, false},
		{"stamped get", "GET /stamped/_doc/1", "", is("GET", "/stamped/_doc/1"), nil, true, false},
		{"stamped search", "POST /stamped/_search", `{}`, is("POST", "/stamped/_search"), nil, true, false},
		{"scroll", "POST /_search/scroll", `{"scroll_id":"a"}`, is("POST", "/_search/scroll"), nil, true, false},
		{"nodes", "GET /_nodes/http", "", is("GET", "/_nodes/http"), nil, true, false},
		{"put", "PUT /i/_doc/1", `{"n":3}`, is("PUT", "/i/_doc/1"), nil, true, false},
		{"delete", "DELETE /i/_doc/1", "", is("DELETE", "/i/_doc/1"), nil, true, false},
		{"post", "POST /i/_doc", `{"n":3}`, is("POST", "/i/_doc"), nil, true, false},
		{"update", "POST /i/_update/1", `{"doc":{"n":3}}`, is("POST", "/i/_update/1"), nil, true, false},
		{"bulk", "POST /_bulk", "{\"index\":{\"_index\":\"i\",\"_id\":\"1\"}}\n{\"n\":3}\n", is("POST", "/_bulk"), nil, true, false},
		{"guarded bulk", "POST /_bulk", "{\"index\":{\"_index\":\"fetched\",\"_id\":\"1\"}}\n{\"n\":3}\n", func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/_bulk") || strings.HasSuffix(r.URL.Path, "/_mget")
		}, nil, true, false},
		{"by query", "POST /i/_delete_by_query", `{"query":{"match_all":{}}}`, is("POST", "/i/_delete_by_query"), nil, true, false},
		{"document after a conflict", "PUT /i/_doc/1", `{"n":3}`, is("GET", "/i/_doc/1"), conflicted, false, false},
		{"document for a patch", "PATCH /i/_doc/1" + media, `[{"op":"add","path":"/a","value":1}]`, is("GET", "/i/_doc/1"), nil, false, false},
		{"fetched base", "PUT /fetched/_doc/1", `{"n":3}`, is("GET", "/fetched/_doc/1"), nil, false, false},
		{"what an index is", "PUT /i/_doc/1", `{"n":3}`, func(r *http.Request) bool { return r.Method == "GET" && r.URL.Path == "/i" }, nil, false, false},
		{"what aliases were", "POST /_aliases", `{"actions":[{"add":{"index":"i","alias":"a"}}]}`, is("GET", "/i"), nil, false, false},
		{"aliases", "POST /_aliases", `{"actions":[{"add":{"index":"i","alias":"a"}}]}`, is("POST", "/_aliases"), nil, true, false},
		{"lock", "PUT /_lock/global/a?owner=o&wait=0", "", func(r *http.Request) bool { return strings.Contains(r.URL.Path, "optimist-locks") }, nil, false, true},
	}
}

// hostileEngine is an engine in memory, some of whose answers are hostile: those to what match takes, which it closes the connection after
// or goes on. It answers /good by itself.
type hostileEngine struct {
	url   string
	armed atomic.Pointer[func(r *http.Request) []byte]
}

func (e *hostileEngine) serve(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/good" {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "good")
		return true
	}
	answer := (*e.armed.Load())(r)
	if answer == nil {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(answer); err != nil {
		return true
	}
	if closing, ok := c.(*net.TCPConn); ok {
		_ = closing.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, c)
	return true
}

func (e *hostileEngine) arm(match func(r *http.Request) bool, answer []byte) {
	f := func(r *http.Request) []byte {
		if match(r) {
			return answer
		}
		return nil
	}
	e.armed.Store(&f)
}

const hostileConfig = "rules: [{name: stamped, match: {index: [stamped]}, base: {stamp: _stamp}}, " +
	"{name: fetched, match: {index: [fetched]}, base: {unknown: fetch}, retry: {max_attempts: 3}}, " +
	"{name: rest, base: {reads: [get, mget, search]}, retry: {max_attempts: 3}}]\n"

// TestHostileAnswersHurtNobody has each of the answers come on each way on which optimist reads one. The process goes on, without a panic,
// in bounded memory; no answer that isn't whole is a whole one to the client; and the next client gets its own answer.
func TestHostileAnswersHurtNobody(t *testing.T) {
	t.Parallel()
	e := &hostileEngine{}
	none := func(*http.Request) bool { return false }
	e.arm(none, nil)
	real := engine.Embedded(t)
	e.url = enginetest.Between(t, real, e.serve)
	g := startAt(t, e.url, bounded+hostileConfig)
	g.engine = real
	answers, paths := hostileAnswers(t), answerPaths()
	for _, index := range []string{"i", "fetched", "stamped"} {
		g.put(t, "/"+index+"/_doc/1", `{"n":1}`)
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	for n, a := range answers {
		begun := time.Now()
		grown := g.growth(t, func() {
			for i, p := range paths {
				if p.slow && (i+n)%7 != 0 && !long() {
					continue
				}
				e.arm(none, nil)
				if p.before != nil {
					p.before(g, t)
				}
				e.arm(p.hostile, a.bytes)
				status, text := g.asked(t, transport, &p)
				failed := status == 0 || status >= 400 || strings.Contains(text, `"errors":true`)
				if a.cut && p.passes && !failed {
					t.Errorf("%s, %s: the client was told %d %.200s", a.name, p.name, status, text)
				}
				e.arm(none, nil)
				if good := g.ask(t, "GET", "/good", ""); good.Status != 200 || good.Body != "good" {
					t.Fatalf("%s, %s: the next client gets %d %.200q", a.name, p.name, good.Status, good.Body)
				}
			}
		})
		t.Logf("%s: %v", a.name, time.Since(begun))
		if grown > memory+slack {
			t.Errorf("%s: memory grew by %d MiB", a.name, grown/mebi)
		}
	}
	t.Logf("%d answers on %d ways", len(answers), len(paths))
	if _, stack, panicked := strings.Cut(g.Log(), "panic"); panicked {
		t.Errorf("panic%.2000s", stack)
	}
	g.holds(t, 0)
}

// asked makes the request, and returns its answer's status, 0 where there is none or it isn't whole.
func (g *target) asked(t *testing.T, transport *http.Transport, p *answerPath) (status int, text string) {
	t.Helper()
	line, media, _ := strings.Cut(p.request, "\x00")
	method, path, _ := strings.Cut(line, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	r.Header.Set("Optimist-Session", "s")
	done := time.AfterFunc(patience, func() { t.Errorf("%s: no answer", p.name); transport.CloseIdleConnections() })
	defer done.Stop()
	res, err := transport.RoundTrip(r)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, string(body)
}

// The doctor asks a cluster what it is, and reads all that it says.
func TestHostileAnswersEndTheDoctorWithAReport(t *testing.T) {
	t.Parallel()
	binary, err := optimist.Binary(false)
	if err != nil {
		t.Fatal(err)
	}
	e := &hostileEngine{}
	e.url = enginetest.Between(t, engine.Embedded(t), e.serve)
	for n, a := range hostileAnswers(t) {
		if n%3 != 0 && !long() {
			continue
		}
		for name, match := range map[string]func(r *http.Request) bool{
			"everything":         func(*http.Request) bool { return true },
			"all but the banner": func(r *http.Request) bool { return r.URL.Path != "/" },
		} {
			e.arm(match, a.bytes)
			out, err := exec.CommandContext(t.Context(), binary, "doctor", "--upstream", e.url).CombinedOutput()
			if text := string(out); strings.Contains(text, "goroutine ") || strings.Contains(text, "\x1b[2J") || len(out) == 0 {
				t.Errorf("%s, %s: %v %.500s", a.name, name, err, out)
			}
		}
	}
}

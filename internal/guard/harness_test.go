package guard

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/internal/config"
	"optimist/internal/embedded"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/write"
	"optimist/proxy"
)

// world is a door with a guard in front of an embedded engine, all on real sockets.
type world struct {
	t        *testing.T
	direct   string // the engine's URL
	proxied  string // the door's
	sw       *rule.Switch
	sessions *session.Store

	mu       sync.Mutex
	observed []bool // of each observed write, whether it lost an update
	passed   []string

	untransformed []string
}

func newWorld(t *testing.T, rules string, id Identity) *world {
	t.Helper()
	engine := embedded.New(embedded.Options{})
	return newWorldOn(t, rules, id, serve(t, engine.Serve, func() { _ = engine.Close() }))
}

// newWorldOn is newWorld over an engine of the test's own.
func newWorldOn(t *testing.T, rules string, id Identity, engine string) *world {
	t.Helper()
	return newSizedWorldOn(t, rules, id, engine, 1<<20)
}

// largeBody is how large a body may be in bytes to be guarded, by default.
const largeBody = 16 << 20

func newLargeWorldOn(t *testing.T, rules, engine string) *world {
	t.Helper()
	return newSizedWorldOn(t, rules, Identity{}, engine, largeBody)
}

func newSizedWorldOn(t *testing.T, rules string, id Identity, engine string, maxBody int64) *world {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte("version: 1\nupstream: {urls: [http://127.0.0.1:1]}\n"+rules), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := rule.Compile(cfg.Rules)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sw: rule.NewSwitch(rule.Guard, set), direct: engine}
	nodes, err := upstream.New(upstream.Config{URLs: []string{w.direct}, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	// The store is older than its sessions' age, so that nothing counts as read before its start.
	start := time.Now()
	w.sessions = session.New(session.Options{Now: func() time.Time { return start }})
	start = start.Add(time.Hour)
	writes := write.New(write.Options{Upstream: nodes, Engine: &es.Client{Upstream: nodes}, Sessions: w.sessions})
	if id.Header == "" {
		id.Header = "Optimist-Session"
	}
	g := New(Options{Rules: w.sw, Upstream: nodes, Writes: writes, Sessions: w.sessions, Identity: id, MaxBody: maxBody, Events: Events{
		Observed: func(_ string, lost bool, _ outcome.Kind) {
			w.mu.Lock()
			w.observed = append(w.observed, lost)
			w.mu.Unlock()
		},
		Passed: func(_, reason string) { w.mu.Lock(); w.passed = append(w.passed, reason); w.mu.Unlock() },

		Untransformed: func(name string) { w.mu.Lock(); w.untransformed = append(w.untransformed, name); w.mu.Unlock() },
	}})
	door, err := proxy.New(proxy.Options{Upstream: nodes, Intercept: g.Intercept})
	if err != nil {
		t.Fatal(err)
	}
	w.proxied = serve(t, door.Serve, func() { door.Close(); nodes.Close() })
	return w
}

// serve runs a server on a free port until the test ends.
func serve(t *testing.T, run func(net.Listener) error, stop func()) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = run(ln) }()
	t.Cleanup(func() { stop(); <-done })
	return "http://" + ln.Addr().String()
}

type answer struct {
	status int
	body   string
	header http.Header
}

func (a answer) outcome() string { return a.header.Get("Optimist-Outcome") }

// ask sends a request to a base URL; fields are name, value, name, value.
func (w *world) ask(base, method, target, body string, fields ...string) answer {
	w.t.Helper()
	u, err := url.Parse(base + target)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.do(method, u, body, fields...)
}

func (w *world) do(method string, u *url.URL, body string, fields ...string) answer {
	w.t.Helper()
	var r io.Reader
	if body != "" {
		r = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequest(method, "http://"+u.Host, r)
	if err != nil {
		w.t.Fatal(err)
	}
	req.URL = u
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, u, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{res.StatusCode, string(b), res.Header}
}

// put stores a document straight in the engine.
func (w *world) put(target, body string) {
	w.t.Helper()
	if a := w.ask(w.direct, "PUT", target, body); a.status > 201 {
		w.t.Fatalf("PUT %s: %d %s", target, a.status, a.body)
	}
}

// stored is a document's source in the engine.
func (w *world) stored(target string) string {
	return w.ask(w.direct, "GET", strings.Replace(target, "_doc", "_source", 1), "").body
}

func (w *world) wants(a answer, status int, outcome string) {
	w.t.Helper()
	if a.status != status || !strings.HasPrefix(a.outcome(), outcome) {
		w.t.Errorf("got %d %s [%s], want %d and the outcome %s…", a.status, a.body, a.outcome(), status, outcome)
	}
}

// zipped is a body as clients compress it.
func zipped(body string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(body)) // a buffer takes everything
	_ = z.Close()
	return b.String()
}

package app

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"optimist/internal/client"
	"optimist/internal/config"
	"optimist/internal/enginetest"
	"optimist/internal/rule"
	"optimist/internal/unit"
)

// world is an App in front of an embedded engine, all on real sockets.
type world struct {
	t       *testing.T
	direct  string // the engine's URL
	proxied string // the App's
	app     *App
}

// Identity is how a test's clients are told apart; the zero value knows only those that name their session.
type Identity = client.Identity

func newWorld(t *testing.T, rules string, id Identity) *world {
	t.Helper()
	return newWorldOn(t, rules, id, enginetest.Serve(t))
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
	c := configured(t, rules, engine)
	c.Limits.MaxGuardedBody = unit.Size(maxBody)
	switch c.Sessions.Infer = config.InferNone; {
	case id.Infer && id.Address:
		c.Sessions.Infer = config.InferCredentialsAndAddress
	case id.Infer:
		c.Sessions.Infer = config.InferCredentials
	}
	w := &world{t: t, direct: engine, app: running(t, c)}
	w.proxied = w.app.URL()
	return w
}

// configured is a configuration with rules, on any port, without an admin listener.
func configured(t testing.TB, rules, engine string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\nlocks: {path: ''}\nupstream: {health_interval: 0s}\n"+rules),
		config.Overrides{Upstream: []string{engine}, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compiled are a configuration's rules.
func compiled(t testing.TB, c *config.Config) *rule.Set {
	t.Helper()
	set, err := rule.FromConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// running is an App of that configuration, until the test ends.
func running(t testing.TB, c *config.Config) *App {
	t.Helper()
	return runningWith(t, Options{Config: c})
}

// runningWith is running with options. Rules come from the configuration.
func runningWith(t testing.TB, o Options) *App {
	t.Helper()
	o.Rules, o.Settled = compiled(t, o.Config), true
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.Serve()
	return a
}

// counted is how often something was counted, as in counted("optimist_outcomes_total", "reason", "bulk").
func (w *world) counted(metric string, labels ...string) (n int) {
	w.t.Helper()
	families, err := w.app.metrics.Gatherer().Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := map[string]string{}
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			fits := f.GetName() == metric
			for i := 0; i+1 < len(labels); i += 2 {
				fits = fits && has[labels[i]] == labels[i+1]
			}
			if fits {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// observed holds how many writes were counted in observe mode, and how many of them had lost an update.
func (w *world) observed(writes, lost int) {
	w.t.Helper()
	if n, m := w.counted("optimist_observed_writes_total"), w.counted("optimist_lost_updates_total"); n != writes || m != lost {
		w.t.Errorf("%d writes are counted, of which %d lost an update; want %d and %d", n, m, writes, lost)
	}
}

type answer = enginetest.Answer

// ask sends a request to a base URL; fields are name, value, name, value.
func (w *world) ask(base, method, target, body string, fields ...string) answer {
	w.t.Helper()
	return enginetest.Ask(w.t, method, base+target, body, fields...)
}

// put stores a document straight in the engine.
func (w *world) put(target, body string) {
	w.t.Helper()
	if a := w.ask(w.direct, "PUT", target, body); a.Status > 201 {
		w.t.Fatalf("PUT %s: %d %s", target, a.Status, a.Body)
	}
}

// stored is a document's source in the engine.
func (w *world) stored(target string) string {
	return w.ask(w.direct, "GET", strings.Replace(target, "_doc", "_source", 1), "").Body
}

func (w *world) wants(a answer, status int, outcome string) {
	w.t.Helper()
	if a.Status != status || !strings.HasPrefix(a.Outcome(), outcome) {
		w.t.Errorf("got %d %s [%s], want %d and the outcome %s…", a.Status, a.Body, a.Outcome(), status, outcome)
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

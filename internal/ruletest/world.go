package ruletest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/rule"
)

// world is optimist before an engine in memory, as `serve --embedded` is: what a test says goes the whole way that a client's
// requests go.
type world struct {
	app     *app.App
	direct  string // the engine's base URL
	proxied string // optimist's
	header  string // the one that names sessions
	client  *http.Client
}

// newWorld starts one. now is the time that rules see; zero is the real one. The mode of the whole is guard, whatever the
// configuration says: rules are tested before they are switched on.
func newWorld(c *config.Config, rules *rule.Set, now time.Time) (*world, error) {
	own := *c
	own.Mode, own.Listen, own.Admin, own.Upstream = config.ModeGuard, "127.0.0.1:0", "", config.Upstream{}
	o := app.Options{Config: &own, Rules: rules, InMemory: true, Settled: true}
	if !now.IsZero() {
		o.Now = func() time.Time { return now }
	}
	a, err := app.New(o)
	if err != nil {
		return nil, err
	}
	a.Serve()
	client := &http.Client{Transport: &http.Transport{}}
	return &world{app: a, direct: a.EngineURL(), proxied: a.URL(), header: c.Sessions.Header, client: client}, nil
}

func (w *world) close() {
	w.client.CloseIdleConnections()
	w.app.Close()
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) outcome() string { return a.header.Get("Optimist-Outcome") }

// reason is what an error says: its type and its reason, or the whole body where that is no error of the engine's form.
func (a *answer) reason() string {
	if kind := gjson.GetBytes(a.body, "error.type"); kind.Exists() {
		return kind.String() + ": " + gjson.GetBytes(a.body, "error.reason").String()
	}
	return string(a.body)
}

// ask sends a request to a base URL.
func (w *world) ask(ctx context.Context, base string, r *message) (*answer, error) {
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.target, body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := w.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	a := &answer{status: res.StatusCode, header: res.Header}
	a.body, err = io.ReadAll(res.Body)
	return a, err
}

// message is a request to be sent.
type message struct {
	method, target string
	header         http.Header
	body           []byte
}

// errEngine reports an engine in memory that refused what a test puts into it.
var errEngine = errors.New("the engine in memory refused it")

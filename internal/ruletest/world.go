package ruletest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/roundtrip"
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
	w := &world{app: a, direct: a.EngineURL(), proxied: a.URL(), client: client}
	if names := c.Sessions.Header.Names(); len(names) > 0 {
		w.header = names[0]
	}
	return w, nil
}

func (w *world) close() {
	w.client.CloseIdleConnections()
	w.app.Close()
}

// answer is what a request was answered with.
type answer struct{ roundtrip.Answer }

func (a *answer) outcome() string { return a.Header.Get("Optimist-Outcome") }

// reason is what an error says: its type and its reason, or the whole body where that is no error of the engine's form.
func (a *answer) reason() string {
	if kind := gjson.GetBytes(a.Body, "error.type"); kind.Exists() {
		return kind.String() + ": " + gjson.GetBytes(a.Body, "error.reason").String()
	}
	return string(a.Body)
}

// ask sends a request to a base URL.
func (w *world) ask(ctx context.Context, base string, m *message) (*answer, error) {
	a, err := roundtrip.Do(ctx, w.client, roundtrip.Request{Method: m.method, URL: base + m.target, Header: m.header, Body: m.body})
	if err != nil {
		return nil, err
	}
	return &answer{*a}, nil
}

// message is a request to be sent.
type message struct {
	method, target string
	header         http.Header
	body           []byte
}

// errEngine reports an engine in memory that refused what a test puts into it.
var errEngine = errors.New("the engine in memory refused it")

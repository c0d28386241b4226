package ruletest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/config"
	"optimist/internal/embedded"
	"optimist/internal/es"
	"optimist/internal/guard"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// world is optimist before an engine in memory, as `serve --embedded` is: what a test says goes the whole way that a client's requests go.
type world struct {
	direct  string // the engine's base URL
	proxied string // optimist's
	header  string // the one that names sessions
	client  *http.Client
	stops   []func()
}

// clockAhead is how long the sessions have been there when a test begins: longer than anything is remembered, so that what a client hasn't
// read isn't taken for something that was read before the start.
const clockAhead = 1000 * time.Hour

// newWorld starts one. now is the time that rules see; zero is the real one. The mode of the whole is guard, whatever the configuration
// says: rules are tested before they are switched on.
func newWorld(c *config.Config, rules *rule.Set, now time.Time) (*world, error) {
	w := &world{header: c.Sessions.Header, client: &http.Client{Transport: &http.Transport{}}}
	engine := embedded.New(embedded.Options{})
	url, err := w.serve(engine.Serve, func() { _ = engine.Close() }) // it holds nothing that could be lost by it
	if err != nil {
		return nil, err
	}
	w.direct = url
	nodes, err := upstream.New(upstream.Config{URLs: []string{url}, HealthInterval: -1})
	if err != nil {
		w.close()
		return nil, err
	}
	w.stops = append(w.stops, nodes.Close)
	door, err := proxy.New(proxy.Options{Upstream: nodes, Intercept: intercept(c, rules, nodes, now)})
	if err != nil {
		w.close()
		return nil, err
	}
	if w.proxied, err = w.serve(door.Serve, door.Close); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// intercept puts together what takes writes and watches reads.
func intercept(c *config.Config, rules *rule.Set, nodes *upstream.Set, now time.Time) func(*proxy.Exchange) bool {
	start, ahead := time.Now(), time.Duration(0)
	sessions := session.New(session.Options{
		MaxAge: c.Sessions.MaxAge.Std(), Memory: c.Sessions.Memory.Bytes(),
		Left: wire.PeerClosed, Now: func() time.Time { return start.Add(ahead) },
	})
	ahead = clockAhead
	options := write.Options{Upstream: nodes, Engine: &es.Client{Upstream: nodes}, Sessions: sessions}
	if !now.IsZero() {
		options.Now = func() time.Time { return now }
	}
	id := guard.Identity{Header: c.Sessions.Header, Infer: c.Sessions.Infer != config.InferNone,
		Address: c.Sessions.Infer == config.InferCredentialsAndAddress}
	return guard.New(guard.Options{
		Rules: rule.NewSwitch(rule.Guard, rules), Upstream: nodes, Writes: write.New(options), Sessions: sessions, Identity: id,
		MaxBody: c.Limits.MaxGuardedBody.Bytes(),
	}).Intercept
}

// serve runs a server on a free port of this machine.
func (w *world) serve(run func(net.Listener) error, stop func()) (url string, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ln) // it ends by stop; what it can't serve, a request will tell
	}()
	w.stops = append(w.stops, func() { stop(); <-done })
	return "http://" + ln.Addr().String(), nil
}

func (w *world) close() {
	w.client.CloseIdleConnections()
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
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

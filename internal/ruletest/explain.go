package ruletest

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/explain"
	"optimist/internal/intercept"
	"optimist/internal/rule"
)

// Question is a write that is to be explained.
type Question struct {
	Method, Target string
	Header         http.Header
	Body           []byte
	// Base is the document as the client has read it; nil: it hasn't. Current is the document as it is by now; nil: it is the
	// base, or, if there is none, absent. null stands for a document that isn't there.
	Base, Current []byte
	Now           time.Time // the time that rules see; zero is the real one
}

// ErrQuestion reports a question that makes no sense.
var ErrQuestion = errors.New("this can't be explained")

// ErrNoAnswer reports a server that couldn't be reached, or doesn't speak HTTP.
var ErrNoAnswer = errors.New("no optimist answers")

// Offline explains a write to an engine in memory that holds what the question says.
func Offline(ctx context.Context, c *config.Config, rules *rule.Set, q *Question) (*explain.Account, []byte, error) {
	req, err := q.request()
	switch {
	case err != nil:
		return nil, nil, err
	case q.Body == nil && req.op != api.Delete:
		return nil, nil, fmt.Errorf("%w: the request needs a body; give it with --body", ErrQuestion)
	}
	if err := q.checkHeader(); err != nil {
		return nil, nil, err
	}
	for _, d := range []struct {
		name string
		text []byte
	}{{"base", q.Base}, {"current", q.Current}} {
		if v := gjson.ParseBytes(d.text); d.text != nil && (!json.Valid(d.text) || !v.IsObject() && v.Type != gjson.Null) {
			return nil, nil, fmt.Errorf("%w: the %s document is not a JSON object", ErrQuestion, d.name)
		}
	}
	if req.op == api.IndexAuto && (q.Base != nil || q.Current != nil) {
		return nil, nil, fmt.Errorf("%w: a new document has neither a base nor a current one", ErrQuestion)
	}
	w, err := newWorld(c, rules, q.Now)
	if err != nil {
		return nil, nil, err
	}
	defer w.close()
	p := &play{ctx: ctx, w: w, rules: rules, t: &Test{Base: given(q.Base), Current: given(q.Current)}}
	own := &Write{request: req, Sent: given(q.Body)}
	m := q.message(req)
	p.name(m.header, own, "explain")
	if err := p.prepare(req); err != nil {
		return nil, nil, err
	}
	if q.Base != nil {
		read := m.header.Clone()
		read.Del("Content-Type")
		read.Del("If-Match")
		if _, err := w.ask(ctx, w.proxied, &message{method: http.MethodGet, target: req.path + req.routing, header: read}); err != nil {
			return nil, nil, err
		}
	}
	if err := p.meanwhile(req); err != nil {
		return nil, nil, err
	}
	return dryRun(ctx, w.client, w.proxied, m)
}

// request is what the question asks about.
func (q *Question) request() (request, error) {
	r, reason := readRequest(q.Method + " " + q.Target)
	if reason != "" {
		return r, fmt.Errorf("%w: %q %s", ErrQuestion, q.Method+" "+q.Target, reason)
	}
	return r, nil
}

// message is the request that is asked about.
func (q *Question) message(r request) *message {
	m := &message{method: q.Method, target: q.Target, header: q.Header.Clone(), body: q.Body}
	if m.header == nil {
		m.header = http.Header{}
	}
	if q.Body != nil && m.header.Get("Content-Type") == "" {
		m.header.Set("Content-Type", mediaOf(r.op, q.Body))
	}
	return m
}

// checkHeader finds headers that can't be sent.
func (q *Question) checkHeader() error {
	for name, values := range q.Header {
		for _, v := range values {
			if reason := badHeader(name, v); reason != "" {
				return fmt.Errorf("%w: %s", ErrQuestion, reason)
			}
		}
	}
	return nil
}

func given(text []byte) config.JSON {
	return config.JSON{IsSet: text != nil, Text: []byte(strings.TrimSpace(string(text)))}
}

// Online asks a running optimist what it would do with a write. It makes sure first that an optimist answers there which knows dry runs:
// any other server would carry the write out. Without conf, the system's authorities are trusted.
func Online(ctx context.Context, proxy string, conf *tls.Config, q *Question) (*explain.Account, []byte, error) {
	req, err := q.request()
	if err != nil {
		return nil, nil, err
	}
	if err := q.checkHeader(); err != nil {
		return nil, nil, err
	}
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf},
		// Who answers elsewhere may not be an optimist.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	m := q.message(req)
	probe := &message{method: http.MethodGet, target: "/", header: http.Header{intercept.DryRunField: {"?"}}}
	for _, name := range []string{"Authorization", "Cookie"} {
		if v := m.header.Values(name); len(v) > 0 {
			probe.header[name] = v
		}
	}
	w := &world{client: client}
	a, err := w.ask(ctx, proxy, probe)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, nil, fmt.Errorf("%w at %s: %w", ErrNoAnswer, proxy, err)
	}
	if a.Status != http.StatusBadRequest || gjson.GetBytes(a.Body, "error.type").String() != intercept.TypeBadDryRun {
		advice := ""
		if a.Status == http.StatusBadRequest && strings.HasPrefix(proxy, "http://") { // many servers with TLS answer so to HTTP
			advice = ". Perhaps the port speaks TLS (https://, and not http://)"
		}
		return nil, nil, fmt.Errorf("%s is not an optimist that knows dry runs (it answered %d): "+
			"the write would be carried out, so it was not sent%s", proxy, a.Status, advice)
	}
	return dryRun(ctx, client, proxy, m)
}

// dryRun makes the dry run. It returns the account and its JSON.
func dryRun(ctx context.Context, client *http.Client, proxy string, m *message) (*explain.Account, []byte, error) {
	w := &world{client: client}
	m.header.Set(intercept.DryRunField, "true")
	a, err := w.ask(ctx, proxy, m)
	if err != nil {
		return nil, nil, err
	}
	if kind := gjson.GetBytes(a.Body, "error.type"); a.Status != http.StatusOK && kind.Exists() {
		return nil, nil, fmt.Errorf("%d %s", a.Status, a.reason())
	}
	account, err := readAccount(a)
	return account, a.Body, err
}

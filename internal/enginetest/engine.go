// Package enginetest is the engine of tests, and the requests that tests make: the embedded engine, as an upstream with a script
// for failures on the way, and over HTTP, with or without a server in front of it.
//
// It is for tests only. Nothing of the program imports it.
package enginetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"optimist/internal/embedded"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// ErrLost is the sender's error if its request was sent, and no answer came.
var ErrLost = &upstream.Error{Node: "http://stub", Class: upstream.Lost, Sent: true, Err: errors.New("connection reset")}

// Engine is the embedded engine as an upstream. Before and After are its script; either may be nil. It is safe for concurrent use, as far
// as they are.
type Engine struct {
	*embedded.Engine
	// Before has each request first. It answers the request itself by a response or an error. Two nils let the request through.
	Before func(ctx context.Context, r *upstream.Request) (*upstream.Response, error)
	// After has each request with the engine's answer to it. The sender gets its error in place of the answer.
	After func(r *upstream.Request, res *upstream.Response) error

	mu       sync.Mutex
	requests []string
}

// New returns an empty engine without a script.
func New() *Engine { return &Engine{Engine: embedded.New(embedded.Options{})} }

// Do carries a request out, as *upstream.Set does.
func (e *Engine) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	if e.Before != nil {
		if res, err := e.Before(ctx, r); res != nil || err != nil {
			return res, err
		}
	}
	e.mu.Lock()
	e.requests = append(e.requests, r.Method+" "+string(r.Target))
	e.mu.Unlock()
	got := e.Handle(&embedded.Request{Method: r.Method, Target: string(r.Target), ContentType: "application/json", Body: bytes.Clone(r.Body)})
	res := Response(got.Status, string(got.Body))
	for _, f := range got.Fields {
		res.Fields = append(res.Fields, wire.Field{Name: []byte(f.Name), Value: []byte(f.Value)})
	}
	if e.After != nil {
		if err := e.After(r, res); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// Requests returns the requests that the script has let through, as "METHOD target", since the last call.
func (e *Engine) Requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	requests := e.requests
	e.requests = nil
	return requests
}

// Ask sends the engine a request past the script, and returns the answer's status and body.
func (e *Engine) Ask(t testing.TB, method, target, body string) (int, string) {
	t.Helper()
	got := e.Handle(&embedded.Request{Method: method, Target: target, ContentType: "application/json", Body: []byte(body)})
	return got.Status, string(got.Body)
}

// Put is Ask with PUT. It ends the test unless that succeeds.
func (e *Engine) Put(t testing.TB, target, body string) {
	t.Helper()
	if status, answer := e.Ask(t, "PUT", target, body); status != 200 && status != 201 {
		t.Fatalf("PUT %s: %d %s", target, status, answer)
	}
}

// Gzip is a body in the content coding gzip, as some gateways send answers, and engines to clients that take it.
func Gzip(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b) // which writes to memory, and so never fails
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

// Response is an answer of JSON; fields are name, value, name, value.
func Response(status int, body string, fields ...string) *upstream.Response {
	res := &upstream.Response{Payload: []byte(body)}
	res.Status = status
	res.Fields = []wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}
	for i := 0; i+1 < len(fields); i += 2 {
		res.Fields = append(res.Fields, wire.Field{Name: []byte(fields[i]), Value: []byte(fields[i+1])})
	}
	return res
}

// Canned are answers by "METHOD path". Its Answer is a script's Before.
type Canned map[string]Answer

// Answer gives the answer to a request, whatever its query, or two nils if there is none.
func (c Canned) Answer(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
	path, _, _ := strings.Cut(string(r.Target), "?")
	a, ok := c[r.Method+" "+path]
	switch {
	case !ok:
		return nil, nil
	case a.Err != nil:
		return nil, a.Err
	}
	res := Response(a.Status, a.Body)
	res.Node = r.Node
	for name, values := range a.Header {
		res.Fields = append(res.Fields, wire.Field{Name: []byte(name), Value: []byte(values[0])})
	}
	return res, nil
}

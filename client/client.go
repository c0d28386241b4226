// Package client is for Go programs that work through optimist. It does work under a lock, and changes documents by a function
// that may run again.
//
// It talks HTTP, and works with any optimist. Update also works with a bare engine.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Client sends requests to one optimist. It is safe for concurrent use.
type Client struct {
	url    string
	header http.Header
	http   *http.Client
}

// Options change how requests are sent. The zero value is good for an optimist that asks for no credentials.
type Options struct {
	// Header is sent with every request: Authorization, for example.
	Header http.Header
	// HTTP sends the requests. It must not have a Timeout that is shorter than waiting for a lock may take. Default: a client of its own,
	// without a Timeout: contexts end requests.
	HTTP *http.Client
}

// New returns a Client of the optimist at that URL: http://127.0.0.1:9280, for example.
func New(url string, o Options) *Client {
	c := &Client{url: strings.TrimRight(url, "/"), header: o.Header, http: o.HTTP}
	if c.http == nil {
		c.http = &http.Client{}
	}
	return c
}

// Error is an answer that refuses a request, in the engine's form.
type Error struct {
	Status int    // of HTTP
	Type   string // for example lock_held, version_conflict_engine_exception
	Reason string // for people
}

// Error names the status, the type and the reason.
func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Type, e.Reason) }

// ErrUnknownOutcome is in the chain of the error of a write that was sent, and of which nobody knows whether it was applied: the answer was
// lost on its way, or optimist says so. Read the document before you write it again.
var ErrUnknownOutcome = errors.New("the outcome of the write is unknown")

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request and reads its whole answer. Any status is an answer; the error says that there is none.
func (c *Client) ask(ctx context.Context, method, target string, body []byte, header http.Header) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+target, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	for _, from := range []http.Header{c.header, header} {
		for name, values := range from {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a = answer{status: res.StatusCode, header: res.Header}
	a.body, err = io.ReadAll(res.Body)
	return a, err
}

// failure is what an answer says that isn't what was asked for.
func (a *answer) failure() *Error {
	var body struct {
		Error json.RawMessage
	}
	e := &Error{Status: a.status, Type: "unexpected_answer", Reason: string(a.body[:min(len(a.body), 200)])}
	if json.Unmarshal(a.body, &body) != nil {
		return e
	}
	var detail struct{ Type, Reason string }
	if json.Unmarshal(body.Error, &detail) == nil && detail.Type != "" {
		e.Type, e.Reason = detail.Type, detail.Reason
	}
	return e
}

// maySent reports whether a request without an answer may have been sent.
func maySent(err error) bool {
	var answered *Error
	var never *net.OpError
	return !errors.As(err, &answered) && !(errors.As(err, &never) && never.Op == "dial")
}

// name is one that nobody else has.
func name() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"optimist/internal/roundtrip"
)

// StatusError is an answer that wasn't expected.
type StatusError struct {
	Status int
	Body   string
}

// Error tells the status and the beginning of the body.
func (e *StatusError) Error() string {
	return fmt.Sprintf("status %d: %.300s", e.Status, e.Body)
}

// client is one worker's way to its document.
type client struct {
	http   *http.Client
	url    string
	header http.Header // of every request
	guard  Guard
	owned  bool // the connections are this client's own
}

// revision is what is known of the document that was read or written last.
type revision struct {
	found       bool
	written     bool // it is what a write was answered with
	seqNo, term int64
	etag        string
}

// reply is the answer to a write.
type reply struct {
	status int
	body   []byte
	header http.Header
	revision
}

func (r *reply) acknowledged() bool {
	return r.status == http.StatusOK || r.status == http.StatusCreated
}

// numbers are what both reads and writes are answered with.
type numbers struct {
	SeqNo  int64           `json:"_seq_no"`
	Term   int64           `json:"_primary_term"`
	Source json.RawMessage `json:"_source"`
}

// get reads the document. A document that isn't there is an empty one.
func (c *client) get(ctx context.Context) (document, revision, error) {
	a, err := c.do(ctx, http.MethodGet, c.url, nil, nil)
	switch {
	case err != nil:
		return nil, revision{}, err
	case a.Status == http.StatusNotFound:
		return document{}, revision{}, nil
	case a.Status != http.StatusOK:
		return nil, revision{}, &StatusError{a.Status, string(a.Body)}
	}
	var n numbers
	if err := json.Unmarshal(a.Body, &n); err != nil {
		return nil, revision{}, fmt.Errorf("reading: %w", err)
	}
	var d document
	dec := json.NewDecoder(bytes.NewReader(n.Source))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil {
		return nil, revision{}, fmt.Errorf("reading: %w", err)
	}
	return d, revision{found: true, seqNo: n.SeqNo, term: n.Term, etag: a.Header.Get("ETag")}, nil
}

// put writes the document back whole. rev is what a guarded worker guards with.
func (c *client) put(ctx context.Context, d document, rev revision) (reply, error) {
	body, err := encode(d)
	if err != nil {
		return reply{}, err
	}
	return c.send(ctx, body, rev)
}

func encode(d document) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func (c *client) send(ctx context.Context, doc []byte, rev revision) (reply, error) {
	target := c.url
	var more http.Header
	switch {
	case c.guard == ByNumbers && rev.found, c.guard == ByAnswer && rev.written:
		target += "?if_seq_no=" + strconv.FormatInt(rev.seqNo, 10) + "&if_primary_term=" + strconv.FormatInt(rev.term, 10)
	case c.guard == ByNumbers:
		target += "?op_type=create"
	case c.guard == ByMatch && rev.etag != "":
		more = http.Header{"If-Match": {rev.etag}}
	}
	whole, cancel := Whole(ctx)
	defer cancel()
	a, err := c.do(whole, http.MethodPut, target, doc, more)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: a.Status, header: a.Header, body: a.Body}
	if r.acknowledged() {
		var n numbers
		if err := json.Unmarshal(a.Body, &n); err != nil {
			return r, fmt.Errorf("writing: %w", err)
		}
		r.revision = revision{found: true, written: true, seqNo: n.SeqNo, term: n.Term, etag: a.Header.Get("ETag")}
	}
	return r, nil
}

// Patience is how long the answer to a request that changes something is waited for after an interruption.
const Patience = 10 * time.Second

// Whole returns the context of a request that changes something. An interruption waits for its answer, for Patience at most: the engine may
// do what it is asked all the same, even after a deletion that overtakes the request.
func Whole(ctx context.Context) (context.Context, context.CancelFunc) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(Patience, cancel) })
	return whole, func() {
		stop()
		cancel()
	}
}

// do sends one request. An error means that there was no answer.
func (c *client) do(ctx context.Context, method, url string, body []byte, more http.Header) (*roundtrip.Answer, error) {
	h := http.Header{}
	maps.Copy(h, c.header)
	maps.Copy(h, more)
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	return roundtrip.Do(ctx, c.http, roundtrip.Request{Method: method, URL: url, Header: h, Body: body})
}

func (c *client) close() {
	if c.owned {
		c.http.CloseIdleConnections()
	}
}

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func TestFailuresAsClientsAreToldOfThem(t *testing.T) {
	node := func(class upstream.Class, sent bool, err error) error {
		return fmt.Errorf("wrapped: %w", &upstream.Error{Node: "http://es1:9200", Class: class, Sent: sent, Err: err})
	}
	for name, tt := range map[string]struct {
		err    error
		read   bool
		status int
		typ    string
	}{
		"refused":            {node(upstream.NotSent, false, &upstream.ConnectError{Reason: upstream.Refused, Err: io.EOF}), false, 502, TypeUnreachable},
		"unresolved":         {node(upstream.NotSent, false, &upstream.ConnectError{Reason: upstream.Unresolved, Err: io.EOF}), true, 502, TypeUnreachable},
		"connect timeout":    {node(upstream.NotSent, false, &upstream.ConnectError{Reason: upstream.TimedOut, Err: io.EOF}), false, 504, TypeTimeout},
		"busy":               {node(upstream.NotSent, false, upstream.ErrBusy), false, 503, TypeBusy},
		"limited":            {node(upstream.NotSent, false, upstream.ErrLimited), false, 429, TypeLimited},
		"closed":             {node(upstream.NotSent, false, upstream.ErrClosed), false, 503, TypeStopped},
		"lost write":         {node(upstream.Lost, true, io.EOF), false, 504, TypeUnknown},
		"lost read":          {node(upstream.Lost, true, io.EOF), true, 502, TypeLost},
		"broken read":        {node(upstream.Broken, true, io.EOF), true, 502, TypeLost},
		"too large":          {node(upstream.TooLarge, true, upstream.TooLarge), true, 502, TypeAnswer},
		"bad chunk":          {node(upstream.Body, true, wire.ErrChunk), false, 400, TypeInvalid},
		"slow body":          {node(upstream.Body, true, errBodyTimeout), false, 408, TypeSlow},
		"client left":        {node(upstream.Cancelled, true, ErrLeft), false, 0, ""},
		"client left, body":  {node(upstream.Body, true, io.ErrUnexpectedEOF), false, 0, ""},
		"stopped":            {node(upstream.Cancelled, false, ErrStopped), false, 503, TypeStopped},
		"stopped, write":     {node(upstream.Cancelled, true, ErrStopped), false, 504, TypeUnknown},
		"out of time":        {node(upstream.Cancelled, false, context.DeadlineExceeded), false, 504, TypeTimeout},
		"out of time, read":  {node(upstream.Cancelled, true, context.DeadlineExceeded), true, 502, TypeLost},
		"out of time, write": {node(upstream.Cancelled, true, context.DeadlineExceeded), false, 504, TypeUnknown},
		"body too large":     {ErrTooLarge, false, 413, TypeTooLarge},
		"slow head":          {errHeaderTimeout, false, 408, TypeSlow},
		"crowded":            {errCrowded, false, 503, TypeCrowded},
		"cancelled":          {context.Canceled, false, 0, ""},
		"reset":              {&net.OpError{Op: "read", Err: errors.New("reset")}, false, 0, ""},
		"own":                {fmt.Errorf("x: %w", &Failure{Status: 428, Type: "a", Reason: "b"}), false, 428, "a"},
		"bug":                {errors.New("what"), false, 500, TypeInternal},
		"head too large":     {wire.ErrHeadTooLarge, false, 431, TypeHeader},
		"unsupported coding": {wire.ErrTransferCoding, false, 501, TypeUnsupported},
	} {
		f := FailureOf(tt.err, tt.read)
		switch {
		case f == nil && tt.status != 0, f != nil && (f.Status != tt.status || f.Type != tt.typ):
			t.Errorf("%s: got %+v, want %d %s", name, f, tt.status, tt.typ)
		case f != nil && strings.HasPrefix(f.Type, "upstream") && !strings.Contains(f.Reason, "http://es1:9200"):
			t.Errorf("%s doesn't name the node: %s", name, f.Reason)
		}
		if f != nil && !json.Valid(f.Append(nil)) {
			t.Errorf("%s: not JSON: %s", name, f.Append(nil))
		}
	}
}

// down returns the URL of a port where nobody listens.
func down(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	return "http://" + ln.Addr().String()
}

func newSet(t *testing.T, urls ...string) *upstream.Set {
	t.Helper()
	set, err := upstream.New(upstream.Config{URLs: urls, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	return set
}

func TestEngineDownIsSaidAtOnce(t *testing.T) {
	url := down(t)
	// Whoever waited for one of these would come too late for the client.
	set, err := upstream.New(upstream.Config{URLs: []string{url}, HealthInterval: -1, ConnectTimeout: 2 * patience, AcquireTimeout: 2 * patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	addr, _ := serve(t, Options{Upstream: set})
	c := dial(t, addr)
	for _, req := range []string{lines("GET / HTTP/1.1", "Host: h"), lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 2") + "{}"} {
		c.send(req)
		a := c.answer("GET")
		wantError(t, a, 502, TypeUnreachable)
		if !strings.Contains(a.body, url) || !strings.Contains(a.body, "refused") {
			t.Errorf("doesn't say which node and why: %s", a.body)
		}
	}
}

func TestAllNodesDownNamesThemAll(t *testing.T) {
	one, two := down(t), down(t)
	addr, _ := serve(t, Options{Upstream: newSet(t, one, two)})
	c := dial(t, addr)
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
	a := c.answer("GET")
	wantError(t, a, 503, TypeNoNode)
	if !strings.Contains(a.body, one) || !strings.Contains(a.body, two) {
		t.Error(a.body)
	}
}

func TestOneNodeDownIsNotNoticed(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := serve(t, Options{Upstream: newSet(t, down(t), s.url(), down(t))})
	c := dial(t, addr)
	for i := range 6 {
		if i%2 == 0 {
			c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
		} else {
			c.send(lines("POST /_bulk HTTP/1.1", "Host: h", "Content-Length: 50000"), strings.Repeat("x", 50000))
		}
		if a := c.answer("PUT"); a.status != 200 {
			t.Fatalf("%+v", a)
		}
	}
	if len(s.requests()) != 6 {
		t.Errorf("%d requests", len(s.requests()))
	}
}

func TestLostAnswerOfAWriteIsUnknownAndSentOnce(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) { _ = c.Close() })
	addr, _ := newProxy(t, s, nil)
	for name, body := range map[string]string{"small": "{}", "large": strings.Repeat("x", 300000)} {
		before := len(s.requests())
		c := dial(t, addr)
		c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", fmt.Sprintf("Content-Length: %d", len(body))), body)
		a := c.answer("PUT")
		wantError(t, a, 504, TypeUnknown)
		if !strings.Contains(a.body, s.url()) {
			t.Error(a.body)
		}
		if n := len(s.requests()) - before; n != 1 {
			t.Errorf("%s: sent %d times", name, n)
		}
	}
}

func TestLostAnswerOfAReadIsAskedForAgainOnce(t *testing.T) {
	var lose atomic.Int32
	lose.Store(1)
	s := newStub(t, func(c *stubConn, _ seen) {
		if lose.Add(-1) >= 0 {
			_ = c.Close()
			return
		}
		c.ok("{}")
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET /a/_doc/1 HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	lose.Store(100)
	c.send(lines("GET /a/_doc/1 HTTP/1.1", "Host: h"))
	wantError(t, c.answer("GET"), 502, TypeLost)
	if n := len(s.requests()); n != 4 {
		t.Errorf("%d requests", n)
	}
	c.send(lines("POST /a/_search HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
	wantError(t, c.answer("POST"), 502, TypeLost) // changes nothing, but a POST isn't for us to repeat
	if n := len(s.requests()); n != 5 {
		t.Errorf("%d requests", n)
	}
}

func TestOwnErrorsNameTheProductThatTheEngineNames(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say("{}", "HTTP/1.1 200 OK", "X-elastic-product: Elasticsearch", "content-length: 2")
		_ = c.Close()
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.field("x-elastic-product") != "Elasticsearch" {
		t.Fatalf("%+v", a)
	}
	s.stop()
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	a := c.answer("GET")
	if a.status != 502 || a.field("x-elastic-product") != "Elasticsearch" {
		t.Errorf("%+v", a)
	}
}

// The first thing that a client is told may be the proxy's own: who the engine is, is learnt before.
func TestOwnErrorsNameTheProductThatWasLearntElsewhere(t *testing.T) {
	for product, want := range map[string]string{"Elasticsearch": "Elasticsearch", "Other": "", "": ""} {
		s := newStub(t, nil)
		addr, server := newProxy(t, s, nil)
		server.LearnProduct(&wire.Head{Fields: []wire.Field{{Name: []byte("x-elastic-PRODUCT"), Value: []byte(product)}}})
		s.stop()
		c := dial(t, addr)
		c.send(lines("GET / HTTP/1.1", "Host: h"))
		if a := c.answer("GET"); a.status != 502 || a.field("x-elastic-product") != want {
			t.Errorf("%q: %+v", product, a)
		}
	}
}

package app_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"optimist/internal/demo/app"
	"optimist/internal/obs"
)

// TestObserveCountsWhatWasLost, exactly where the losses are made one by one, and at least as much where they aren't.
func TestObserveCountsWhatWasLost(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		p := optimistFor(t, together(t, e, 2), "", "--mode", "observe")
		lost := func() int64 {
			return int64(p.Metric(t, obs.MetricLostUpdates, fmt.Sprintf("index=%q", index)))
		}
		var missing int64
		for n := range 10 {
			a := &app.Application{
				URLs: []string{p.URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/pair-%d", index, n),
				Shape: app.Counter, Workers: 2, Rounds: 1, Sessions: app.Named,
			}
			r, err := a.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			missing += r.Lost
		}
		if counted := lost(); missing != 10 || counted != missing {
			t.Errorf("%d changes were lost, %d were counted", missing, counted)
		}

		p = optimistFor(t, e, "", "--mode", "observe")
		r, _ := run(t, &app.Application{
			URLs: []string{p.URL}, Store: e.url, Path: "/" + index + "/_doc/many", Shape: app.Counter, Workers: 16, Rounds: rounds(16), Sessions: app.Named,
		})
		// A write that erased others erased one at least, and some of the erased were erased again by a third.
		if counted := lost(); r.Lost == 0 || counted < r.Lost || counted > r.Acknowledged {
			t.Errorf("%d were counted: %s", counted, &r)
		}
	})
}

// exchanges are requests of all kinds, as clients write them.
var exchanges = []string{
	"GET /shop/_doc/1 HTTP/1.1\r\nHost: engine.test\r\n\r\n",
	"GET /shop/_source/1?pretty HTTP/1.1\r\nhost: engine.test\r\nX-B: 2\r\nx-a: 1\r\nX-B: 1\r\n\r\n",
	"GET /shop/_doc/a%2Fb%20c?routing=x%2By HTTP/1.1\r\nHost: engine.test\r\nAuthorization: Basic dTpw\r\n\r\n",
	put("/shop/_doc/1", `{"n": 1,"n":2 }`),
	put("/shop/_doc/1?refresh=wait_for&if_seq_no=3&if_primary_term=1", `{"n":1}`),
	put("/shop/_create/2", `{}`),
	put("/shop/_doc/1", `not json`),
	"DELETE /shop/_doc/1?version=3&version_type=external HTTP/1.1\r\nHost: engine.test\r\n\r\n",
	post("/shop/_update/1", `{"doc":{"n":1}}`),
	post("/shop/_mget", `{"ids":["1","2"]}`),
	post("/shop/_search?size=1", `{"query":{"match_all":{}}}`),
	post("/_bulk", "{\"index\":{\"_index\":\"shop\",\"_id\":\"1\"}}\n{\"n\":1}\n"),
	post("/shop/type/1", `{}`),
}

func put(target, body string) string  { return withBody("PUT", target, body) }
func post(target, body string) string { return withBody("POST", target, body) }

func withBody(method, target, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: engine.test\r\ncontent-type: application/json\r\nOptimist-Session: a\r\nContent-Length: %d\r\n\r\n%s", method, target, len(body), body)
}

// canned is what the recorder answers: a document, or what a write is answered with, both at once.
const cannedBody = `{"_index":"shop","_id":"1","_version":7,"_seq_no":9,"_primary_term":1,"found":true,"result":"updated","_source":{"n": 1.50}}`

var canned = fmt.Sprintf("HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=UTF-8\r\nWarning: 299 a\r\nwarning: 299 b\r\nX-elastic-product: Elasticsearch\r\ncontent-length: %d\r\n\r\n%s", len(cannedBody), cannedBody)

// TestOffAndObserveChangeNoByte in either direction, but that observe asks a small search of a client that writes in the index for the
// numbers of its hits, which it takes out of the answer: else it couldn't count what is lost by searching and then indexing.
func TestOffAndObserveChangeNoByte(t *testing.T) {
	for _, mode := range []string{"off", "observe"} {
		t.Run(mode, func(t *testing.T) {
			r := newRecorder(t)
			p := optimistFor(t, target{"recorder", "http://" + r.addr()}, "", "--mode", mode)
			for _, raw := range exchanges {
				answer, err := exchange(strings.TrimPrefix(p.URL, "http://"), raw)
				if err != nil {
					t.Fatalf("%q: %v", raw, err)
				}
				if answer != canned {
					t.Errorf("%.60q was answered\n%q\nwant\n%q", raw, answer, canned)
				}
				numbered := strings.Replace(raw, "/_search?size=1 ", "/_search?size=1&seq_no_primary_term=true&version=true ", 1)
				if !r.got(raw) && (mode != "observe" || !r.got(numbered)) {
					t.Errorf("the engine didn't get\n%q\nbut\n%q", raw, r.all())
				}
				r.forget()
			}
		})
	}
}

// exchange sends bytes and returns those of the answer.
func exchange(addr, raw string) (string, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // nothing is left to be lost
	if _, err := io.WriteString(c, raw); err != nil {
		return "", err
	}
	return message(bufio.NewReader(c))
}

var contentLength = regexp.MustCompile(`(?i)\r\ncontent-length: (\d+)\r\n`)

// message reads one HTTP message with its length, as it is.
func message(r *bufio.Reader) (string, error) {
	var b bytes.Buffer
	for !bytes.HasSuffix(b.Bytes(), []byte("\r\n\r\n")) {
		line, err := r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), err
		}
	}
	n := 0
	if m := contentLength.FindSubmatch(b.Bytes()); m != nil {
		n, _ = strconv.Atoi(string(m[1]))
	}
	_, err := io.CopyN(&b, r, int64(n))
	return b.String(), err
}

// recorder is an engine that answers everything with the same, and keeps what it was sent.
type recorder struct {
	ln   net.Listener
	mu   sync.Mutex
	sent []string
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{ln: ln}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.serve(t, c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
	})
	return r
}

func (r *recorder) serve(t *testing.T, c net.Conn) {
	defer func() { _ = c.Close() }() // the other side has closed it
	in := bufio.NewReader(c)
	for {
		m, err := message(in)
		if err != nil {
			if !errors.Is(err, io.EOF) && m != "" {
				t.Errorf("half a request: %q", m)
			}
			return
		}
		r.mu.Lock()
		r.sent = append(r.sent, m)
		r.mu.Unlock()
		if _, err := io.WriteString(c, canned); err != nil {
			return
		}
	}
}

func (r *recorder) addr() string { return r.ln.Addr().String() }

func (r *recorder) got(raw string) bool {
	for _, m := range r.all() {
		if m == raw {
			return true
		}
	}
	return false
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.sent...)
}

func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
}

package app

import (
	"bytes"
	"compress/zlib"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"optimist/internal/enginetest"
	"optimist/internal/rule"
)

// deflating is an engine that answers in deflate whoever takes that. It has no gzip, so whatever else a request takes, its answer can't be
// read here if the request still takes deflate.
func deflating(t *testing.T) string {
	engine := enginetest.Serve(t)
	forward := enginetest.Forward(t, engine)
	return enginetest.Between(t, engine, func(w http.ResponseWriter, r *http.Request) bool {
		takes := strings.Contains(r.Header.Get("Accept-Encoding"), "deflate")
		r.Header.Set("Accept-Encoding", "identity")
		plain := httptest.NewRecorder()
		forward.ServeHTTP(plain, r)
		body := plain.Body.Bytes()
		maps.Copy(w.Header(), plain.Header())
		w.Header().Del("Content-Length")
		if takes {
			var coded bytes.Buffer
			z := zlib.NewWriter(&coded)
			_, _ = z.Write(body)
			_ = z.Close()
			body = coded.Bytes()
			w.Header().Set("Content-Encoding", "deflate")
		}
		w.WriteHeader(plain.Code)
		_, _ = w.Write(body)
		return true
	})
}

// Search::Elasticsearch of Perl takes deflate, and many HTTP libraries take it besides gzip. The answer to a write couldn't be read, and
// its client got a 504 for a write that the engine had acknowledged. A read couldn't be read, and was no base.
func TestAnswersComeInACodingThatCanBeRead(t *testing.T) {
	const bulk = `{"index":{"_index":"bulks","_id":"1"}}` + "\n" + `{"n":1}` + "\n"
	for _, takes := range []string{"deflate", "deflate, gzip", "br;q=1.0, deflate, *;q=0"} {
		for _, read := range [][3]string{
			{"GET", doc1, ""}, {"GET", "/shop/_source/1", ""}, {"POST", "/shop/_mget", `{"ids":["1"]}`}, {"POST", "/shop/_search", ""},
		} {
			t.Run(takes+" "+read[1], func(t *testing.T) {
				w := newWorldOn(t, "rules: [{name: bulks, match: {index: [bulks]}, bulk: pass}, {name: rest}]", Identity{}, deflating(t))
				as := func(session, method, target, body string) answer {
					return w.ask(w.proxied, method, target, body, "Accept-Encoding", takes, "Optimist-Session", session)
				}
				w.wants(as("b", "PUT", doc1+"?refresh", `{"log":[]}`), 201, "passed")
				as("b", "GET", "/bulks/_doc/1", "")
				w.wants(as("b", "POST", "/_bulk", bulk), 200, "passed")
				w.wants(as("b", "PUT", "/bulks/_doc/1", `{"n":2}`), 200, "guarded")
				w.wants(as("a", read[0], read[1], read[2]), 200, "")
				w.wants(as("b", "PUT", doc1, `{"log":["b"]}`), 200, "guarded")
				w.wants(as("a", "PUT", doc1, `{"log":["a"]}`), 200, "merged")
			})
		}
	}
}

// A signature may cover the field, so the request of a client that signs keeps it. Its reads are watched no more than before.
func TestASignedRequestKeepsTheCodingsThatItTakes(t *testing.T) {
	w := newWorldOn(t, "rules: [{name: r, bulk: pass}]", Identity{}, deflating(t))
	w.put(doc1, `{"n":1}`)
	for _, q := range [][3]string{
		{"GET", doc1, ""}, {"POST", "/shop/_mget", `{"ids":["1"]}`}, {"POST", "/_bulk", `{"index":{"_index":"shop","_id":"2"}}` + "\n{}\n"},
		{"PUT", doc1, `{"n":2}`}, {"PUT", "/another", ""}, {"DELETE", "/another", ""},
	} {
		a := w.ask(w.proxied, q[0], q[1], q[2], "Accept-Encoding", "deflate", "X-Amz-Content-Sha256", "0", "Optimist-Session", "a",
			"Authorization", "AWS4-HMAC-SHA256 Credential=x, SignedHeaders=accept-encoding;host, Signature=0")
		if a.Status != 200 || a.Header.Get("Content-Encoding") != "deflate" {
			t.Errorf("%s %s: %d %v", q[0], q[1], a.Status, a.Header)
		}
	}
}

func TestObserveReadsAnswersOfClientsThatTakeDeflate(t *testing.T) {
	w := newWorldOn(t, "rules: [{name: r, base: {stamp: _rev}}]", Identity{}, deflating(t))
	w.app.rules.SetMode(rule.Observe)
	w.put(doc1, `{"n":1}`)
	as := func(session, method, body string) {
		if a := w.ask(w.proxied, method, doc1, body, "Accept-Encoding", "deflate", "Optimist-Session", session); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	for _, s := range []string{"a", "b"} {
		as(s, "GET", "")
	}
	as("a", "PUT", `{"n":2}`)
	as("b", "PUT", `{"_rev":"0-1-0123456789","n":3}`) // goes without the stamp
	w.observed(2, 1)
}

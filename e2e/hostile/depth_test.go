package hostile

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// deep is up to how many bytes of opening brackets an attacker sends: a reader that calls itself for each of them overflows its stack.
const deep = 8 * mebi

// An engine, or whatever stands in its place, answers every question with brackets without end. optimist reads some of the answers.
func TestAnswersOfBracketsAloneDoNotEndTheProcess(t *testing.T) {
	brackets := bytes.Repeat([]byte("["), deep)
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(brackets)
	}))
	t.Cleanup(stub.Close)
	g := startAt(t, stub.URL, "")
	for _, request := range []string{
		"GET /_nodes/http", "GET /_nodes", "GET /i/_doc/1", "GET /i/_source/1", "POST /i/_search", "POST /i/_mget", "PUT /i/_doc/1",
		"PATCH /i/_doc/1", "POST /i/_update/1", "DELETE /i/_doc/1", "POST /_bulk", "PUT /i", "DELETE /i", "POST /_aliases",
		"PUT /_lock/global/a", "GET /_lock/global/a", "POST /_search/scroll",
	} {
		method, path, _ := strings.Cut(request, " ")
		body := ""
		if method != http.MethodGet && method != http.MethodDelete {
			body = `{"ids":["1"],"doc":{"a":1}}` + "\n"
		}
		_ = enginetest.Try(t, method, g.URL+path, body) // whatever the answer is
	}
	if a := enginetest.Ask(t, http.MethodGet, g.Admin+"/_optimist/health", ""); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// A client sends the same in place of documents, of parts of them, of questions and of lines.
func TestBodiesOfBracketsAloneDoNotEndTheProcess(t *testing.T) {
	g := start(t, "rules: [{name: all, base: {stamp: _stamp}, transform: [{op: add, path: /seen, value: true}]}]")
	g.put(t, "/i/_doc/1", `{"a":1}`)
	for _, open := range []string{"[", `{"a":`, `[{"a":`} {
		text := strings.Repeat(open, deep/len(open))
		for _, request := range []string{
			"PUT /i/_doc/1", "POST /i/_doc", "PATCH /i/_doc/1", "POST /i/_update/1", "POST /i/_search", "POST /i/_mget", "POST /_bulk",
			"POST /_search/scroll", "PUT /_lock/global/a", "POST /_aliases",
		} {
			method, path, _ := strings.Cut(request, " ")
			_ = enginetest.Try(t, method, g.URL+path, text+"\n")
			_ = enginetest.Try(t, method, g.URL+path, `{"doc":`+text, "Content-Type", "application/merge-patch+json")
		}
	}
	if a := g.ask(t, http.MethodGet, "/i/_doc/1", ""); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// Who is refused keeps nothing: credentials can be made up in any number, and each pair of them would take a place from others. Refusals may
// look like answers to other questions.
func TestWhoIsRefusedKeepsNothing(t *testing.T) {
	const found = `"_index":"shop","_id":"1","_version":1,"_seq_no":1,"_primary_term":1,"found":true,"_source":{"n":1}`
	engine := enginetest.Serve(t)
	for _, body := range []string{
		`{"error":{"type":"security_exception"}}`, `{` + found + `}`, `{"_index":"shop","_id":"1","found":false}`,
		`{"docs":[{` + found + `}]}`, `{"hits":{"hits":[{` + found + `}]}}`, ``,
	} {
		for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
			url := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Authorization") == "" {
					return false
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(status)
				_, _ = io.WriteString(rw, body)
				return true
			})
			for _, base := range []string{"reads: [get, mget, search]", "stamp: _rev"} {
				refusedKeepsNothing(t, newWorldOn(t, "rules: [{name: r, base: {"+base+"}}]", Identity{Infer: true, Address: true}, url))
			}
		}
	}
}

// refusedKeepsNothing sends requests, each with credentials of its own, which the engine refuses.
func refusedKeepsNothing(t *testing.T, w *world) {
	for i, request := range []struct{ method, target, body string }{
		{"GET", "/shop/_doc/1", ""}, {"HEAD", "/shop/_doc/1", ""}, {"GET", "/shop/_source/1", ""}, {"HEAD", "/shop/_source/1", ""},
		{"GET", "/shop/_doc/1?realtime=false", ""}, {"POST", "/shop/_mget", `{"ids":["1"]}`},
		{"POST", "/shop/_search", `{"seq_no_primary_term":true}`}, {"POST", "/shop/_search?scroll=1m", `{}`}, {"POST", "/_search", `{}`},
		{"PUT", "/shop/_doc/1", `{"n":2}`}, {"PUT", "/shop/_create/1", `{"n":2}`}, {"DELETE", "/shop/_doc/1", ""},
		{"POST", "/shop/_update/1", `{"doc":{"n":2}}`}, {"PATCH", "/shop/_doc/1", `{"n":2}`},
		{"POST", "/shop/_bulk", `{"index":{"_id":"1"}}` + "\n{}\n"}, {"POST", "/shop/_update_by_query", `{}`},
	} {
		a := w.ask(w.proxied, request.method, request.target, request.body, "Authorization", fmt.Sprint("Basic ", i))
		if s := w.app.sessions.Stats(); s.Entries+s.Markers+s.Bodies > 0 || s.Bytes != 0 {
			t.Fatalf("%s %s: %d %s leaves %+v", request.method, request.target, a.Status, a.Body, s)
		}
	}
}

// TestAPatchIsRefusedAsItsReadIs: the engine refuses to read a closed index, or a document that needs a routing. That is no failure of the
// engine, which a client would try again.
func TestAPatchIsRefusedAsItsReadIs(t *testing.T) {
	for status, want := range map[int]int{
		203: 502, 206: 502, 302: 502, 400: 400, 401: 401, 403: 403, 408: 502, 429: 429, 500: 502, 503: 503,
	} {
		engine := enginetest.Serve(t)
		w := newWorldOn(t, "", Identity{}, enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || r.URL.Path != doc1 {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, `{"error":{"type":"index_closed_exception","reason":"closed"}}`)
			return true
		}))
		w.ask(engine, "PUT", doc1, `{"n":1}`)
		a := w.ask(w.proxied, "PATCH", doc1, `{"n":2}`, "Content-Type", "application/merge-patch+json")
		if a.Status != want || !strings.Contains(a.Body, "index_closed_exception") || !strings.Contains(a.Body, "nothing was written") {
			t.Errorf("%d: %d %s", status, a.Status, a.Body)
		}
	}
}

// TestAPatchByAnAliasOfSeveralIndicesSaysSo: the engine takes no write by such a name. That says nothing of what the client may see.
func TestAPatchByAnAliasOfSeveralIndicesSaysSo(t *testing.T) {
	engine := enginetest.Serve(t)
	const why = "no write index is defined for alias [both]"
	w := newWorldOn(t, "", Identity{}, enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/both/_update/") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"error":{"type":"illegal_argument_exception","reason":"`+why+`"},"status":400}`)
		return true
	}))
	for _, index := range []string{"a1", "a2"} {
		w.ask(engine, "PUT", "/"+index, `{"aliases":{"both":{}}}`)
	}
	a := w.ask(w.proxied, "PATCH", "/both/_doc/1", `{"n":2}`, "Content-Type", "application/merge-patch+json")
	if a.Status != 400 || !strings.Contains(a.Body, why) || strings.Contains(a.Body, "security_exception") || strings.Contains(a.Outcome(), "filtered") {
		t.Errorf("%d [%s] %s", a.Status, a.Outcome(), a.Body)
	}
}

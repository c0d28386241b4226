package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/enginetest"
)

// countedEngine counts what is asked with the credentials of undo. It knows nobody else but who has some, other than "bad:secret".
func countedEngine(t *testing.T, asked *atomic.Int64) string {
	return enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		user, _, _ := r.BasicAuth()
		if user == "undo" && !strings.HasSuffix(r.URL.Path, "/_search") { // which is a sweep's, now and then
			asked.Add(1)
		}
		if user != "bad" {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(rw, `{"error":{"type":"security_exception","reason":"refused"},"status":401}`)
		return true
	})
}

// madeUp are n tokens from one on, with commas.
func madeUp(from, n int) string {
	var b strings.Builder
	for k := range n {
		fmt.Fprintf(&b, ",%d", from+k)
	}
	return b.String()[1:]
}

// underTokens is a bulk of some items, each under as many tokens.
func underTokens(items, tokens int) string {
	var b strings.Builder
	for k := range items {
		fmt.Fprintf(&b, `{"index":{"_id":"%d","lock_token":"%s"}}`+"\n{\"n\":1}\n", k, madeUp(1+k*tokens, tokens))
	}
	return b.String()
}

// TestTokensCostOneReadOfTheJournals: they are made up easily, and a read of each would take the place of everybody's locks.
func TestTokensCostOneReadOfTheJournals(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		most               int64
		fields             []string
	}{
		"a write":                   {"PUT", "/docs/_doc/1", `{"n":1}`, 1, []string{"Optimist-Lock-Token", madeUp(1, 1000)}},
		"a bulk":                    {"POST", "/docs/_bulk", underTokens(500, 1), 1, nil},
		"a bulk of many tokens":     {"POST", "/docs/_bulk", underTokens(2, 1000), 2, nil},
		"a bulk with tokens of all": {"POST", "/docs/_bulk", underTokens(9, 50), 2, []string{"Optimist-Lock-Token", madeUp(1, 500)}},
		"a bulk with escapes":       {"POST", "/docs/_bulk", strings.ReplaceAll(underTokens(9, 1), "lock_t", `lock\u005ft`), 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			w := newUndoWorld(t, countedEngine(t, &asked), "")
			fields := append([]string{"Content-Type", "application/json"}, c.fields...)
			before := asked.Load()
			a := enginetest.Ask(t, c.method, w.app.URL()+c.path, c.body, append(fields, "Authorization", "Basic YmFkOnNlY3JldA==")...)
			if a.Status != 401 || a.Header.Get("WWW-Authenticate") != `Basic realm="shop"` || asked.Load() != before {
				t.Errorf("for a client that the engine refuses, optimist asks %d times: %d %s %v", asked.Load()-before, a.Status, a.Body, a.Header)
			}
			a = enginetest.Ask(t, c.method, w.app.URL()+c.path, c.body, append(fields, "Authorization", "Basic b3duZXI6c2VjcmV0")...)
			if n := asked.Load() - before; a.Status > 201 || strings.Contains(a.Body, `"errors":true`) || n == 0 || n > c.most {
				t.Errorf("optimist asks %d times; want at most %d: %s", n, c.most, a.Body)
			}
		})
	}
}

// TestLargeBulksReadTheJournalsOncePerWindow, and not once for each item.
func TestLargeBulksReadTheJournalsOncePerWindow(t *testing.T) {
	var asked atomic.Int64
	w := newUndoWorld(t, countedEngine(t, &asked), "limits: {max_guarded_body: 64KiB}\n")
	token, _ := w.lock("/_lock/global/x", "one", "")
	body := strings.Replace(underTokens(2000, 1), `"lock_token":"7"`, `"lock_token":"`+token+`"`, 1)
	before := asked.Load()
	r := w.ask(200, "POST", "/docs/_bulk", body, "Content-Type", "application/x-ndjson")
	if n := asked.Load() - before; r.Get("errors").Bool() || n == 0 || n > 100 {
		t.Errorf("optimist asks %d times", n)
	}
	w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
	w.wantsNone("/docs/_doc/6")
	w.ask(200, "GET", "/docs/_doc/7", "")
}

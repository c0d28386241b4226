package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// A bulk that says too much of all its items goes as it is: each item would have to say it again. Where locks are enforced, it is refused.
func TestABulkWithALongHeadIsForwardedAsItIs(t *testing.T) {
	const text = `{"index":{"_id":"1"}}` + "\n" + `{"n":1}` + "\n"
	for query, outcome := range map[string]string{
		"?timeout=" + strings.Repeat("0", 900) + "9s":  "guarded;items=1",
		"?timeout=" + strings.Repeat("0", 1100) + "9s": "passed;attempts=1;base=none;reason=too_large",
		"?" + strings.Repeat("&", 4000):                "guarded;items=1", // it says nothing of the items
		"?filter_path=" + strings.Repeat("a,", 600):    "passed;attempts=1;base=none;reason=too_large",
	} {
		w := newWorld(t, "rules: [{name: r, base: {unknown: fetch}}]", Identity{})
		if a := w.ask(w.proxied, "POST", "/shop/_bulk"+query, text); !strings.HasPrefix(a.Outcome(), outcome) {
			t.Errorf("%.20s: %d %s [%s]", query, a.Status, a.Body, a.Outcome())
		}
	}
	w := enforced(t, enginetest.Serve(t), "")
	if a := w.ask(w.proxied, "POST", "/shop/_bulk?timeout="+strings.Repeat("0", 1100)+"9s", text); a.Status < 400 {
		t.Errorf("locks are enforced: %d %s [%s]", a.Status, a.Body, a.Outcome())
	}
}

// Credentials that the engine refuses for one item are refused for all, in one answer, as the engine would answer the bulk. What the client may
// not do with one document says nothing of others.
func TestOnlyRefusedCredentialsEndABulk(t *testing.T) {
	const items = 3
	for status, want := range map[int]struct{ answer, results, asked int }{401: {401, 0, 1}, 403: {200, items, items}} {
		asked := 0
		url := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/shop/_doc/") {
				return false
			}
			asked++
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Add("WWW-Authenticate", "Negotiate")
			rw.Header().Add("WWW-Authenticate", "Basic")
			rw.WriteHeader(status)
			_, _ = fmt.Fprintf(rw, `{"error":{"type":"security_exception"},"status":%d}`, status)
			return true
		})
		w := newWorldOn(t, "rules: [{name: r, base: {unknown: fetch}}]", Identity{}, url)
		text := strings.Repeat(`{"index":{"_id":"1"}}`+"\n"+`{"n":1}`+"\n", items)
		a := w.ask(w.proxied, "POST", "/shop/_bulk", text)
		if n := strings.Count(told(a), fmt.Sprint(" ", status, " ")); a.Status != want.answer || n != want.results || asked != want.asked {
			t.Errorf("%d: %d %s, after %d reads", status, a.Status, a.Body, asked)
		}
		if n := len(a.Header.Values("WWW-Authenticate")); a.Status == 401 && n != 2 {
			t.Errorf("the client is told %d ways to say who it is, and the engine named 2", n)
		}
	}
}

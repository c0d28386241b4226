package app

import (
	"maps"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

// Only the door's own errors were counted, and not those that a write, a PATCH or a lock was answered with.
func TestEveryErrorOfOptimistsOwnIsCounted(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), `, transform: [{op: test, path: /n, value: 1, when: "incoming.n == 9"}]`)
	w.put("/shop/_doc/1", `{"n":1}`)
	token := w.acquire(lockOf1, "a")
	want := map[string]int{}
	for _, c := range []struct {
		status int
		kind   string
		method string
		target string
		body   string
		fields []string
	}{
		{423, "document_locked", "PUT", "/shop/_doc/1", `{"n":2}`, nil},
		{409, "stale_token", "PUT", "/shop/_doc/1", `{"n":2}`, []string{"Optimist-Lock-Token", "7"}},
		{409, "lock_held", "PUT", lockOf1 + "?owner=b", ``, nil},
		{404, "lock_not_found", "GET", "/_lock/global/x", ``, nil},
		{415, "media_type_header_exception", "PATCH", "/shop/_doc/1", `{"n":2}`, []string{"Content-Type", "application/json"}},
		{400, "x_content_parse_exception", "PATCH", "/shop/_doc/1", `{`, []string{"Content-Type", "application/merge-patch+json"}},
		{400, "x_content_parse_exception", "PATCH", "/shop/_doc/1", ``, []string{"Content-Type", "application/merge-patch+json"}},
		{400, "illegal_argument_exception", "PUT", "/shop/_doc/1", `{"n":2}`, []string{"Optimist-Lock-Token", "x"}},
		{400, "unguardable_write", "PUT", "/shop/_doc/1?version=3&version_type=external", `{"n":2}`, []string{"Optimist-Lock-Token", token}},
		{409, "version_conflict_engine_exception", "PUT", "/shop/_doc/1", `{"n":9}`, []string{"Optimist-Lock-Token", token}},
		{404, "index_not_found_exception", "GET", "/none/_doc/1", ``, nil},
	} {
		a := w.ask(w.proxied, c.method, c.target, c.body, c.fields...)
		if kind := gjson.Get(a.Body, "error.type").Str; a.Status != c.status || kind != c.kind {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.target, a.Status, a.Body, c.status, c.kind)
		}
		if want[c.kind]++; c.kind == "index_not_found_exception" {
			want[c.kind] = 0 // the engine's
		}
		for kind, n := range maps.All(want) {
			if got := w.counted("optimist_failures_total", "type", kind); got != n {
				t.Errorf("after %s %s: %d of %s are counted, want %d", c.method, c.target, got, kind, n)
			}
		}
	}
}

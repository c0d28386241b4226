package app

import (
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// TestTheOutcomeOfAForwardedWriteWithoutAnAnswerIsUnknown: the engine's connection ends before its answer.
func TestTheOutcomeOfAForwardedWriteWithoutAnAnswerIsUnknown(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
		for _, end := range []string{"/_doc", "/_bulk", "_by_query"} {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, end) {
				panic(http.ErrAbortHandler)
			}
		}
		return false
	})
	w := newWorldOn(t, "rules:\n- {name: all, match: {index: [shop]}, bulk: pass}\n", Identity{}, engine)
	requests := map[string]string{
		"/shop/_doc":             `{"n":1}`,
		"/shop/_bulk":            "{\"index\":{\"_id\":\"1\"}}\n{\"n\":1}\n",
		"/shop/_update_by_query": `{}`,
		"/shop/_delete_by_query": `{"query":{"match_all":{}}}`,
	}
	for target, body := range requests {
		a := w.ask(w.proxied, "POST", target, body)
		if a.Status != http.StatusGatewayTimeout || !strings.HasPrefix(a.Outcome(), "unknown") {
			t.Errorf("%s: %d %q %s", target, a.Status, a.Outcome(), a.Body)
		}
	}
	if n := w.counted("optimist_outcomes_total", "outcome", "unknown"); n != len(requests) {
		t.Errorf("%d are counted", n)
	}
}

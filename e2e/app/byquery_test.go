package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
)

// TestDeletesByQueryLeaveNothing though somebody else changes the documents meanwhile, each once: the engine leaves out those that
// conflict, and optimist has it delete them, too. (The tests' Elasticsearch 9 has no module for it.)
func TestDeletesByQueryLeaveNothing(t *testing.T) {
	engine.Each(t, []engine.Kind{engine.OpenSearch38, engine.ES7}, func(t *testing.T, real *engine.Engine) {
		e := target{real.Kind.String(), real.URL}
		index, p := e.index(t), optimistFor(t, e, "")
		const documents = 200
		e.send(t, http.StatusOK, http.MethodPut, "/"+index+"/_mapping", `{"dynamic":true}`)
		var bulk strings.Builder
		for n := range documents {
			fmt.Fprintf(&bulk, "{\"index\":{\"_id\":\"%d\"}}\n{\"state\":1,\"n\":0}\n", n)
		}
		request(t, http.StatusOK, http.MethodPost, e.url+"/"+index+"/_bulk?refresh=true", bulk.String(),
			http.Header{"Content-Type": {"application/x-ndjson"}})
		var wg sync.WaitGroup
		wg.Go(func() {
			for n := documents - 1; n >= 0; n-- { // those that are deleted last come first
				if _, err := do(t.Context(), http.MethodPost, fmt.Sprintf("%s/%s/_update/%d", e.url, index, n), `{"doc":{"n":1}}`, nil); err != nil {
					t.Error(err)
				}
			}
		})
		a := request(t, http.StatusOK, http.MethodPost, p.URL+"/"+index+"/_delete_by_query?conflicts=proceed&scroll_size=20&requests_per_second=400",
			`{"query":{"term":{"state":1}}}`, nil)
		wg.Wait()
		e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_refresh", "")
		left := e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_count", `{"query":{"term":{"state":1}}}`)
		t.Logf("%s [%s]", a.body, a.outcome())
		for name, want := range map[string]int64{"version_conflicts": 0, "deleted": documents, "total": documents} {
			if got := gjson.Get(a.body, name).Int(); got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
		if n := gjson.Get(left.body, "count").Int(); n != 0 {
			t.Errorf("%d documents are left", n)
		}
	})
}

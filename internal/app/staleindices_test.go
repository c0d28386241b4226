package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/enginetest"
)

// TestAReadOfManyIndicesDoesNotWaitForEach has a node that is cut off: it answers a multi-get from old copies of the shards, and doesn't
// answer the question what an index is. The client waited for a second for each of the indices.
func TestAReadOfManyIndicesDoesNotWaitForEach(t *testing.T) {
	for name, rule := range map[string]string{"watched": "", "stamped": ", base: {stamp: _rev}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const indices = 5
			var stale atomic.Pointer[string]
			var asked atomic.Int64
			engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
				body := stale.Load()
				switch {
				case body == nil:
					return false
				case strings.HasSuffix(r.URL.Path, "/_mget"):
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, *body)
					return true
				}
				asked.Add(1)
				<-r.Context().Done()
				return true
			})
			w := newWorldOn(t, `rules: [{name: r, match: {index: ["shop*"]}`+rule+`}]`, Identity{}, engine)
			var wanted []string
			for i := range indices {
				w.put(fmt.Sprintf("/shop%d/_doc/1", i), `{"n":1}`)
				wanted = append(wanted, fmt.Sprintf(`{"_index":"shop%d","_id":"1"}`, i))
			}
			text := `{"docs":[` + strings.Join(wanted, ",") + `]}`
			old := w.ask(w.direct, "POST", "/_mget", text).Body
			if name == "watched" {
				for i := range indices {
					target := fmt.Sprintf("/shop%d/_doc/1", i)
					w.read(me, target)
					w.wants(w.ask(w.proxied, "PUT", target, `{"n":2}`, "Optimist-Session", me), 200, "guarded")
				}
			}
			stale.Store(&old)
			if a := w.ask(w.proxied, "POST", "/_mget", text, "Optimist-Session", me); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			if n := asked.Load(); n < 1 || n > 2 {
				t.Errorf("%d questions were waited for", n)
			}
		})
	}
}

package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
	"optimist/internal/unit"
)

// A client edits documents while a program with the same credentials, which names its session, exports the index. That has more documents
// than there is memory for.
func TestAnExportLeavesTheBasesOfOthersAlone(t *testing.T) {
	const pages, pageSize = 8, 100
	for name, c := range map[string]struct{ target, body string }{
		"a scroll":        {"/shop/_search?scroll=5m&size=100", `{}`},
		"a point in time": {"/_search", `{"size":100,"pit":{"id":"x"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			page := 0
			engine := enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
				if !strings.Contains(r.URL.Path, "/_search") {
					return false
				}
				var hits []string
				for i := range pageSize {
					hits = append(hits, fmt.Sprintf(`{"_index":"shop","_id":"row-%d","_version":1,"_seq_no":%d,"_primary_term":1,"_source":{"t":"%s"}}`,
						page*pageSize+i, 100+i, strings.Repeat("x", 4000)))
				}
				page++
				out.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(out, `{"_scroll_id":"s","hits":{"hits":[%s]}}`, strings.Join(hits, ","))
				return true
			})
			conf := configured(t, "", engine)
			conf.Sessions.Memory = unit.Size(1 << 20)
			w := &world{t: t, direct: engine, app: running(t, conf)}
			w.proxied = w.app.URL()
			w.put(doc1, `{"log":["a"]}`)
			w.ask(w.proxied, "GET", doc1, "")
			next, body := c.target, c.body
			for range pages {
				if a := w.ask(w.proxied, "POST", next, body, "Optimist-Session", "export"); a.Status != 200 || strings.Contains(a.Body, "_seq_no") {
					t.Fatalf("%d %.100s", a.Status, a.Body)
				}
				if strings.Contains(c.target, "scroll") {
					next, body = "/_search/scroll", `{"scroll":"5m","scroll_id":"s"}`
				}
			}
			w.put(doc1, `{"log":["a","b"]}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","c"]}`), 200, "merged;attempts=2;base=session")
		})
	}
}

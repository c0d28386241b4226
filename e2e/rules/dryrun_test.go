package rules_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestADryRunTellsWhatTheWriteThenDoes: on every engine the write itself comes to what was told before, and nothing has happened until then.
func TestADryRunTellsWhatTheWriteThenDoes(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		p := optimistFor(t, e, fmt.Sprintf("rules: [{name: shop, match: {index: [%s]}, merge: {paths: {/stock: sum, /status: fail}}, "+
			"transform: [{op: increment, path: /edits, value: 1}]}]", index))
		for i, c := range []struct {
			name, base, current   string // "" is no document
			method, path, body    string
			media, document, says string
			status                int
		}{
			{"merged", `{"stock":10}`, `{"stock":7}`, "PUT", "/_doc/", `{"stock":9}`, "application/json", `{"stock":6,"edits":1}`, "merged;attempts=2;base=session", 200},
			{"as it is", `{"stock":10}`, `{"stock":10}`, "PUT", "/_doc/", `{"stock":9}`, "application/json", `{"stock":9,"edits":1}`, "guarded;attempts=1;base=session", 200},
			{"refused", `{"status":"a"}`, `{"status":"b"}`, "PUT", "/_doc/", `{"status":"c"}`, "application/json", "", "guarded;attempts=1;base=session", 409},
			{"deleted", `{"a":1}`, "", "PUT", "/_doc/", `{"a":2}`, "application/json", "", "guarded;attempts=1;base=session", 409},
			{"created", "", "", "PUT", "/_doc/", `{"a":2}`, "application/json", `{"a":2,"edits":1}`, "guarded;attempts=1;base=absent", 201},
			{"patched", `{"n":1}`, `{"n":2}`, "PATCH", "/_doc/", `[{"op":"increment","path":"/n","value":5}]`, operations, `{"n":7,"edits":1}`, "guarded;attempts=1", 200},
			{"test failed", `{"n":1}`, `{"n":2}`, "PATCH", "/_doc/", `[{"op":"test","path":"/n","value":5}]`, jsonPatch, "", "refused;attempts=0", 409},
			{"deletion", `{"n":1}`, `{"n":2}`, "DELETE", "/_doc/", "", "application/json", "", "merged;attempts=2;base=session", 200},
			{"create", `{"n":1}`, `{"n":2}`, "PUT", "/_create/", `{"n":3}`, "application/json", "", "", 409},
		} {
			t.Run(c.name, func(t *testing.T) {
				id := fmt.Sprintf("%d", i)
				doc := "/" + index + "/_doc/" + id
				fields := []string{"Content-Type", c.media, "Optimist-Session", "s" + id}
				if c.base != "" {
					e.send(t, 201, "PUT", doc, c.base)
				}
				p.try(t, "GET", doc, "", fields...)
				switch {
				case c.current == "" && c.base != "":
					e.send(t, 200, "DELETE", doc, "")
				case c.current != c.base:
					e.send(t, 200, "PUT", doc, c.current)
				}
				before := e.try(t, "GET", doc, "").body
				target := "/" + index + c.path + id
				for range 3 {
					a := p.send(t, 200, c.method, target, c.body, append([]string{"Optimist-Dry-Run", "true"}, fields...)...)
					if got := a.get("outcome.field").Str; a.get("outcome.status").Int() != int64(c.status) || a.get("document").Raw != c.document || !strings.HasPrefix(got, c.says) {
						t.Fatalf("told %s", a.body)
					}
					if after := e.try(t, "GET", doc, "").body; after != before {
						t.Fatalf("the document was %s and is %s", before, after)
					}
				}
				a := p.send(t, c.status, c.method, target, c.body, fields...)
				if !strings.HasPrefix(a.outcome(), c.says) {
					t.Errorf("answered [%s], told %s", a.outcome(), c.says)
				}
				if got := e.try(t, "GET", doc, "").get("_source").Raw; c.document != "" && got != c.document {
					t.Errorf("stored %s, told %s", got, c.document)
				}
			})
		}
	})
}

// TestNoEngineEverSeesADryRun: whatever the request is, what would change something isn't sent.
func TestNoEngineEverSeesADryRun(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		e.send(t, 201, "PUT", "/"+index+"/_doc/1?refresh=true", `{"n":1}`)
		var seen []string
		wire := between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
			if r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.Contains(r.URL.Path, "/_update/optimist-probe") {
				seen = append(seen, r.Method+" "+r.URL.Path)
			}
			pass.ServeHTTP(w, r)
		})
		for _, mode := range []string{"guard", "observe", "off"} {
			p := optimistFor(t, wire, "mode: "+mode)
			for _, line := range []string{"PUT /I/_doc/1", "POST /I/_doc", "PUT /I/_create/2", "POST /I/_update/1", "DELETE /I/_doc/1", "PATCH /I/_doc/1",
				"POST /_bulk", "POST /I/_bulk", "POST /I/_update_by_query", "POST /I/_delete_by_query", "DELETE /I", "POST /_aliases", "PUT /_lock/global/x"} {
				method, path, _ := strings.Cut(strings.ReplaceAll(line, "/I", "/"+index), " ")
				a := p.try(t, method, path, `{"n":2}`, "Optimist-Dry-Run", "true")
				if a.status != 200 && a.status != 400 && a.status != 409 {
					t.Errorf("%s in mode %s: %d %s", line, mode, a.status, a.body)
				}
			}
		}
		if len(seen) > 0 {
			t.Errorf("the engine was sent %q", seen)
		}
		if a := e.try(t, "GET", "/"+index+"/_doc/1", ""); a.get("_version").Int() != 1 {
			t.Errorf("%s", a.body)
		}
	})
}

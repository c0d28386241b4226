package app

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

// ruled is a world with two indices, of which a rule takes one. It has an alias. first are rules before that one.
func ruled(t *testing.T, first string) *world {
	t.Helper()
	w := newWorld(t, "rules:\n"+first+"  - {name: shop, match: {index: [shop]}, transform: [{op: add, path: /by, value: rule}]}\n", Identity{})
	for _, target := range []string{"/shop", "/free"} {
		if a := w.ask(w.direct, "PUT", target, ""); a.Status != 200 {
			t.Fatalf("%s: %d %s", target, a.Status, a.Body)
		}
	}
	if a := w.ask(w.direct, "PUT", "/shop/_alias/front", ""); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return w
}

// TestNoBulkGoesAroundARule has bulks whose path is no index that the rule takes, or isn't known as one. Each writes to an index that the
// rule takes.
func TestNoBulkGoesAroundARule(t *testing.T) {
	const plain = `{"index":{"_index":"shop","_id":"1"}}`
	large := strings.Repeat(lines(`{"index":{"_id":"2"}}`, `{"text":"`+strings.Repeat("x", 200)+`"}`), 6000) // over limits.max_guarded_body
	for name, c := range map[string]struct{ first, path, before, action string }{
		"the path is another index":      {"", "/free/_bulk", "", plain},
		"behind an item of the path":     {"", "/free/_bulk", lines(`{"index":{"_id":"2"}}`, `{}`), plain},
		"behind an empty pipeline":       {"", "/shop/_bulk", lines(`{"update":{"_id":"2","pipeline":""}}`, `{"doc":{}}`), plain},
		"the name is escaped":            {"", "/free/_bulk", "", `{"index":{"_\u0069ndex":"shop","_id":"1"}}`},
		"the item names an alias":        {"", "/free/_bulk", "", `{"index":{"_index":"front","_id":"1"}}`},
		"the item names a date":          {"", "/free/_bulk", "", `{"index":{"_index":"<shop>","_id":"1"}}`},
		"an update":                      {"", "/free/_bulk", "", `{"create":{"_index":"shop","_id":"1"}}`},
		"the path is an alias":           {"", "/front/_bulk", "", `{"index":{"_id":"1"}}`},
		"the path is a date":             {"", "/%3Cshop%3E/_bulk", "", `{"index":{"_id":"1"}}`},
		"larger than what is held":       {"", "/free/_bulk", large, plain},
		"the path's rule only observes":  {"  - {name: free, match: {index: [free]}, mode: observe}\n", "/free/_bulk", "", plain},
		"the first rule only observes":   {"  - {name: free, match: {index: [free]}, mode: observe}\n", "/_bulk", "", plain},
		"the path's rule takes no index": {"  - {name: free, match: {index: [free], ops: [delete]}}\n", "/free/_bulk", "", plain},
	} {
		for _, coding := range []string{"", "gzip"} {
			t.Run(name+coding, func(t *testing.T) {
				w := ruled(t, c.first)
				text, fields := c.before+lines(c.action, `{"n":1}`), []string{"Content-Type", "application/x-ndjson"}
				if coding != "" {
					text, fields = zipped(text), append(fields, "Content-Encoding", coding)
				}
				if a := w.ask(w.proxied, "POST", c.path, text, fields...); a.Status != 200 || a.Outcome() == "" {
					t.Errorf("%d %.200s [%s]", a.Status, a.Body, a.Outcome())
				}
				w.holds("/shop/_doc/1", `{"n":1,"by":"rule"}`)
			})
		}
	}
}

// TestABulkWhosePathIsNoIndexIsRead has paths that engines take as those of a bulk, though no index is called so: the items may name one.
func TestABulkWhosePathIsNoIndexIsRead(t *testing.T) {
	var seen string
	w := newWorldOn(t, `rules: [{name: shop, match: {index: [shop]}, base: {unknown: reject}}]`, Identity{},
		enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "_bulk") {
				return false
			}
			body, _ := io.ReadAll(r.Body)
			seen += string(body)
			out.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(out, `{"took":1,"errors":false,"items":[{"index":{"_index":"shop","_id":"1","status":200}}]}`)
			return true
		}))
	for _, path := range []string{"/_all/_bulk", "/_any/_bulk", "/_nodes/_bulk", "/%5Fany/_bulk", "/-x/_bulk", "/free,other/_bulk", "/*/_bulk", "//_bulk",
		"///_bulk", "//t/_bulk"} {
		a := w.ask(w.proxied, "POST", path, lines(`{"index":{"_index":"shop","_id":"1"}}`, `{"n":1}`))
		status := gjson.Get(a.Body, "items.0.index.status").Int()
		if status != 428 && status != 400 || !strings.Contains(a.Outcome(), "refused") {
			t.Errorf("%s: %d %s [%s]", path, a.Status, a.Body, a.Outcome())
		}
	}
	if seen != "" {
		t.Errorf("the engine got %s", seen)
	}
}

// TestABulkThatIsNoTextIsSaidAndBarred has letters spelt with a byte more than UTF-8 gives them. The engines' JSON parser takes them for the
// letters, so that only the engine knows which index the item is of.
func TestABulkThatIsNoTextIsSaidAndBarred(t *testing.T) {
	spellings := []string{"{\"index\":{\"\xc1\x9findex\":\"shop\",\"_id\":\"1\"}}", "{\"ind\xc1\xa5x\":{\"_index\":\"shop\",\"_id\":\"1\"}}"}
	free := lines(`{"index":{"_id":"2"}}`, `{}`)
	w := ruled(t, "")
	locked := enforced(t, enginetest.Serve(t), "")
	for _, action := range spellings {
		for _, before := range []string{"", free} {
			text := before + lines(action, `{"n":1}`)
			if a := w.ask(w.proxied, "POST", "/free/_bulk", text); a.Outcome() == "" {
				t.Errorf("%q: %d %s", text, a.Status, a.Body)
			}
			for _, path := range []string{"/free/_bulk", "/_bulk"} {
				if a := locked.ask(locked.proxied, "POST", path, text); !strings.Contains(a.Outcome(), "unguardable") {
					t.Errorf("%s, %q: %d %s [%s]", path, text, a.Status, a.Body, a.Outcome())
				}
			}
		}
	}
	body := "{\"source\":{\"index\":\"free\"},\"d\xc1\xa5st\":{\"index\":\"shop\"}}"
	if a := locked.ask(locked.proxied, "POST", "/_reindex", body); !strings.Contains(a.Outcome(), "unguardable") {
		t.Errorf("a copy: %d %s [%s]", a.Status, a.Body, a.Outcome())
	}
}

// TestABulkOfAnIndexWithoutARuleIsForwardedAsItIs has no item of another index: nothing is said of it, and its bytes stay.
func TestABulkOfAnIndexWithoutARuleIsForwardedAsItIs(t *testing.T) {
	w := ruled(t, "")
	for _, path := range []string{"/free/_bulk", "/_bulk", "/free/_bulk?pretty"} {
		text := lines(`{"index":{"_index":"free","_id":"1"}}`, `{"n":1}`, `{"index":{"_index":"free","_id":"1"}}`, `{"n":2}`)
		if path != "/_bulk" {
			text = strings.ReplaceAll(text, `"_index":"free",`, "")
		}
		a := w.ask(w.proxied, "POST", path, text)
		if a.Status != 200 || a.Outcome() != "" {
			t.Errorf("%s: %d %s [%s]", path, a.Status, a.Body, a.Outcome())
		}
		w.holds("/free/_doc/1", `{"n":2}`)
	}
}

// TestAChangeByQueryOfAnyIndexThatARuleTakesIsSaid has expressions for indices, of which a rule takes one.
func TestAChangeByQueryOfAnyIndexThatARuleTakesIsSaid(t *testing.T) {
	w := ruled(t, "")
	for target, taken := range map[string]bool{
		"/free,shop/_update_by_query": true, "/free%2Cshop/_update_by_query": true, "/sho*/_update_by_query": true, "/*/_update_by_query": true,
		"/front/_update_by_query": true, "/free,front/_update_by_query": true, "/_all/_update_by_query": true, "/%3Cshop%3E/_update_by_query": true,
		"/shop/_update_by_query": true, "/%73hop/_update_by_query": true, "/free,shop/_delete_by_query?max_docs=1": true,
		"//_update_by_query": true, "/free/_update_by_query": false, "/fre*/_update_by_query": false, "/fr*/_update_by_query": true, "/*,-shop/_update_by_query": false, "/none/_update_by_query": false,
	} {
		a := w.ask(w.proxied, "POST", target, `{"query":{"match_all":{}}}`)
		if said := strings.HasPrefix(a.Outcome(), "passed;attempts=1;base=none;reason=by_query"); said != taken {
			t.Errorf("%s: %d %.100s [%s]", target, a.Status, a.Body, a.Outcome())
		}
	}
}

// TestAReindexIntoAnIndexThatARuleTakesIsSaid: the engine writes the documents without any guard.
func TestAReindexIntoAnIndexThatARuleTakesIsSaid(t *testing.T) {
	w := ruled(t, "")
	for body, taken := range map[string]bool{
		`{"source":{"index":"free"},"dest":{"index":"shop"}}`:      true,
		`{"source":{"index":"free"},"d\u0065st":{"index":"shop"}}`: true,
		`{"source":{"index":"free"},"dest":{"index":"front"}}`:     true,
		`{"source":{"index":"free"},"dest":{"index":"<shop>"}}`:    true,
		`{"source":{"index":"free"},"dest":{"index":`:              true, // nobody knows
		`{"source":{"index":"shop"},"dest":{"index":"free"}}`:      false,
	} {
		a := w.ask(w.proxied, "POST", "/_reindex", body)
		if said := strings.HasPrefix(a.Outcome(), "passed;attempts=1;base=none;reason=by_query"); said != taken {
			t.Errorf("%s: %d %.100s [%s]", body, a.Status, a.Body, a.Outcome())
		}
	}
	w = enforced(t, enginetest.Serve(t), "")
	w.put("/shop/_doc/1", `{}`)
	for _, body := range []string{`{"source":{"index":"free"},"dest":{"index":"shop"}}`, `{"source":`} {
		a := w.ask(w.proxied, "POST", "/_reindex", body)
		if a.Status != 400 || gjson.Get(a.Body, "error.type").Str != "unguardable_write" {
			t.Errorf("locks are enforced: %s: %d %s [%s]", body, a.Status, a.Body, a.Outcome())
		}
	}
}

// TestABulkOfATypeIsSaidBeforeTheEngineIsKnown: engines without types take the path for that of a document.
func TestABulkOfATypeIsSaidBeforeTheEngineIsKnown(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/" { // which says what the engine is
			out.WriteHeader(http.StatusForbidden)
		}
		return r.URL.Path == "/"
	})
	const outcome = "passed;attempts=1;base=none;reason=unasked"
	w := newWorldOn(t, "", Identity{}, engine)
	for _, target := range []string{"/free/_doc/_bulk", "/free/_doc/_delete_by_query"} {
		if a := w.ask(w.proxied, "POST", target, "{}\n"); a.Outcome() != outcome {
			t.Errorf("%s: %d %s [%s]", target, a.Status, a.Body, a.Outcome())
		}
	}
	if a := w.ask(w.proxied, "GET", "/free/_doc/_mget", ""); a.Outcome() != "" {
		t.Errorf("a read: %d %s [%s]", a.Status, a.Body, a.Outcome())
	}
	w = enforced(t, engine, "")
	if a := w.ask(w.proxied, "POST", "/free/_doc/_bulk", "{}\n"); gjson.Get(a.Body, "error.type").Str != "unguardable_write" {
		t.Errorf("locks are enforced: %d %s [%s]", a.Status, a.Body, a.Outcome())
	}
}

// TestABulkThatIsAStreamIsSaid: its items are answered one by one.
func TestABulkThatIsAStreamIsSaid(t *testing.T) {
	w := ruled(t, "")
	for _, target := range []string{"/_bulk/stream", "/free/_bulk/stream"} {
		a := w.ask(w.proxied, "POST", target, lines(`{"index":{"_index":"shop","_id":"1"}}`, `{}`), "Content-Type", "application/x-ndjson")
		if !strings.HasPrefix(a.Outcome(), "passed;attempts=1;base=none;reason=format") {
			t.Errorf("%s: %d %s [%s]", target, a.Status, a.Body, a.Outcome())
		}
	}
}

// TestADocumentOfAnotherIndexThanThePathIsABase, as its item in a bulk of that path is guarded; unless the path may be a tenant's prefix.
func TestADocumentOfAnotherIndexThanThePathIsABase(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put("/other/_doc/1", `{}`)
	for path, outcome := range map[string]string{"/other": "guarded;attempts=1;base=session", "/nobody": "passed;attempts=1;base=lost;reason=unwatched"} {
		w.put(doc1, `{"n":1}`)
		s := []string{"Optimist-Session", path}
		if a := w.ask(w.proxied, "POST", path+"/_mget", `{"docs":[{"_index":"shop","_id":"1"}]}`, s...); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":2}`, s...), 200, outcome)
	}
}

package app

import (
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// shards is an index of two shards, each in an engine of its own: the documents of routing 2 are in the second one. Two aliases of it route.
func shards(t *testing.T) (url string, second string) {
	first, second := enginetest.Serve(t), enginetest.Serve(t)
	for _, engine := range []string{first, second} {
		if a := enginetest.Ask(t, "PUT", engine+"/shop", `{"aliases":{"one":{"routing":"1"},"two":{"routing":"2"},"plain":{}}}`); a.Status != 200 {
			t.Fatal(a)
		}
	}
	forward := enginetest.Forward(t, second)
	return enginetest.Between(t, first, func(w http.ResponseWriter, r *http.Request) bool {
		documents := strings.Contains(r.URL.Path, "/_")
		if !documents || !strings.HasPrefix(r.URL.Path, "/two/") && r.URL.Query().Get("routing") != "2" {
			return false
		}
		forward.ServeHTTP(w, r)
		return true
	}), second
}

// Tenants that share an index have an alias each, which routes and filters. Their documents may have equal ids, and equal numbers: what is
// known of the one is nothing of the other.
func TestDocumentsOfOneIDBehindAliasesThatRouteAreTwo(t *testing.T) {
	for _, unknown := range []bool{true, false} {
		for name, read := range map[string]func(w *world, alias string) answer{
			"get": func(w *world, alias string) answer {
				return w.ask(w.proxied, "GET", "/"+alias+"/_doc/1", "", "Optimist-Session", "s")
			},
			"mget": func(w *world, alias string) answer {
				return w.ask(w.proxied, "POST", "/"+alias+"/_mget", `{"ids":["1"]}`, "Optimist-Session", "s")
			},
			"search": func(w *world, alias string) answer {
				return w.ask(w.proxied, "POST", "/"+alias+"/_search", `{"seq_no_primary_term":true}`, "Optimist-Session", "s")
			},
		} {
			url, second := shards(t)
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop, one, two]}, base: {reads: [get, mget, search]}}\n", Identity{}, url)
			w.put("/one/_doc/1?refresh=true", `{"a":1,"of":"one"}`)
			w.put("/two/_doc/1?refresh=true", `{"a":1,"of":"two"}`)
			if !unknown {
				for _, alias := range []string{"one", "two"} {
					w.ask(w.proxied, "PUT", "/"+alias+"/_doc/else", `{}`)
				}
			}
			if a := read(w, "one"); a.Status != 200 || !strings.Contains(a.Body, `"of":"one"`) {
				t.Fatal(name, a)
			}
			a := w.ask(w.proxied, "PUT", "/two/_doc/1", `{"a":2,"of":"two"}`, "Optimist-Session", "s")
			if w.wants(a, 200, "passed"); !strings.Contains(a.Outcome(), "base=none") {
				t.Errorf("%s, unknown %v: the other's document is written from what was read of this one: %s", name, unknown, a.Outcome())
			}
			// The one's own base is still there, and serves its merge.
			w.put("/one/_doc/1", `{"a":1,"of":"one","b":1}`)
			a = w.ask(w.proxied, "PUT", "/one/_doc/1", `{"a":3,"of":"one"}`, "Optimist-Session", "s")
			w.wants(a, 200, "merged")
			if got := w.stored("/one/_doc/1"); got != `{"a":3,"of":"one","b":1}` {
				t.Errorf("%s, unknown %v: %s", name, unknown, got)
			}
			if got := w.ask(second, "GET", "/shop/_source/1?routing=2", "").Body; got != `{"a":2,"of":"two"}` {
				t.Errorf("%s, unknown %v: %s", name, unknown, got)
			}
		}
	}
}

// The same goes for the items of bulks, for what bulks write that optimist doesn't guard, and for reads that find nothing.
func TestItemsOfOneIDBehindAliasesThatRouteAreTwo(t *testing.T) {
	url, second := shards(t)
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop, one, two]}}\n", Identity{}, url)
	for _, alias := range []string{"one", "two"} {
		w.ask(w.proxied, "PUT", "/"+alias+"/_doc/else", `{}`) // what they are is known
	}
	if a := w.ask(w.proxied, "GET", "/one/_doc/1", "", "Optimist-Session", "s"); a.Status != 404 {
		t.Fatal(a)
	}
	a := w.ask(w.proxied, "PUT", "/two/_doc/1", `{"of":"two"}`, "Optimist-Session", "s")
	if w.wants(a, 201, "passed"); !strings.Contains(a.Outcome(), "base=none") {
		t.Error(a.Outcome())
	}
	w.put("/one/_doc/1", `{"of":"one","b":1}`)
	a = w.ask(w.proxied, "POST", "/_bulk", lines(`{"index":{"_index":"one","_id":"1"}}`, `{"of":"one","a":1}`), "Optimist-Session", "s")
	w.bulked(a, "index 200 updated", "merged;items=1;merged=1")
	if got := w.stored("/one/_doc/1"); got != `{"of":"one","b":1,"a":1}` {
		t.Error(got)
	}
	if got := w.ask(second, "GET", "/shop/_source/1?routing=2", "").Body; got != `{"of":"two"}` {
		t.Error(got)
	}
}

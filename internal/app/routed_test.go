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
		if a := enginetest.Ask(t, "PUT", engine+"/shop",
			`{"settings":{"number_of_shards":2},"aliases":{"one":{"routing":"1"},"two":{"routing":"2"},"plain":{}}}`); a.Status != 200 {
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

// In an index of one shard no routing leads to another document. What a session does to it by one name or routing is known when it writes it
// by another.
func TestADocumentOfAnIndexOfOneShardIsOneByAllItsRoutings(t *testing.T) {
	names := []string{"/shop/_doc/1", "/one/_doc/1", "/shop/_doc/1?routing=a", "/plain/_doc/1?routing=b", "/shop/_doc/1?routing=1"}
	for _, first := range names {
		for _, second := range names {
			w := newWorld(t, "", Identity{})
			if a := w.ask(w.direct, "PUT", "/shop", `{"aliases":{"one":{"routing":"1"},"plain":{}}}`); a.Status != 200 {
				t.Fatal(a)
			}
			do := func(method, target, body string) answer {
				return w.ask(w.proxied, method, target, body, "Optimist-Session", "s")
			}
			w.put(first, `{"n":1}`)
			do("GET", first, "")
			w.wants(do("PUT", first, `{"n":2}`), 200, "guarded")
			if a := do("GET", second, ""); a.Status != 200 {
				t.Fatal(a)
			}
			w.wants(do("PUT", second, `{"n":77}`), 200, "guarded")
			w.wants(do("PUT", first, `{"n":2}`), 200, "guarded")
			if got := w.stored(first); got != `{"n":2}` {
				t.Errorf("by %s after %s: %s", first, second, got)
			}
		}
	}
}

// The same goes for a document that is read before the index is known, in whichever way, and for one that a bulk writes.
func TestAReadByOneRoutingIsTheBaseOfAWriteByAnother(t *testing.T) {
	const named = `{"docs":[{"_id":"1","routing":"a"}]}`
	for name, read := range map[string][3]string{
		"get":    {"GET", "/shop/_doc/1?routing=a"},
		"source": {"GET", "/shop/_source/1?routing=a"},
		"mget":   {"POST", "/shop/_mget", named},
		"search": {"POST", "/shop/_search", `{"seq_no_primary_term":true}`},
		"alias":  {"GET", "/one/_doc/1"},
	} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n", Identity{})
		w.ask(w.direct, "PUT", "/shop", `{"aliases":{"one":{"routing":"1"}}}`)
		w.put("/shop/_doc/1?routing=a&refresh=true", `{"n":1}`)
		if a := w.ask(w.proxied, read[0], read[1], read[2], "Optimist-Session", "s"); a.Status != 200 {
			t.Fatal(name, a)
		}
		w.put("/shop/_doc/1?routing=a", `{"n":1,"b":1}`)
		w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, "Optimist-Session", "s"), 200, "merged")
		w.ask(w.proxied, "POST", "/_bulk", lines(`{"index":{"_index":"shop","_id":"1","routing":"c"}}`, `{"n":3}`), "Optimist-Session", "s")
		w.put("/shop/_doc/1", `{"n":3,"c":1}`)
		w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1?routing=a", `{"n":4}`, "Optimist-Session", "s"), 200, "merged")
		if got := w.stored("/shop/_doc/1"); got != `{"n":4,"c":1}` {
			t.Error(name, got)
		}
	}
	w := newWorld(t, "", Identity{})
	w.ask(w.direct, "PUT", "/shop", `{}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1?routing=a", "", "Optimist-Session", "s")
	w.put("/shop/_doc/1", `{"b":1}`)
	w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"a":1}`, "Optimist-Session", "s"), 200, "merged")
}

package app

import (
	"io"
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

// TestAReadByARoutingIsNoBaseOfAnotherDocument: nobody has asked what the index is when a document of it is read. It has two shards.
func TestAReadByARoutingIsNoBaseOfAnotherDocument(t *testing.T) {
	const rules = "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n"
	for name, read := range map[string][3]string{
		"get":            {"GET", "/shop/_doc/1?routing=2"},
		"source":         {"GET", "/shop/_source/1?routing=2"},
		"mget":           {"POST", "/shop/_mget?routing=2", `{"ids":["1"]}`},
		"search":         {"POST", "/shop/_search?routing=2", `{"seq_no_primary_term":true}`},
		"none":           {"GET", "/shop/_doc/none?routing=2"},
		"none of a head": {"HEAD", "/shop/_doc/none?routing=2"},
	} {
		t.Run(name, func(t *testing.T) {
			url, second := shards(t)
			id := "1"
			if strings.HasPrefix(name, "none") {
				id = "none"
			}
			w := newWorldOn(t, rules, Identity{}, url)
			w.put("/shop/_doc/1?refresh=true", `{"of":"one"}`)
			enginetest.Ask(t, "PUT", second+"/shop/_doc/1?routing=2&refresh=true", `{"of":"two"}`)
			s := []string{"Optimist-Session", "s"}
			if a := w.ask(w.proxied, read[0], read[1], read[2], s...); a.Status != 200 && id == "1" {
				t.Fatal(a)
			}
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/"+id, `{"of":"one","n":2}`, s...), map[string]int{"1": 200, "none": 201}[id], "passed;attempts=1;base=none")
			a := w.ask(w.proxied, "PUT", "/shop/_doc/"+id+"?routing=2", `{"of":"two","n":2}`, s...)
			if a.Status > 201 || !strings.HasPrefix(a.Outcome(), "guarded;attempts=1;base=") || strings.Contains(a.Outcome(), "none") {
				t.Errorf("by its own routing: %d %s [%s]", a.Status, a.Body, a.Outcome())
			}
		})
	}
}

// TestAForwardedItemByARoutingIsNoWriteOfAnotherDocument: the session has read that one, and knows it on.
func TestAForwardedItemByARoutingIsNoWriteOfAnotherDocument(t *testing.T) {
	url, second := shards(t)
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, bulk: pass}\n", Identity{}, url)
	w.put("/shop/_doc/1", `{"of":"one","n":1,"m":1}`)
	for range 2 {
		enginetest.Ask(t, "PUT", second+"/shop/_doc/1?routing=2", `{"of":"two"}`)
	}
	s := []string{"Optimist-Session", "s"}
	if a := w.ask(w.proxied, "GET", "/shop/_doc/1", "", s...); a.Status != 200 {
		t.Fatal(a)
	}
	// The target goes to the engine of the second shard.
	a := w.ask(w.proxied, "POST", "/shop/_bulk?routing=2", lines(`{"index":{"_id":"1"}}`, `{"of":"two","n":2}`), s...)
	if a.Status != 200 || !strings.HasPrefix(a.Outcome(), "passed") {
		t.Fatal(a)
	}
	w.put("/shop/_doc/1", `{"of":"one","n":1,"m":2}`)
	w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"of":"one","n":3,"m":1}`, s...), 200, "merged;attempts=2;base=session")
	if got := w.stored("/shop/_doc/1"); got != `{"of":"one","n":3,"m":2}` {
		t.Error(got)
	}
}

// The index has one shard, so that no routing leads to another document. A search over several indices finds the document by its routing,
// before anybody knows that.
func TestAHitByARoutingIsNewerThanAReadWithoutOne(t *testing.T) {
	for names, outcome := range map[string]string{"shop,other": "merged;attempts=2;base=session", "sho*,other": "passed;attempts=1;base=lost"} {
		t.Run(names, func(t *testing.T) {
			w := newWorld(t, "rules:\n- {name: r, match: {index: [shop, other]}, base: {reads: [get, search]}, merge: {paths: {/n: sum}}}\n", Identity{})
			w.put("/shop/_doc/1?routing=a&refresh=true", `{"n":1}`)
			as := func(method, target, body string) answer {
				return w.ask(w.proxied, method, target, body, "Optimist-Session", "s")
			}
			for range 2 { // so that it is known to write over documents
				as("PUT", "/other/_doc/1", `{}`)
			}
			as("GET", "/shop/_doc/1", "")
			w.put("/shop/_doc/1?routing=a&refresh=true", `{"n":2}`)
			if a := as("POST", "/"+names+"/_search", `{}`); !strings.Contains(a.Body, `"n":2`) {
				t.Fatal(a)
			}
			w.put("/shop/_doc/1?routing=a", `{"n":2,"b":1}`)
			w.wants(as("PUT", "/shop/_doc/1?routing=a", `{"n":3}`), 200, outcome)
			if got := w.stored("/shop/_doc/1?routing=a"); strings.HasPrefix(outcome, "merged") && got != `{"n":3,"b":1}` {
				t.Error(got)
			}
		})
	}
}

// A client with other credentials is told that one of two indices isn't there. The engine is asked before the search whether it still is, so
// that no base is lost for that suspicion.
func TestASearchOverSeveralNamesLosesNoBaseToASuspicion(t *testing.T) {
	for names, outcome := range map[string]string{"shop,other": "guarded;attempts=1;base=session", "sho*,other": "passed;attempts=1;base=lost"} {
		t.Run(names, func(t *testing.T) {
			engine := enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Authorization") == "" || r.URL.Path != "/shop/_doc/1" {
					return false
				}
				out.Header().Set("Content-Type", "application/json")
				out.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(out, `{"error":{"type":"index_not_found_exception","reason":"no such index [shop]"},"status":404}`)
				return true
			})
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop, other]}, base: {reads: [get, search]}}\n", Identity{}, engine)
			as := func(method, target, body string, fields ...string) answer {
				return w.ask(w.proxied, method, target, body, append(fields, "Optimist-Session", "s")...)
			}
			w.put("/other/_doc/1", `{}`)
			as("PUT", "/other/_doc/1", `{}`) // so that it is known to write over documents
			for _, id := range []string{"1", "2"} {
				as("PUT", "/shop/_doc/"+id+"?refresh=true", `{"n":1}`)
				as("GET", "/shop/_doc/"+id, "")
			}
			as("PUT", "/shop/_doc/3?refresh=true", `{"found":true}`)
			for _, id := range []string{"2", "1"} { // that client has known the index
				as("GET", "/shop/_doc/"+id, "", "Authorization", "Basic Ym9iOmJvYg==")
			}
			if a := as("POST", "/"+names+"/_search", `{"query":{"term":{"found":true}}}`); !strings.Contains(a.Body, `"found"`) || strings.Contains(a.Body, `"n"`) {
				t.Fatal(a)
			}
			w.wants(as("PUT", "/shop/_doc/2", `{"n":2}`), 200, outcome)
		})
	}
}

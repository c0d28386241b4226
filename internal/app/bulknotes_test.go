package app

import (
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// What a session's own bulk leaves is no conflict for its next one, though the bulk went as it was.
func TestABulkThatPassesEndsWhatItsSessionKnew(t *testing.T) {
	const mine = `{"index":{"_id":"1","routing":"r"}}` + "\n" + `{"a":1}` + "\n"
	for name, passing := range map[string]struct{ query, text string }{
		"by a routing of its own":        {"", `{"delete":{"_id":"1","routing":"r"}}` + "\n"},
		"and is to show nothing":         {"?filter_path=errors", `{"delete":{"_id":"1","routing":"r"}}` + "\n"},
		"of a document that isn't there": {"", `{"delete":{"_id":"1","routing":"r"}}` + "\n" + `{"delete":{"_id":"1","routing":"r"}}` + "\n"},
		"and makes it anew by a part": {"", `{"delete":{"_id":"1","routing":"r"}}` + "\n" +
			`{"update":{"_id":"1","routing":"r"}}` + "\n" + `{"doc":{"a":2},"doc_as_upsert":true}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "rules:\n- {name: p, match: {index: [alias]}, bulk: pass}\n- {name: r, match: {index: [shop]}}\n", Identity{})
			w.put("/shop", `{"aliases":{"alias":{}}}`)
			ask := func(target, text string) answer {
				return w.ask(w.proxied, "POST", target, text, "Optimist-Session", "s")
			}
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1?routing=r", `{"a":1}`, "Optimist-Session", "s"), 201, "")
			w.wants(ask("/alias/_bulk"+passing.query, passing.text), 200, "passed;")
			if a := ask("/shop/_bulk", mine); strings.Contains(told(a), "exception") {
				t.Errorf("%s %s", a.Outcome(), a.Body)
			}
			w.holds("/shop/_doc/1?routing=r", `{"a":1}`)
		})
	}
}

// A session's own write that can't be guarded is what its next write counts from. From an older read, that would be taken for no change.
func TestAnItemThatPassesIsNewerThanItsSessionsReads(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: p, match: {index: [alias]}, bulk: pass}\n- {name: r, match: {index: [shop]}}\n", Identity{})
	w.put("/shop", `{"aliases":{"alias":{}}}`)
	w.put(doc1, `{"a":1}`)
	ask := func(method, target, text string) answer {
		return w.ask(w.proxied, method, target, text, "Optimist-Session", "s")
	}
	ask("GET", doc1, "")
	w.wants(ask("POST", "/alias/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":2}`)), 200, "passed;")
	w.wants(ask("PUT", doc1, `{"a":1}`), 200, "guarded;")
	w.holds(doc1, `{"a":1}`)
	w.wants(ask("POST", "/alias/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":3}`)), 200, "passed;")
	w.put(doc1, `{"a":4}`)
	w.wants(ask("PUT", doc1, `{"a":5}`), 409, "guarded;") // by others, which it hasn't seen
}

// Optimist can't read an answer in another form than JSON. So the request says what the session has written.
func TestABulkWithAnAnswerInAnotherFormEndsWhatItsSessionKnew(t *testing.T) {
	engine := enginetest.Serve(t)
	yaml := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.RawQuery != "format=yaml" && r.Header.Get("Accept") != "application/yaml" {
			return false
		}
		res, err := http.Post(engine+r.URL.Path, r.Header.Get("Content-Type"), r.Body)
		if err != nil {
			t.Error(err)
			return false
		}
		defer func() { _ = res.Body.Close() }() // nobody reads it
		rw.Header().Set("Content-Type", "application/yaml")
		_, _ = rw.Write([]byte("---\nerrors: false\n"))
		return true
	})
	for _, c := range [][]string{{"?format=yaml"}, {"", "Accept", "application/yaml"}} {
		w := newWorldOn(t, "rules: [{name: r}]", Identity{}, yaml)
		ask := func(method, target, text string, fields ...string) answer {
			return w.ask(w.proxied, method, target, text, append(fields, "Optimist-Session", "s")...)
		}
		ask("PUT", doc1, `{"a":1}`)
		w.wants(ask("POST", "/shop/_bulk"+c[0], lines(`{"index":{"_id":"1"}}`, `{"a":2}`), c[1:]...), 200, "passed;")
		w.wants(ask("PUT", doc1, `{"a":1}`), 200, "")
		w.holds(doc1, `{"a":1}`)
	}
}

// Nothing was written by a bulk that the engine has refused as a whole, in whatever form. What the session has seen stays its base.
func TestARefusedBulkWithAnAnswerInAnotherFormEndsNothing(t *testing.T) {
	engine := enginetest.Serve(t)
	busy := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.URL.RawQuery != "format=yaml" {
			return false
		}
		rw.Header().Set("Content-Type", "application/yaml")
		rw.WriteHeader(http.StatusTooManyRequests)
		_, _ = rw.Write([]byte("---\nstatus: 429\n"))
		return true
	})
	w := newWorldOn(t, "rules: [{name: r}]", Identity{}, busy)
	ask := func(method, target, text string) answer {
		return w.ask(w.proxied, method, target, text, "Optimist-Session", "s")
	}
	ask("PUT", doc1, `{"a":1}`)
	w.wants(ask("POST", "/shop/_bulk?format=yaml", lines(`{"index":{"_id":"1"}}`, `{"a":2}`)), 429, "passed;")
	w.put(doc1, `{"a":1,"others":1}`)
	w.wants(ask("PUT", doc1, `{"a":3}`), 200, "merged;")
	w.holds(doc1, `{"a":3,"others":1}`)
}

// That there was no document is a view, too, which ends once the session has made one: by an item that passes beside others, or by a bulk
// that passes as a whole.
func TestAnItemThatPassesEndsTheViewThatThereIsNoDocument(t *testing.T) {
	for _, target := range []string{"/alias/_bulk", "/shop/_bulk?filter_path=items.*.status", "/shop/_bulk?filter_path=errors", "/other/_bulk"} {
		for name, item := range map[string][2]string{
			"a document": {`{"index":{"_index":"INDEX","_id":"1"}}`, `{"a":1}`},
			"an upsert":  {`{"update":{"_index":"INDEX","_id":"1"}}`, `{"doc":{"a":1},"doc_as_upsert":"true"}`},
		} {
			w := newWorld(t, "rules:\n- {name: p, match: {index: [alias]}, bulk: pass}\n- {name: r, match: {index: [shop]}}\n", Identity{})
			w.put("/shop", `{"aliases":{"alias":{}}}`)
			ask := func(method, target, text string) answer {
				return w.ask(w.proxied, method, target, text, "Optimist-Session", "s")
			}
			ask("PUT", "/shop/_doc/another", `{}`)
			w.wants(ask("GET", doc1, ""), 404, "")
			index := "shop"
			if strings.HasPrefix(target, "/alias") {
				index = "alias"
			}
			w.wants(ask("POST", target, lines(strings.Replace(item[0], "INDEX", index, 1), item[1])), 200, "")
			if a := ask("PUT", doc1, `{"b":1}`); a.Status != 200 || strings.HasPrefix(a.Outcome(), "merged") || w.stored(doc1) != `{"b":1}` {
				t.Errorf("%s by %s: %d %s, stored %s", name, target, a.Status, a.Outcome(), w.stored(doc1))
			}
		}
	}
}

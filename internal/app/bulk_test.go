package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// unguardedBulks is a rule that leaves bulks as they are.
const unguardedBulks = "rules:\n- {name: r, match: {index: [shop]}, bulk: pass}\n"

// TestWhatABulkWroteIsNotTakenForWhatItsSessionWroteBefore has a session write a document, overwrite or delete it with a bulk,
// and write it again as it was before that. The last write changes something.
func TestWhatABulkWroteIsNotTakenForWhatItsSessionWroteBefore(t *testing.T) {
	for name, bulk := range map[string]string{
		"index":  "{\"index\":{\"_id\":\"1\"}}\n{\"a\":5}\n",
		"update": "{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"a\":5}}\n",
		"delete": "{\"delete\":{\"_id\":\"1\"}}\n",
	} {
		for _, rules := range []string{unguardedBulks, "rules:\n- {name: r, match: {index: [shop]}, bulk: pass, base: {stamp: _rev}}\n"} {
			for _, session := range []string{"", "s"} {
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, rules, Identity{Infer: true, Address: true})
					w.put(doc1, `{"a":1}`)
					ask := func(method, target, body string) answer {
						return w.ask(w.proxied, method, target, body, "Optimist-Session", session)
					}
					ask("GET", doc1, "")
					if a := ask("PUT", doc1, `{"a":2}`); a.Status != 200 {
						t.Fatalf("%d %s", a.Status, a.Body)
					}
					if a := ask("POST", "/shop/_bulk", bulk); a.Status != 200 || a.Outcome() != "passed;attempts=1;base=none;reason=bulk" {
						t.Fatalf("%d %s %s", a.Status, a.Outcome(), a.Body)
					}
					if a := ask("PUT", doc1, `{"a":2}`); a.Status > 201 || w.stored(doc1) != `{"a":2}` {
						t.Errorf("%d %s [%s], stored %s", a.Status, a.Body, a.Outcome(), w.stored(doc1))
					}
				})
			}
		}
	}
}

// TestADocumentThatItsSessionDeletedByABulkIsWrittenAnew has a named session write what it had read, and deleted since.
func TestADocumentThatItsSessionDeletedByABulkIsWrittenAnew(t *testing.T) {
	w := newWorld(t, unguardedBulks, Identity{})
	w.put(doc1, `{"a":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.ask(w.proxied, "POST", "/shop/_bulk", "{\"delete\":{\"_id\":\"1\"}}\n", "Optimist-Session", "s")
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 201, "passed;attempts=1;base=lost")
}

// TestAPartThatPassesIsNewerThanItsSessionsReads has a session write a part by a bulk that optimist doesn't guard, and then the document. From
// the older read, a value that the session sets back would be taken for one that it left alone.
func TestAPartThatPassesIsNewerThanItsSessionsReads(t *testing.T) {
	const read, sent = `{"a":1,"b":1}`, `{"a":1,"b":2}`
	for name, c := range map[string]struct {
		after, stored string
		status        int
		outcome       string
	}{
		"nobody else":       {"", sent, 200, "guarded;attempts=1;base=view"},
		"others, before it": {`{"a":2,"b":3}`, `{"a":2,"b":3}`, 409, "guarded;attempts=1;base=view;reason=numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, unguardedBulks, Identity{})
			w.put(doc1, read)
			ask := func(method, target, body string) answer {
				return w.ask(w.proxied, method, target, body, "Optimist-Session", "s")
			}
			ask("GET", doc1, "")
			w.wants(ask("POST", "/shop/_bulk", "{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"a\":2}}\n"), 200, "passed;")
			if c.after != "" {
				w.put(doc1, c.after)
			}
			w.wants(ask("PUT", doc1, sent), c.status, c.outcome)
			w.holds(doc1, c.stored)
		})
	}
}

// TestWhatOthersWroteAfterABulkIsNotOverwritten has a session save a document, write it by a bulk, and save it again from memory.
// Others write it before or after the bulk: what it hasn't seen, and hasn't overwritten by the bulk, it doesn't overwrite.
func TestWhatOthersWroteAfterABulkIsNotOverwritten(t *testing.T) {
	const whole, part = "{\"index\":{\"_id\":\"1\"}}\n{\"a\":5}\n", "{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"a\":5}}\n"
	for name, c := range map[string]struct {
		before, bulk, after string
		status              int
		outcome             string
	}{
		"nobody else":              {"", whole, "", 200, "guarded;attempts=1;base=view"},
		"nobody else, a part":      {"", part, "", 200, "guarded;attempts=1;base=view"},
		"after":                    {"", whole, `{"a":5,"b":1}`, 409, "guarded;attempts=1;base=view;reason=numbers"},
		"after a part":             {"", part, `{"a":5,"b":1}`, 409, "guarded;attempts=1;base=view;reason=numbers"},
		"before":                   {`{"a":2,"b":1}`, whole, "", 200, "guarded;attempts=1;base=view"}, // the bulk overwrote it
		"before a part":            {`{"a":2,"b":1}`, part, "", 409, "refused;attempts=0;base=view;reason=numbers"},
		"after one that is a noop": {"", "{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"a\":2}}\n", `{"a":2,"b":1}`, 200, "merged;attempts=2;base=view"},
	} {
		for _, session := range []string{"", "s"} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, unguardedBulks, Identity{Infer: true, Address: true})
				w.put(doc1, `{"a":1}`)
				ask := func(method, target, body string) answer {
					return w.ask(w.proxied, method, target, body, "Optimist-Session", session)
				}
				ask("GET", doc1, "")
				w.wants(ask("PUT", doc1, `{"a":2}`), 200, "guarded")
				if c.before != "" {
					w.put(doc1, c.before)
				}
				w.wants(ask("POST", "/shop/_bulk", c.bulk), 200, "passed;attempts=1;base=none;reason=bulk")
				if c.after != "" {
					w.put(doc1, c.after)
				}
				w.wants(ask("PUT", doc1, `{"a":3}`), c.status, c.outcome)
				if c.status == 409 { // it reads, and goes on
					ask("GET", doc1, "")
					w.wants(ask("PUT", doc1, `{"a":3}`), 200, "guarded;attempts=1;base=session")
				}
			})
		}
	}
}

// TestAllOfManyItemsAreWritten: more than are written at the same time.
func TestAllOfManyItemsAreWritten(t *testing.T) {
	w := newWorld(t, transformRules, Identity{})
	const items = 2500
	var bulk strings.Builder
	for n := range items {
		fmt.Fprintf(&bulk, "{\"index\":{\"_id\":\"%d\"}}\n{}\n", n)
	}
	a := w.ask(w.proxied, "POST", "/shop/_bulk", bulk.String(), "Content-Type", "application/x-ndjson")
	if n := len(gjson.Get(a.Body, "items").Array()); a.Status != 200 || gjson.Get(a.Body, "errors").Bool() || n != items {
		t.Fatalf("%d, %d items: %.300s", a.Status, n, a.Body)
	}
	for _, n := range []int{0, 999, 1000, 1999, 2000, items - 1} {
		if got := gjson.Get(w.stored(fmt.Sprintf("/shop/_doc/%d", n)), "edits").Int(); got != 1 {
			t.Errorf("document %d has %d edits", n, got)
		}
	}
}

// TestABulkSaysThatItIsUntransformedIfAnItemIs: whether another rule of the configuration has a transform doesn't matter.
func TestABulkSaysThatItIsUntransformedIfAnItemIs(t *testing.T) {
	const rules = "rules:\n- {name: shop, match: {index: [shop]}, transform: [{op: default, path: /x, value: 1}]}\n" +
		"- {name: import, match: {index: [import]}, bulk: pass, transform: [{op: default, path: /x, value: 1}]}\n- {name: rest}\n"
	item := func(verb, index string) string { return `{"` + verb + `":{"_index":"` + index + `","_id":"1"}}` }
	for name, c := range map[string]struct {
		bulk, outcome string
		rule          string // whose write is counted
	}{
		"no transform":           {lines(item("index", "a"), `{}`), "passed;attempts=1;base=none", ""},
		"a rule that passes it":  {lines(item("index", "import"), `{}`), "passed;attempts=1;base=none;reason=bulk;untransformed", "import"},
		"a delete":               {lines(item("delete", "import")), "passed;attempts=1;base=none;reason=bulk", ""},
		"no document":            {lines(item("index", "shop"), `[1]`), "passed;attempts=1;base=none;untransformed", "shop"},
		"one of two":             {lines(item("index", "shop"), `{}`, item("index", "import"), `{}`), "passed;items=2;passed=2;untransformed=1", "import"},
		"one without a document": {lines(item("index", "shop"), `{}`, item("index", "shop"), `[1]`), "passed;items=2;passed=2;untransformed=1", "shop"},
		"a large one": {lines(item("index", "shop"), `{}`, item("index", "shop"), `{"t":"`+strings.Repeat("x", 4<<20)+`"}`),
			"passed;items=2;passed=2;untransformed=1;too_large=1", "shop"},
		"nobody knows": {lines(`{"index":{"_index":"a","_id":"1","_id":"2"}}`, `{}`), "passed;attempts=1;base=none;reason=format;untransformed", "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules, Identity{})
			if a := w.ask(w.proxied, "POST", "/_bulk", c.bulk, "Content-Type", "application/x-ndjson"); a.Outcome() != c.outcome {
				t.Errorf("outcome %s, want %s", a.Outcome(), c.outcome)
			}
			for _, rule := range []string{"shop", "import", "rest"} {
				if n, want := w.counted("optimist_untransformed_writes_total", "rule", rule), rule == c.rule; (n == 1) != want {
					t.Errorf("%d are counted for %s", n, rule)
				}
			}
		})
	}
}

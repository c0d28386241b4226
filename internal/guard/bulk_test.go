package guard

import "testing"

// TestWhatABulkWroteIsNotTakenForWhatItsSessionWroteBefore has a session write a document, overwrite or delete it with a bulk, and write it
// again as it was before that. The last write changes something.
func TestWhatABulkWroteIsNotTakenForWhatItsSessionWroteBefore(t *testing.T) {
	for name, bulk := range map[string]string{
		"index":  "{\"index\":{\"_id\":\"1\"}}\n{\"a\":5}\n",
		"update": "{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"a\":5}}\n",
		"delete": "{\"delete\":{\"_id\":\"1\"}}\n",
	} {
		for _, rules := range []string{"", "rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _rev}}\n"} {
			for _, session := range []string{"", "s"} {
				t.Run(name, func(t *testing.T) {
					w := newWorld(t, rules, Identity{Infer: true, Address: true})
					w.put(doc1, `{"a":1}`)
					ask := func(method, target, body string) answer {
						return w.ask(w.proxied, method, target, body, "Optimist-Session", session)
					}
					ask("GET", doc1, "")
					if a := ask("PUT", doc1, `{"a":2}`); a.status != 200 {
						t.Fatalf("%d %s", a.status, a.body)
					}
					if a := ask("POST", "/shop/_bulk", bulk); a.status != 200 || a.outcome() != "passed;attempts=1;base=none;reason=bulk" {
						t.Fatalf("%d %s %s", a.status, a.outcome(), a.body)
					}
					if a := ask("PUT", doc1, `{"a":2}`); a.status > 201 || w.stored(doc1) != `{"a":2}` {
						t.Errorf("%d %s [%s], stored %s", a.status, a.body, a.outcome(), w.stored(doc1))
					}
				})
			}
		}
	}
}

// TestADocumentThatItsSessionDeletedByABulkIsWrittenAnew has a named session write what it had read, and deleted since.
func TestADocumentThatItsSessionDeletedByABulkIsWrittenAnew(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.ask(w.proxied, "POST", "/shop/_bulk", "{\"delete\":{\"_id\":\"1\"}}\n", "Optimist-Session", "s")
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 201, "passed;attempts=1;base=lost")
}

// TestABulkDoesNotEndWhatItsSessionHasRead has somebody else's change come before a write whose base was read before a bulk.
func TestABulkDoesNotEndWhatItsSessionHasRead(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1,"b":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.ask(w.proxied, "POST", "/shop/_bulk", "{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"c\":1}}\n", "Optimist-Session", "s")
	w.put(doc1, `{"a":1,"b":2,"c":1}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2,"b":1}`, "Optimist-Session", "s"), 200, "merged;attempts=2;base=session")
	if got := w.stored(doc1); got != `{"a":2,"b":2,"c":1}` {
		t.Errorf("stored %s", got)
	}
}

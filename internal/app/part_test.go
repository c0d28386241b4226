package app

import "testing"

// A named session's full write after a part that it wrote itself says what the document is to be, though it is what it sent
// before the part.
func TestAWriteAfterAPartOfTheSessionsOwnIsWritten(t *testing.T) {
	for name, part := range map[string][3]string{
		"_update": {"POST", "/shop/_update/1", `{"doc":{"a":2}}`},
		"PATCH":   {"PATCH", doc1, `{"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}}\n", Identity{Headers: []string{"Optimist-Session"}})
			desk := []string{"Optimist-Session", "desk", "Content-Type", "application/json"}
			merge := []string{"Optimist-Session", "desk", "Content-Type", "application/merge-patch+json"}
			w.put(doc1, `{"a":0,"b":1}`)
			w.ask(w.proxied, "GET", doc1, "", desk...)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":1,"b":1}`, desk...), 200, "guarded")
			header := desk
			if name == "PATCH" {
				header = merge
			}
			w.wants(w.ask(w.proxied, part[0], part[1], part[2], header...), 200, "")
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":1,"b":1}`, desk...), 200, "guarded")
			if got := w.stored(doc1); got != `{"a":1,"b":1}` {
				t.Errorf("stored %s", got)
			}
			w.wants(w.ask(w.proxied, part[0], part[1], part[2], header...), 200, "")
			w.put(doc1, `{"a":2,"b":9}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":1,"b":1}`, desk...), 200, "merged")
			if got := w.stored(doc1); got != `{"a":1,"b":9}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

package write

import (
	"strings"
	"testing"

	"optimist/internal/notetest"
	"optimist/internal/session"
)

// withMarks are rules by which writes leave marks in documents, and none.
var withMarks = map[string]string{"with": "rules:\n- {name: r, match: {index: [shop]}, write_id: _w}\n", "without": ""}

// What clients had read before the start guards their writes, with marks in the documents and without.
func TestWhatWasReadBeforeTheStartIsAGuard(t *testing.T) {
	for name, rules := range withMarks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules)
			notes := notetest.New(7)
			next := func() {
				w.store = session.New(session.Options{Notes: notes})
				w.start(Options{})
			}
			next()
			w.direct("PUT", "/shop/_doc/1", `{"l":["x"]}`)
			w.stranger().readBy()
			next()
			w.direct("PUT", "/shop/_doc/1", `{"l":["x","other"]}`)
			has(t, w.stranger().save("1", `{"l":["x","me"]}`), 409, "guarded;attempts=1;base=session;reason=restart")
		})
	}
}

// A client that is alone sets its own change back, with marks in the documents and without.
func TestAClientAloneSetsItsChangeBack(t *testing.T) {
	for name, rules := range withMarks {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules)
			w.direct("PUT", "/shop/_doc/1", `{"s":"zero","n":1,"l":["an entry"]}`)
			c := w.stranger()
			c.read("1")
			c.save("1", `{"s":"first state","n":1,"l":["an entry"]}`)
			c.read("1")
			c.save("1", `{"s":"first state","n":1,"l":["another entry"]}`)
			c.save("1", `{"s":"first state","n":1,"l":["an entry"]}`)
			if got := w.stored("1"); !strings.Contains(got, `"an entry"`) {
				t.Errorf("stored: %s", got)
			}
		})
	}
}

package write

import (
	"fmt"
	"strings"
	"testing"

	"optimist/internal/notetest"
	"optimist/internal/session"
)

// withMarks are rules by which writes leave marks in documents, and none.
var withMarks = map[string]string{"with": "rules:\n- {name: r, match: {index: [shop]}, write_id: _w}\n", "without": ""}

// newNotedWorld is newWorld with notes of what clients see. next ends the process and starts another one, which finds the notes.
func newNotedWorld(t *testing.T, rules string) (w *world, next func()) {
	w = newWorld(t, rules)
	notes := notetest.New(7)
	next = func() {
		w.store = session.New(session.Options{Notes: notes})
		w.start(Options{})
	}
	next()
	return w, next
}

// What clients had read before the start guards their writes, with marks in the documents and without.
func TestWhatWasReadBeforeTheStartIsAGuard(t *testing.T) {
	for name, rules := range withMarks {
		t.Run(name, func(t *testing.T) {
			w, next := newNotedWorld(t, rules)
			w.direct("PUT", "/shop/_doc/1", `{"l":["x"]}`)
			w.stranger().readBy()
			next()
			w.direct("PUT", "/shop/_doc/1", `{"l":["x","other"]}`)
			has(t, w.stranger().save("1", `{"l":["x","me"]}`), 409, "guarded;attempts=1;base=session;reason=restart")
		})
	}
}

// What clients had read before the start guards their parts, too, whether or not another client has read since. A part that was made from
// what has been read since is told by its content, and one that only sets values needs no base.
func TestWhatWasReadBeforeTheStartGuardsParts(t *testing.T) {
	const since = `{"l":["x","other"],"n":2,"s":"new"}`
	for name, c := range map[string]struct {
		reads         bool // a client reads after the start
		part          string
		status        int
		outcome, left string
	}{
		"old":            {false, `{"l":["x","me"]}`, 409, "guarded;attempts=1;base=session;reason=restart", since},
		"old, after one": {true, `{"l":["x","me"]}`, 409, "guarded;attempts=1;base=session;ambiguous;reason=restart", since},
		"a count":        {true, `{"n":3}`, 409, "guarded;attempts=1;base=session;ambiguous;reason=restart", since},
		"new": {true, `{"l":["x","other","me"]}`, 200, "guarded;attempts=1;base=session;ambiguous",
			`{"l":["x","other","me"],"n":2,"s":"new"}`},
		"a value":            {false, `{"s":"done"}`, 200, "retried;attempts=1;base=lost;reason=restart", `{"l":["x","other"],"n":2,"s":"done"}`},
		"a value, after one": {true, `{"s":"done"}`, 200, "retried;attempts=1;base=none", `{"l":["x","other"],"n":2,"s":"done"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w, next := newNotedWorld(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n")
			w.direct("PUT", "/shop/_doc/1", `{"l":["x"],"n":1,"s":"new"}`)
			w.stranger().readBy()
			next()
			w.direct("PUT", "/shop/_doc/1", since)
			if c.reads {
				w.stranger().readBy()
			}
			has(t, w.stranger().send("POST", "/shop/_update/1", `{"doc":`+c.part+`}`), c.status, c.outcome)
			if got := w.stored("1"); got != c.left {
				t.Errorf("stored: %s", got)
			}
		})
	}
}

// A client that is alone writes parts after the start as before, whether or not it reads.
func TestAClientAloneWritesPartsAfterAStart(t *testing.T) {
	for name, reads := range map[string]bool{"from memory": false, "from reads": true} {
		t.Run(name, func(t *testing.T) {
			w, next := newNotedWorld(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n")
			w.direct("PUT", "/shop/_doc/1", `{"n":1}`)
			w.stranger().readBy()
			next()
			for n := 2; n < 5; n++ {
				if r := w.stranger().send("POST", "/shop/_update/1", fmt.Sprintf(`{"doc":{"n":%d}}`, n)); r.status != 200 {
					t.Error(n, r)
				}
				if reads {
					w.stranger().readBy()
				}
			}
			same(t, w.stored("1"), `{"n":4}`)
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

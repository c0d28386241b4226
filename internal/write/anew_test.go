package write

import (
	"errors"
	"testing"

	"optimist/internal/upstream"
)

// The answer to a write is lost. Before optimist looks, another client deletes the document and makes a new one of the same name. Every
// path that the write touches is there as it was, but the write may have been applied to the document that is gone: it isn't applied to
// the new one.
func TestALostWriteIsNotAppliedToADocumentThatWasMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		before  int // how often the document was written before its client read it; 0: there was none
		sent    string
		made    string // the new document
		applied bool   // the engine applied the write whose answer was lost
	}{
		"a create, applied":     {0, `{"a":2}`, `{"b":7}`, true},
		"a create, not applied": {0, `{"a":2}`, `{"b":7}`, false},
		"a PUT, applied":        {3, `{"a":2,"b":1}`, `{"a":1,"b":7}`, true},
		"a PUT, not applied":    {3, `{"a":2,"b":1}`, `{"a":1,"b":7}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("other", `{}`)
			for range c.before {
				w.put("1", `{"a":1,"b":1}`)
			}
			me := w.client("me")
			me.read("1")
			w.loseFirst(func(r *upstream.Request) {
				if c.applied {
					w.engine.handle(r)
				}
				w.direct("DELETE", "/shop", "") // no engine remembers versions of a deleted index
				w.put("other", `{}`)
				w.put("1", c.made)
			})
			if r := me.save("1", c.sent); !errors.Is(r.err, ErrUnknownOutcome) {
				t.Errorf("got %v", r)
			}
			same(t, w.stored("1"), c.made)
		})
	}
}

// The same, of a document that is the old one: another client has written to it, and the change may be applied twice.
func TestALostWriteIsAppliedToTheSameDocumentOnceMore(t *testing.T) {
	w := newWorld(t, "")
	for range 3 {
		w.put("1", `{"a":1,"b":1}`)
	}
	me := w.client("me")
	me.read("1")
	w.loseFirst(func(*upstream.Request) { w.put("1", `{"a":1,"b":7}`) })
	has(t, me.save("1", `{"a":2,"b":1}`), 200, "merged")
	same(t, w.stored("1"), `{"a":2,"b":7}`)
}

package write

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A PUT of the bytes that the same client wrote before is a write like any other: the engine counts its version up, and whatever the index
// does to documents by now is done to it. (The engine's own REST tests of versions do this.)
func TestASaveOfWhatItsClientWroteBeforeIsWritten(t *testing.T) {
	for name, begin := range map[string]func(w *world) (*client, int64){
		"a named session in a new index":      func(w *world) (*client, int64) { return w.client("me"), 0 },
		"an unnamed session in a new index":   func(w *world) (*client, int64) { return w.stranger(), 0 },
		"a client without a session":          func(w *world) (*client, int64) { return w.nobody(), 0 },
		"an unnamed session that saw nothing": func(w *world) (*client, int64) { c := w.stranger(); w.put("0", `{}`); c.read("1"); return c, 0 },
		"a named session that read it": func(w *world) (*client, int64) {
			w.put("1", `{"a":0}`)
			c := w.client("me")
			c.read("1")
			return c, 1
		},
		"a session whose last write was merged": func(w *world) (*client, int64) {
			w.put("1", `{"a":0}`)
			c := w.client("me")
			c.read("1")
			w.put("1", `{"a":0,"b":1}`)
			has(w.t, c.save("1", `{"a":1}`), 200, "merged")
			return c, 3
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			c, version := begin(w)
			for i := range int64(3) {
				r := c.save("1", `{"a":1}`)
				if got := gjson.Get(r.body, "_version").Int(); r.status/100 != 2 || got != version+i+1 || strings.Contains(r.body, "noop") {
					t.Fatalf("save %d: %v, want version %d", i, r, version+i+1)
				}
			}
			if _, body := w.direct("GET", target1, ""); gjson.Get(body, "_version").Int() != version+3 {
				t.Errorf("stored %s", body)
			}
		})
	}
}

// After a conflict nothing is left to write where somebody else wrote the same: that is the engine's noop.
func TestAMergeThatChangesNothingIsANoop(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":0}`)
	c := w.client("me")
	c.read("1")
	w.put("1", `{"a":1}`)
	r := c.save("1", `{"a":1}`)
	if has(t, r, 200, "merged;attempts=1"); gjson.Get(r.body, "result").Str != "noop" || gjson.Get(r.body, "_version").Int() != 2 {
		t.Errorf("%v", r)
	}
}

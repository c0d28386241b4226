package app

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"optimist/internal/enginetest"
)

// TestAReadOfAnotherDocumentIsNoBase: something between optimist and the engine mixes up two answers, and the client's read is answered
// with another document. Its numbers were the base, and the ETag, of the document that the client had asked for.
func TestAReadOfAnotherDocumentIsNoBase(t *testing.T) {
	const doc2 = "/shop/_doc/2"
	for name, c := range map[string]struct{ answer, session, want, stored string }{
		"named":     {"", me, "passed;attempts=1;base=lost;reason=evicted", `{"n":101}`},
		"inferred":  {"", "", "guarded;attempts=1;base=session", `{"n":101}`},
		"not found": {`{"_index":"shop","_id":"3","found":false}`, me, "passed;attempts=1;base=lost;reason=evicted", `{"n":101}`},
	} {
		t.Run(name, func(t *testing.T) {
			var mixed atomic.Pointer[string]
			engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
				body := mixed.Swap(nil)
				if body == nil || r.Method != http.MethodGet || r.URL.Path != doc1 {
					mixed.CompareAndSwap(nil, body)
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, *body)
				return true
			})
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", Identity{Infer: true}, engine)
			w.put(doc1, `{"n":1}`)
			w.put(doc2, `{"n":100}`)
			var session []string
			if c.session != "" {
				session = []string{"Optimist-Session", c.session}
			}
			w.ask(w.proxied, "GET", doc1, "", session...)
			another := w.ask(w.direct, "GET", doc2, "").Body
			if c.answer != "" {
				another = c.answer
			}
			mixed.Store(&another)
			if a := w.ask(w.proxied, "GET", doc1, "", session...); a.Body != another || a.Header.Get("ETag") != "" {
				t.Fatalf("read %s, with the ETag %s", a.Body, a.Header.Get("ETag"))
			}
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":101}`, session...), 200, c.want)
			if got := w.stored(doc1); got != c.stored {
				t.Errorf("stored %s, want %s", got, c.stored)
			}
		})
	}
}

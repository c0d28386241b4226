package app

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"optimist/internal/enginetest"
)

// TestAnItemIsMadeFromTheOneBeforeItWhateverOthersHaveRead has clients read a document, and one of them write it several times by one bulk.
// The bulk leaves what it leaves without optimist. The other client's read isn't the base of any item but the first.
func TestAnItemIsMadeFromTheOneBeforeItWhateverOthersHaveRead(t *testing.T) {
	const index, update, remove, create = `{"index":{"_id":"1"}}`, `{"update":{"_id":"1"}}`, `{"delete":{"_id":"1"}}`, `{"create":{"_id":"1"}}`
	const sum = ", merge: {paths: {/n: sum}}"
	for name, c := range map[string]struct{ rule, before, bulk, stored string }{
		"set back":              {"", `{"s":"new"}`, lines(index, `{"s":"paid"}`, index, `{"s":"new"}`), `{"s":"new"}`},
		"set, back, and again":  {"", `{"s":"a"}`, lines(index, `{"s":"b"}`, index, `{"s":"a"}`, index, `{"s":"b"}`), `{"s":"b"}`},
		"a sum":                 {sum, `{"n":10}`, lines(index, `{"n":11}`, index, `{"n":12}`, index, `{"n":13}`), `{"n":13}`},
		"a list that grows":     {"", `{"l":["one"]}`, lines(index, `{"l":["one","two"]}`, index, `{"l":["one","two","three"]}`), `{"l":["one","two","three"]}`},
		"a list that shrinks":   {"", `{"l":["one","two"]}`, lines(index, `{"l":["one"]}`, index, `{"l":[]}`), `{"l":[]}`},
		"parts":                 {"", `{"s":"a","n":1}`, lines(update, `{"doc":{"s":"b"}}`, update, `{"doc":{"s":"a"}}`), `{"s":"a","n":1}`},
		"parts of a sum":        {sum, `{"n":10}`, lines(update, `{"doc":{"n":11}}`, update, `{"doc":{"n":12}}`), `{"n":12}`},
		"parts, one of a sum":   {sum, `{"s":"a","n":10}`, lines(update, `{"doc":{"s":"b"}}`, update, `{"doc":{"n":11}}`), `{"s":"b","n":11}`},
		"a part, then a whole":  {"", `{"s":"a"}`, lines(update, `{"doc":{"s":"b"}}`, index, `{"s":"a"}`), `{"s":"a"}`},
		"a whole, then a part":  {"", `{"s":"a"}`, lines(index, `{"s":"b"}`, update, `{"doc":{"s":"a"}}`), `{"s":"a"}`},
		"around a part":         {"", `{"s":"a"}`, lines(index, `{"s":"b"}`, update, `{"doc":{"s":"c"}}`, index, `{"s":"b"}`), `{"s":"b"}`},
		"deleted, and indexed":  {"", `{"s":"a"}`, lines(index, `{"s":"b"}`, remove, index, `{"s":"a"}`), `{"s":"a"}`},
		"deleted, and created":  {"", `{"s":"a"}`, lines(remove, create, `{"s":"b"}`, index, `{"s":"a"}`), `{"s":"a"}`},
		"retried by the client": {"", `{"s":"a"}`, lines(`{"update":{"_id":"1","retry_on_conflict":3}}`, `{"doc":{"s":"b"}}`, index, `{"s":"a"}`), `{"s":"a"}`},
		"its own guard, first": {"", `{"s":"a"}`, lines(`{"index":{"_id":"1","if_seq_no":0,"if_primary_term":1}}`, `{"s":"b"}`, index, `{"s":"a"}`),
			`{"s":"a"}`},
		"one that fails between": {"", `{"s":"a"}`, lines(index, `{"s":"b"}`, create, `{}`, index, `{"s":"a"}`), `{"s":"a"}`},
		"a transform": {", transform: [{op: default, path: /d, value: 1}]", `{"s":"a"}`, lines(update, `{"doc":{"s":"b"}}`, index, `{"s":"a"}`),
			`{"s":"a","d":1}`},
	} {
		for _, by := range []string{"one read", "two reads", "a trace", "a named session"} {
			t.Run(name+", "+by, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}"+c.rule+"}\n", Identity{Infer: true, Address: true})
				w.put(doc1, c.before)
				var own []string
				switch by {
				case "a trace":
					own = []string{"traceparent", "00-" + strings.Repeat("ab", 16) + "-00f067aa0ba902b7-01"}
				case "a named session":
					own = []string{"Optimist-Session", "s"}
				}
				w.ask(w.proxied, "GET", doc1, "", own...)
				if by != "one read" {
					w.ask(w.proxied, "GET", doc1, "")
				}
				a := w.ask(w.proxied, "POST", "/shop/_bulk", c.bulk, own...)
				if got := w.stored(doc1); got != c.stored {
					t.Errorf("stored is %s, want %s: %s [%s]", got, c.stored, told(a), a.Outcome())
				}
			})
		}
	}
}

// TestWhatOthersWriteBetweenTwoItemsIsMerged: the second item is a change of what the first has left.
func TestWhatOthersWriteBetweenTwoItemsIsMerged(t *testing.T) {
	engine := enginetest.Serve(t)
	bulks := 0
	var mu sync.Mutex
	between := enginetest.Between(t, engine, func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/_bulk") {
			if bulks++; bulks == 2 {
				enginetest.Ask(t, http.MethodPut, engine+doc1, `{"n":16,"s":"paid"}`)
			}
		}
		return false
	})
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", Identity{Infer: true, Address: true}, between)
	w.put(doc1, `{"n":10,"s":"new"}`)
	w.ask(w.proxied, "GET", doc1, "")
	w.ask(w.proxied, "GET", doc1, "")
	index := `{"index":{"_id":"1"}}`
	a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(index, `{"n":11,"s":"paid"}`, index, `{"n":12,"s":"new"}`))
	w.bulked(a, "index 200 updated, index 200 updated", "merged;items=2;guarded=1;merged=1")
	w.holds(doc1, `{"n":17,"s":"new"}`)
}

// TestABulkThatIsSentAgainCountsOnce: its client has left before it had the answer.
func TestABulkThatIsSentAgainCountsOnce(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", Identity{})
	w.put(doc1, `{"n":10}`)
	index := `{"index":{"_id":"1"}}`
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	for range 2 {
		w.ask(w.proxied, "POST", "/shop/_bulk", lines(index, `{"n":11}`, index, `{"n":12}`), "Optimist-Session", "s")
	}
	w.holds(doc1, `{"n":12}`)
}

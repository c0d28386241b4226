package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

// lockDocs gets the locks of documents with undo. released is a body that names them all; tokens are the fields of writes, one a lock.
func (w *undoWorld) lockDocs(ids ...string) (answer gjson.Result, tokens [][]string) {
	w.t.Helper()
	answer = w.ask(201, "POST", "/docs/_lock/docs", fmt.Sprintf(`{"owner":"one","ttl":"10m","undo":true,"ids":["%s"]}`, strings.Join(ids, `","`)))
	for _, l := range answer.Get("locks").Array() {
		tokens = append(tokens, []string{"Optimist-Lock-Token", l.Get("token").Raw})
	}
	return answer, tokens
}

func (w *undoWorld) fill(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		w.ask(201, "PUT", "/docs/_doc/"+id, `{ "n": 0.10 }`)
	}
}

// changed wants documents that are changed, or as they were.
func (w *undoWorld) changed(is bool, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		w.wants("/docs/_doc/"+id, map[bool]string{true: `{"n":1}`, false: `{ "n": 0.10 }`}[is])
	}
}

func TestTheLocksOfSeveralDocumentsHaveOneJournal(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.fill("a", "b", "c")
	_, tokens := w.lockDocs("a", "b", "c")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, tokens[0]...)
	w.ask(200, "PUT", "/docs/_doc/b", `{"n":1}`, tokens[2]...)
	w.ask(200, "PUT", "/docs/_doc/c", `{"n":1}`, "Optimist-Lock-Token", tokens[1][1]+", "+tokens[2][1])
	w.lapse("/docs/_lock/doc/b")
	w.ask(201, "PUT", "/docs/_lock/doc/b?owner=next&wait=20s", "")
	w.changed(false, "a", "b", "c")
	for _, token := range tokens {
		w.ask(410, "PUT", "/docs/_doc/c", `{"n":9}`, token...)
	}
}

func TestTheLocksOfSeveralDocumentsAreReleasedTogether(t *testing.T) {
	all := func(answer gjson.Result) string { return answer.Raw }
	tokensOf := func(answer gjson.Result, most int) string {
		var tokens []string
		for _, l := range answer.Get("locks").Array()[:most] {
			tokens = append(tokens, l.Get("token").Raw)
		}
		return `{"owner":"one","tokens":[` + strings.Join(tokens, ",") + `]}`
	}
	some := func(answer gjson.Result) string {
		return `{"owner":"one","locks":[` + answer.Get("locks.1").Raw + `]}`
	}
	one := func(answer gjson.Result) string {
		return `{"owner":"one","token":` + answer.Get("locks.1.token").Raw + `}`
	}
	for _, c := range []struct {
		name, method, target string
		body                 func(gjson.Result) string
		status               int
		stays                bool
	}{
		{"all", "DELETE", "/docs/_lock/docs", all, 200, true},
		{"all are committed", "POST", "/docs/_lock/docs/_commit", all, 200, true},
		{"all are rolled back", "POST", "/docs/_lock/docs/_rollback", all, 200, false},
		{"all by their tokens", "POST", "/_lock/_release", func(a gjson.Result) string { return tokensOf(a, 3) }, 200, true},
		{"some", "DELETE", "/docs/_lock/docs", some, 400, true},
		{"some are committed", "POST", "/docs/_lock/docs/_commit", some, 400, true},
		{"some are rolled back", "POST", "/docs/_lock/docs/_rollback", some, 400, true},
		{"some by their tokens", "POST", "/_lock/_release", func(a gjson.Result) string { return tokensOf(a, 2) }, 400, true},
		{"one", "DELETE", "/docs/_lock/doc/b", one, 400, true},
		{"one is committed", "POST", "/docs/_lock/doc/b/_commit", one, 400, true},
		{"one is rolled back", "POST", "/docs/_lock/doc/b/_rollback", one, 400, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newUndoWorld(t, enginetest.Serve(t), "")
			w.fill("a", "b", "c")
			answer, tokens := w.lockDocs("a", "b", "c")
			for _, id := range []string{"a", "b", "c"} {
				w.ask(200, "PUT", "/docs/_doc/"+id, `{"n":1}`, tokens[1]...)
			}
			w.ask(200, "POST", "/optimist-locks/_refresh", "")
			r := w.ask(c.status, c.method, c.target, c.body(answer))
			if c.status == 200 {
				if n := r.Get("count").Int() + r.Get("locks.#").Int(); n != 3 {
					t.Errorf("%d of 3 are released: %s", n, r)
				}
				w.ask(410, "PUT", "/docs/_doc/a", `{"n":9}`, tokens[0]...)
				w.ask(201, "POST", "/docs/_lock/docs", `{"owner":"next","wait":"0s","ids":["a","b","c"]}`)
			} else {
				if reason := r.Get("error.reason").Str; !strings.Contains(reason, "Release all 3 at once") {
					t.Errorf("the reason is %q", reason)
				}
				w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, tokens[0]...) // nothing has ended
				w.ask(409, "PUT", "/docs/_lock/doc/b?owner=next&wait=0s", "")
			}
			w.changed(c.stays, "a", "b", "c")
		})
	}
}

func TestALeaseThatHasEndedKeepsTheOthersFromBeingCommitted(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.fill("a", "b")
	answer, tokens := w.lockDocs("a", "b")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, tokens[0]...)
	w.lapse("/docs/_lock/doc/b")
	w.ask(410, "DELETE", "/docs/_lock/docs", answer.Raw)
	w.ask(201, "PUT", "/docs/_lock/doc/b?owner=next&wait=20s", "")
	w.changed(false, "a", "b")
	w.ask(410, "POST", "/docs/_lock/docs/_commit", answer.Raw)
	w.ask(201, "PUT", "/docs/_lock/doc/a?owner=next&wait=0s", "") // it protected nothing any more
}

func TestARollbackOfSeveralMayBeRepeated(t *testing.T) {
	for name, end := range map[string]func(w *undoWorld, answer string){
		"rolled back":            func(w *undoWorld, answer string) { w.ask(200, "POST", "/docs/_lock/docs/_rollback?wait=5m", answer) },
		"one of them has lapsed": func(w *undoWorld, _ string) { w.lapse("/docs/_lock/doc/b") },
		"and is held anew": func(w *undoWorld, _ string) {
			w.lapse("/docs/_lock/doc/b")
			w.ask(201, "PUT", "/docs/_lock/doc/b?owner=next&wait=20s", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, enginetest.Serve(t), "")
			w.fill("a", "b")
			answer, tokens := w.lockDocs("a", "b")
			w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, tokens[0]...)
			end(w, answer.Raw)
			for range 2 {
				r := w.ask(200, "POST", "/docs/_lock/docs/_rollback?wait=5m", answer.Raw)
				if r.Raw != `{"count":2,"left":0,"released":true,"undone":true}` {
					t.Error(r)
				}
			}
			w.changed(false, "a", "b")
			w.ask(201, "PUT", "/docs/_lock/doc/a?owner=next&wait=0s", "")
			if r := w.ask(410, "DELETE", "/docs/_lock/docs", answer.Raw); !r.Get("error.undone").Bool() {
				t.Error(r)
			}
		})
	}
}

func TestALockOfSeveralMayBeAskedForAgain(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.fill("a", "b", "c")
	answer, tokens := w.lockDocs("a", "b")
	again, same := w.lockDocs("a", "b")
	if again.Get("locks").Raw != answer.Get("locks").Raw || same[1][1] != tokens[1][1] {
		t.Errorf("%s are others than %s", again, answer)
	}
	if one := w.ask(200, "PUT", "/docs/_lock/doc/b?owner=one&undo=true", ""); one.Get("token").Raw != tokens[1][1] {
		t.Errorf("%s isn't the lease that is held", one)
	}
	r := w.ask(409, "POST", "/docs/_lock/docs", `{"owner":"one","undo":true,"ids":["b","c"]}`)
	if reason := r.Get("error.reason").Str; !strings.Contains(reason, "held with undo already") {
		t.Errorf("the reason is %q", reason)
	}
	w.ask(201, "PUT", "/docs/_lock/doc/c?owner=next&wait=0s", "") // it isn't kept
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, tokens[0]...)
	w.ask(200, "DELETE", "/docs/_lock/docs", answer.Raw)
	w.changed(true, "a")
}

func TestWritesUnderAThousandLocksAreUndone(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	var ids []string
	var bulk, changes strings.Builder
	for i := range 1200 {
		ids = append(ids, fmt.Sprint(i))
		fmt.Fprintf(&bulk, `{"index":{"_id":"%d"}}`+"\n"+`{ "n": 0.10 }`+"\n", i)
		fmt.Fprintf(&changes, `{"index":{"_id":"%d"}}`+"\n"+`{"n":1}`+"\n", i)
	}
	w.ask(200, "POST", "/docs/_bulk", bulk.String(), "Content-Type", "application/x-ndjson")
	answer, tokens := w.lockDocs(ids...)
	if r := w.ask(200, "POST", "/docs/_bulk", changes.String(), append(tokens[700], "Content-Type", "application/x-ndjson")...); r.Get("errors").Bool() {
		t.Fatal(r)
	}
	w.changed(true, ids[:3]...)
	w.ask(200, "POST", "/docs/_lock/docs/_rollback?wait=5m", answer.Raw)
	w.changed(false, ids...)
	w.ask(201, "POST", "/docs/_lock/docs", fmt.Sprintf(`{"owner":"next","wait":"0s","ids":["%s"]}`, strings.Join(ids, `","`)))
}

func TestDocumentsWithEnforcedLocksAreUndone(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "rules: [{name: docs, match: {index: [docs]}, locks: enforce}]\n")
	w.fill("a", "b")
	answer := w.ask(201, "POST", "/docs/_lock/docs", `{"owner":"one","ttl":"10m","undo":true,"fence":"touch","ids":["a","b"]}`)
	w.ask(423, "PUT", "/docs/_doc/a", `{"n":9}`)
	for i, id := range []string{"a", "b"} {
		w.ask(200, "PUT", "/docs/_doc/"+id, `{"n":1}`, "Optimist-Lock-Token", answer.Get(fmt.Sprintf("locks.%d.token", i)).Raw)
	}
	w.lapse("/docs/_lock/doc/a")
	w.ask(201, "PUT", "/docs/_lock/doc/a?owner=next&wait=20s", "")
	w.changed(false, "a", "b")
}

func TestWhatTheOperatorHasEndedIsntSaidToStay(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.fill("a")
	token, field := w.lock("/docs/_lock/doc/a", "one", "")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
	w.lapse("/docs/_lock/doc/a")
	w.ask(201, "PUT", "/docs/_lock/doc/a?owner=next&wait=20s", "")
	w.changed(false, "a")
	w.ask(410, "DELETE", "/docs/_lock/doc/a?owner=one&token="+token, "")
}

func TestTheGuidesLocksArentCommittedByOurRequests(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "locks: {compat: {index: docs, type: lock}}\n")
	for _, target := range []string{"/docs/_lock/doc/a/_commit?owner=o&token=1", "/docs/_lock/doc/a/_rollback?wait=5m&owner=o&token=1"} {
		if r := w.ask(403, "POST", target, ""); r.Get("error.type").Str != "lock_reserved" {
			t.Errorf("%s: %s", target, r)
		}
	}
}

func TestTheJournalOfSeveralLocksIsShownByEachOfThem(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.fill("a", "b", "c")
	_, tokens := w.lockDocs("a", "b", "c")
	w.ask(200, "PUT", "/docs/_doc/c", `{"n":1}`, tokens[2]...)
	if got := w.listed(""); got != "/docs/_lock/doc/a open" {
		t.Errorf("%s is listed", got)
	}
	for _, id := range []string{"a", "b", "c"} {
		r := w.operate(200, "/docs/_lock/doc/"+id)
		if r.Get("journals.#").Int() != 1 || r.Get("journals.0.locks").Int() != 3 || r.Get("entries.0.id").Str != "c" {
			t.Errorf("%s: %s", id, r)
		}
	}
}

// TestAnOwnerWhoseWritesAreUndoneGetsTheLocksAgain: one of its leases has ended, and so what it wrote under all of them is undone. It comes back
// by the same name while it still has the others. Under those nothing can be written any more.
func TestAnOwnerWhoseWritesAreUndoneGetsTheLocksAgain(t *testing.T) {
	all := func(w *undoWorld, undo string) string {
		r := w.ask(201, "POST", "/docs/_lock/docs", `{"owner":"one","wait":"0s","undo":`+undo+`,"ids":["a","b","c"]}`)
		w.changed(false, "b")
		return r.Get(`locks.#(id=="b").token`).Raw
	}
	for name, asks := range map[string]func(w *undoWorld, undo string) (token string){
		"with others":        all,
		"with others, first": all,
		"alone": func(w *undoWorld, undo string) string {
			return w.ask(201, "PUT", "/docs/_lock/doc/b?owner=one&wait=0s&undo="+undo, "").Get("token").Raw
		},
	} {
		for _, undo := range []string{"true", "false"} {
			t.Run(name+", undo: "+undo, func(t *testing.T) {
				w := newUndoWorld(t, enginetest.Serve(t), "")
				w.fill("a", "b", "c")
				_, tokens := w.lockDocs("a", "b", "c")
				w.ask(200, "PUT", "/docs/_doc/b", `{"n":1}`, tokens[1]...)
				w.lapse("/docs/_lock/doc/a")
				if name != "with others, first" { // else its own request has that undone
					next := w.ask(201, "PUT", "/docs/_lock/doc/a?owner=next&wait=20s", "").Get("token").Raw
					w.changed(false, "b")
					w.ask(200, "DELETE", "/docs/_lock/doc/a?owner=next&token="+next, "")
				}
				token := asks(w, undo)
				if token == tokens[1][1] {
					t.Error("it has the same lease as before")
				}
				w.ask(200, "PUT", "/docs/_doc/b", `{"n":1}`, "Optimist-Lock-Token", token)
				w.ask(410, "PUT", "/docs/_doc/b", `{"n":2}`, tokens[1]...)
				w.changed(true, "b")
			})
		}
	}
}

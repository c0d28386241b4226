package app

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"optimist/internal/enginetest"
	"optimist/internal/rule"
)

// questions is an engine that counts how often it was asked what a name stands for.
type questions struct {
	mu    sync.Mutex
	names []string
	fail  bool // they are answered 503
}

func (q *questions) asked() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	names := q.names
	q.names = nil
	return names
}

// newQuestionedWorld is a world whose engine counts questions.
func newQuestionedWorld(t *testing.T, rules string) (*world, *questions) {
	t.Helper()
	q := &questions{}
	return newWorldOn(t, rules, Identity{Infer: true}, enginetest.Between(t, enginetest.Serve(t), q.note)), q
}

// note counts a question, and answers it if it is to fail.
func (q *questions) note(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || strings.Count(r.URL.EscapedPath(), "/") != 1 || len(r.URL.Path) < 2 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.names = append(q.names, r.URL.Path[1:]); q.fail {
		http.Error(w, `{"error":{"type":"master_not_discovered_exception"},"status":503}`, http.StatusServiceUnavailable)
	}
	return q.fail
}

func TestAnAliasIsGuardedByTheRuleOfItsIndex(t *testing.T) {
	w, q := newQuestionedWorld(t, `
rules:
  - {name: concrete, match: {index: [shop-v1], ops: [index]}, merge: {paths: {/n: sum}}}
  - {name: other, match: {index: [x], headers: {X-A: "1"}}}
`)
	w.put("/shop-v1/_doc/1", `{"n":1}`)
	w.put("/plain/_doc/1", `{"n":1}`)
	if a := w.ask(w.direct, "PUT", "/shop-v1/_alias/shop", ""); a.Status != 200 {
		t.Fatal(a)
	}
	if a := w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "a"); a.Header.Get("ETag") == "" {
		t.Errorf("a read by the alias has no ETag: %d %s %v", a.Status, a.Body, a.Header)
	}
	if a := w.ask(w.proxied, "GET", "/plain/_doc/1", "", "Optimist-Session", "a"); a.Header.Get("ETag") != "" {
		t.Error("a read that no rule watches has an ETag")
	}
	if asked := q.asked(); len(asked) != 0 {
		t.Errorf("reads asked what names stand for: %v", asked)
	}
	w.put("/shop-v1/_doc/1", `{"n":5}`)
	w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, "Optimist-Session", "a"), 200, "merged")
	if got := w.stored("/shop-v1/_doc/1"); got != `{"n":6}` {
		t.Errorf("stored is %s", got)
	}
	w.wants(w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "a"), 200, "")
	w.wants(w.ask(w.proxied, "PUT", "/shop-v1/_doc/1", `{"n":7}`, "Optimist-Session", "a"), 200, "guarded")
	for range 3 {
		w.wants(w.ask(w.proxied, "PUT", "/plain/_doc/1", `{"n":2}`), 200, "")
	}
	if a := w.ask(w.proxied, "PUT", "/plain/_doc/1", `{"n":2}`); a.Outcome() != "" {
		t.Errorf("what no rule takes has the outcome %s", a.Outcome())
	}
	names := q.asked()
	if counted := strings.Join(names, " "); strings.Count(counted, "plain") != 1 || strings.Count(counted, "shop-v1") != 1 || len(names) != 3 {
		t.Errorf("asked were %v, want each name once", names)
	}
}

func TestWhatNoRuleCanTakeAsksNothing(t *testing.T) {
	w, q := newQuestionedWorld(t, "rules: [{name: a, match: {index: [a], ops: [delete]}}, {name: b, match: {index: [b], headers: {X-B: y}}}]")
	for _, target := range []string{"/a/_doc/1", "/x/_doc/1", "/b/_doc/1"} {
		if a := w.ask(w.proxied, "PUT", target, `{"n":1}`, "X-B", "n"); a.Status != 201 || a.Outcome() != "" {
			t.Errorf("%s: %d %s", target, a.Status, a.Outcome())
		}
	}
	if asked := q.asked(); len(asked) != 0 {
		t.Errorf("asked were %v", asked)
	}
	w.ask(w.proxied, "PUT", "/x/_doc/1", `{"n":1}`, "X-B", "y")
	if asked := q.asked(); len(asked) != 1 {
		t.Errorf("asked were %v", asked)
	}
}

func TestWhatMayBeAnAliasIsNotLetThroughWhenNobodyCanSay(t *testing.T) {
	w, q := newQuestionedWorld(t, "rules: [{name: a, match: {index: [a]}}]")
	q.fail = true
	if a := w.ask(w.proxied, "PUT", "/x/_doc/1", `{"n":1}`); a.Status != 503 || !strings.Contains(a.Body, "can't be asked what [x] is") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	if a := w.ask(w.direct, "GET", "/x/_doc/1", ""); a.Status != 404 {
		t.Errorf("it was written: %s", a.Body)
	}
	w.app.rules.SetMode(0)
	if a := w.ask(w.proxied, "PUT", "/x/_doc/1", `{"n":1}`); a.Status != 201 {
		t.Errorf("with the mode off: %d %s", a.Status, a.Body)
	}
	w.app.rules.SetMode(1)
	if a := w.ask(w.proxied, "PUT", "/x/_doc/1", `{"n":1}`); a.Status != 200 {
		t.Errorf("with the mode observe: %d %s", a.Status, a.Body)
	}
}

func TestDateExpressionsAreGuardedByTheRuleOfTheirIndex(t *testing.T) {
	w, _ := newQuestionedWorld(t, "rules: [{name: logs, match: {index: ['app-*']}, base: {unknown: fetch}}, {name: rest, match: {index: ['*', '-web-*']}, base: {unknown: reject}}]")
	expr := func(prefix string) string { return "/%3C" + prefix + "-%7Bnow%2Fd%7D%3E/_doc/1" }
	w.wants(w.ask(w.proxied, "PUT", expr("app"), `{"n":1}`), 201, "guarded")
	w.wants(w.ask(w.proxied, "PUT", expr("app"), `{"n":2}`), 200, "guarded")
	w.wants(w.ask(w.proxied, "PUT", expr("other"), `{"n":2}`), 428, "")
	if a := w.ask(w.proxied, "PUT", expr("web"), `{"n":1}`); a.Status != 201 || a.Outcome() != "" {
		t.Errorf("what is taken out is taken: %d %s", a.Status, a.Outcome())
	}
}

func TestManyDocumentsAreRememberedByTheRuleOfTheirIndex(t *testing.T) {
	w, q := newQuestionedWorld(t, "rules: [{name: a, match: {index: [shop-v1], ops: [index]}}]")
	w.put("/shop-v1/_doc/1", `{"n":1,"m":1}`)
	if a := w.ask(w.direct, "PUT", "/shop-v1/_alias/shop", ""); a.Status != 200 {
		t.Fatal(a)
	}
	w.ask(w.proxied, "GET", "/shop/_mget", `{"ids":["1"]}`, "Optimist-Session", "a")
	if asked := q.asked(); len(asked) != 0 {
		t.Errorf("asked were %v", asked)
	}
	w.put("/shop-v1/_doc/1", `{"n":1,"m":2}`)
	w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2,"m":1}`, "Optimist-Session", "a"), 200, "merged")
	if got := w.stored("/shop-v1/_doc/1"); got != `{"n":2,"m":2}` {
		t.Errorf("stored is %s", got)
	}
}

func TestWhatWasKnownBeforeOffIsNoBaseAfterIt(t *testing.T) {
	const off, on = "rules:\n- {name: r, mode: off, match: {index: [shop]}}\n", "rules:\n- {name: r, match: {index: [shop]}}\n"
	set := func(w *world, rules string) {
		w.app.rules.SetRules(compiled(t, configured(t, rules, w.direct)))
	}
	for name, c := range map[string]struct{ off, on func(w *world) }{
		"of the whole": {func(w *world) { w.app.rules.SetMode(rule.Off) }, func(w *world) { w.app.rules.SetMode(rule.Guard) }},
		"to observe first": {func(w *world) { w.app.rules.SetMode(rule.Off) }, func(w *world) {
			w.app.rules.SetMode(rule.Observe)
			w.app.rules.SetMode(rule.Guard)
		}},
		"of a rule": {func(w *world) { set(w, off) }, func(w *world) { set(w, on) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, on, Identity{Infer: true, Address: true})
			w.put(doc1, `{"log":["a"]}`)
			for _, who := range []string{"me", ""} {
				w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", who)
				w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`, "Optimist-Session", who), 200, "guarded;attempts=1;base=session")
			}
			c.off(w)
			w.put(doc1, `{"log":["a","b"]}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "me") // unseen: what is written from it isn't based on anything from before
			w.ask(w.proxied, "GET", "/shop/_doc/2", "")
			c.on(w)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b","c"]}`, "Optimist-Session", "me"), 200, "passed;attempts=1;base=lost;reason=index")
			if got := w.stored(doc1); got != `{"log":["a","b","c"]}` {
				t.Errorf("stored %s", got)
			}
			// Who overwrites what it read meanwhile is no blind writer.
			w.put("/shop/_doc/2", `{}`)
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/2", `{"a":1}`), 200, "passed;attempts=1;base=lost;reason=restart")
			w.ask(w.proxied, "GET", doc1, "")
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":[]}`), 200, "guarded;attempts=1;base=session")
		})
	}
}

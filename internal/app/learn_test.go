package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"optimist/internal/learn"
	"optimist/internal/rule"
)

// fight has two named clients read a document, and both write it.
func (w *world) fight(target, base, one, other string) {
	w.t.Helper()
	w.put(target, base)
	for _, name := range []string{"one", "other"} {
		w.ask(w.proxied, "GET", target, "", "Optimist-Session", name)
	}
	for name, body := range map[string]string{"one": one, "other": other} {
		if a := w.ask(w.proxied, "PUT", target, body, "Optimist-Session", name); a.Status != 200 {
			w.t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
}

// suggests holds what is suggested for the index shop, as in "/n sum".
func (w *world) suggests(want string) {
	w.t.Helper()
	var s learn.Suggestions
	text, err := json.Marshal(w.app.suggestions("shop"))
	if err != nil || json.Unmarshal(text, &s) != nil {
		w.t.Fatal(err, string(text))
	}
	var list []string
	for _, ix := range s.Indices {
		for _, p := range ix.Paths {
			if p.Configured == "" {
				list = append(list, p.Path+" "+p.Strategy)
			}
		}
	}
	if got := strings.Join(list, ", "); got != want {
		w.t.Errorf("%q is suggested, want %q", got, want)
	}
}

// What guarding would merge teaches as much in observe mode, where nothing is merged.
func TestConflictsTeachInGuardAndInObserve(t *testing.T) {
	for mode, outcome := range map[rule.Mode]string{rule.Guard: "merged", rule.Observe: "lost"} {
		t.Run(mode.String(), func(t *testing.T) {
			w := newWorld(t, "", Identity{})
			w.app.rules.SetMode(mode)
			for i := range 3 {
				w.fight(fmt.Sprintf("/shop/_doc/%d", i), `{"n":1,"s":"a","own":1}`, `{"n":2,"s":"b","own":1}`, `{"n":2,"s":"c","own":1}`)
			}
			w.suggests("/n sum, /s ")
			if n := w.counted("optimist_equal_moves_total", "index", "shop"); n != 3 {
				t.Errorf("%d equal moves are counted", n)
			}
			hot, _ := json.Marshal(w.app.hot(1))
			for _, want := range []string{`"index":"shop"`, `"conflicts":1`, `{"name":"/n","conflicts":1,"strategy":"sent"}`, `{"name":"` + outcome + `","conflicts":1}`} {
				if !strings.Contains(string(hot), want) {
					t.Errorf("%s isn't in %s", want, hot)
				}
			}
			if strings.Contains(string(hot), `"one`) || strings.Contains(string(hot), "other") {
				t.Errorf("clients are named: %s", hot)
			}
		})
	}
}

func TestARuleEndsTheQuestion(t *testing.T) {
	w := newWorld(t, "rules: [{name: shop, match: {index: [shop]}, merge: {paths: {/n: sum, /s: sent}}}]", Identity{})
	for i := range 3 {
		w.fight(fmt.Sprintf("/shop/_doc/%d", i), `{"n":1,"s":1}`, `{"n":2,"s":2}`, `{"n":2,"s":2}`)
	}
	w.suggests("")
	if n := w.counted("optimist_equal_moves_total"); n != 0 {
		t.Errorf("%d equal moves are counted", n)
	}
}

// A rule may name an alias, and clients, too; what is learnt is the index's own.
func TestARuleForAnAliasIsARule(t *testing.T) {
	for _, named := range []string{"shop", "goods"} {
		w := newWorld(t, "rules: [{name: r, match: {index: ["+named+"]}, merge: {paths: {/n: sum}}}]", Identity{})
		w.put("/shop/_doc/0", "{}")
		if a := w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"goods"}}]}`); a.Status != 200 {
			t.Fatal(a)
		}
		for i := range 3 {
			w.fight(fmt.Sprintf("/goods/_doc/%d", i), `{"n":1,"m":1}`, `{"n":2,"m":2}`, `{"n":2,"m":2}`)
		}
		w.suggests("/m sum")
	}
}

func TestADryRunTeachesNothing(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put("/shop/_doc/1", `{"n":1}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "a")
	w.put("/shop/_doc/1", `{"n":2}`)
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, "Optimist-Session", "a", "Optimist-Dry-Run", "true"); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if hot, _ := json.Marshal(w.app.hot(9)); string(hot) != "[]" {
		t.Errorf("%s", hot)
	}
}

func TestClientsAreShownIfTheConfigurationSaysSo(t *testing.T) {
	w := newWorld(t, "learning: {clients: shown}", Identity{})
	w.fight("/shop/_doc/1", `{"n":1}`, `{"n":2}`, `{"n":3}`)
	if hot, _ := json.Marshal(w.app.hot(9)); !strings.Contains(string(hot), `"name":"one"`) && !strings.Contains(string(hot), `"name":"other"`) {
		t.Errorf("%s", hot)
	}
}

func TestWritesOfWhatWasNeverReadAreCountedByIndex(t *testing.T) {
	for _, mode := range []rule.Mode{rule.Guard, rule.Observe} {
		w := newWorld(t, "", Identity{Infer: true, Address: true})
		w.app.rules.SetMode(mode)
		w.put(doc1, `{"n":0}`)
		for i := range 3 {
			w.ask(w.proxied, "PUT", "/shop/_doc/1", fmt.Sprintf(`{"n":%d}`, i))
			w.ask(w.proxied, "PUT", "/shop/_doc/made", fmt.Sprintf(`{"n":%d}`, i)) // what a client has made it has seen
		}
		if n := w.counted("optimist_blind_writes_total", "index", "shop"); n != 3 {
			t.Errorf("%v: %d of 6 writes are counted, of which 3 overwrote what was never read", mode, n)
		}
	}
}

// The first rule that names an index is often one for some clients alone. Suggestions, and the strategies beside hot paths, were about that
// rule, whoever had met.
func TestSuggestionsAreForTheRuleThatTookTheWrites(t *testing.T) {
	const some = "{name: jobs, match: {index: [shop], headers: {X-Job: '*'}}, on_conflict: fail}, "
	w := newWorld(t, "rules: ["+some+"{name: shop, match: {index: [shop]}, merge: {paths: {/n: sum}}}, {name: rest}]", Identity{})
	for i := range 3 {
		w.fight(fmt.Sprintf("/shop/_doc/%d", i), `{"n":1}`, `{"n":2}`, `{"n":2}`)
	}
	w.suggests("")
	if hot, _ := json.Marshal(w.app.hot(1)); !strings.Contains(string(hot), `{"name":"/n","conflicts":1,"strategy":"sum"}`) {
		t.Errorf("another rule's strategy is shown: %s", hot)
	}
}

// A rule that a reload puts before the one that took the writes takes the next ones: the suggestions are about the new rule.
func TestSuggestionsAreForTheRuleThatTakesTheWritesNow(t *testing.T) {
	w := newWorld(t, "rules: [{name: rest}]", Identity{})
	for i := range 3 {
		w.fight(fmt.Sprintf("/shop/_doc/%d", i), `{"n":1}`, `{"n":2}`, `{"n":2}`)
	}
	w.suggests("/n sum")
	next := configured(t, "rules: [{name: shop, match: {index: [shop]}, merge: {paths: {/n: sum}}}, {name: rest}]", "http://127.0.0.1:1")
	w.app.Reload(next, compiled(t, next))
	w.suggests("")
}

// A reload may give the rule that took the writes another name. The index is suggested once, by what its rule learns under the new
// name: a second rule for the index would never apply.
func TestAnIndexIsSuggestedOnceWhateverItsRuleWasCalled(t *testing.T) {
	w := newWorld(t, "rules: [{name: b}]", Identity{})
	for _, name := range []string{"b", "c", "a"} {
		next := configured(t, "rules: [{name: "+name+"}]", "http://127.0.0.1:1")
		w.app.Reload(next, compiled(t, next))
		for i := range 3 {
			w.fight(fmt.Sprintf("/shop/_doc/%s%d", name, i), `{"`+name+`":1}`, `{"`+name+`":2}`, `{"`+name+`":2}`)
		}
		w.suggests("/" + name + " sum")
	}
}

// The alert for values that clients take from each other can be ended by the rule: sent says that this is meant.
func TestOverwrittenValuesCountUntilTheRuleSaysSent(t *testing.T) {
	for paths, want := range map[string]int{"{}": 2, "{/s: sent}": 1, "{/s: sent, /o: sent}": 0, "{/o/*: sent}": 1} {
		w := newWorld(t, "rules: [{name: shop, match: {index: [shop]}, merge: {paths: "+paths+"}}]", Identity{})
		w.fight("/shop/_doc/1", `{"s":"a","o":{"k":1}}`, `{"s":"b","o":{"k":2}}`, `{"s":"c","o":{"k":3}}`)
		if n := w.counted("optimist_overwritten_paths_total"); n != want {
			t.Errorf("%s: %d are counted, want %d", paths, n, want)
		}
	}
}

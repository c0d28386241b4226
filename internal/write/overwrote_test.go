package write

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"optimist/internal/learn"
)

const (
	sumOfN = "rules:\n- name: shop\n  match: {index: [shop]}\n  merge: {paths: {/n: sum}}\n"
	setsT  = "  transform: [{op: default, path: /t, value: 1}]\n" // of the rule sumOfN
)

// Whatever way a write takes to the engine, it names the values of others that it replaces. Its client hasn't seen them.
func TestEveryWriteNamesWhatItOverwrites(t *testing.T) {
	for _, transform := range []string{"", setsT} {
		for name, c := range map[string]struct {
			method, target, body, want, overwrote string
		}{
			"a document":          {"PUT", "/shop/_doc/1", `{"n":5,"st":"b"}`, `{"n":6,"st":"b"}`, "/st"},
			"a part":              {"POST", "/shop/_update/1", `{"doc":{"n":5,"st":"b"}}`, `{"n":6,"st":"b"}`, "/st"},
			"a part with the sum": {"POST", "/shop/_update/1", `{"doc":{"n":5}}`, `{"n":6,"st":"a"}`, ""},
			"a part, unchanged":   {"POST", "/shop/_update/1", `{"doc":{"st":""}}`, `{"n":1,"st":"a"}`, ""},
			"a part that agrees":  {"POST", "/shop/_update/1", `{"doc":{"st":"a"}}`, `{"n":1,"st":"a"}`, ""},
			"a delete":            {"DELETE", "/shop/_doc/1", "", "", "/"},
			"a delete, waiting":   {"DELETE", "/shop/_doc/1", "", "", "/"},
		} {
			t.Run(name+strings.Repeat(", transformed", min(len(transform), 1)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, sumOfN+transform)
					var met []learn.Conflict
					w.start(Options{Events: Events{Collision: func(l *learn.Conflict) { met = append(met, *l) }}})
					w.put("1", `{"n":0,"st":""}`)
					w.warm("1")
					met = nil
					a, b := w.client("a"), w.client("b")
					a.read("1")
					b.read("1")
					first := func() result { return a.send("POST", "/shop/_update/1", `{"doc":{"n":1,"st":"a"}}`) }
					second := func() result { return b.send(c.method, c.target, c.body) }
					var r result
					if strings.HasSuffix(name, "waiting") {
						r = w.queued(2, func(i int) result { return []func() result{first, second}[i]() })[1]
					} else {
						has(t, first(), 200, "guarded")
						r = second()
					}
					has(t, r, 200, "merged")
					_, rest, _ := strings.Cut(r.outcome, ";base=session")
					if want := `;overwrote="` + c.overwrote + `"`; c.overwrote == "" && rest != "" || c.overwrote != "" && rest != want {
						t.Errorf("got %v, want %s", r, want)
					}
					if c.want == "" {
						return
					}
					same(t, w.stored("1"), c.want[:len(c.want)-1]+strings.Repeat(`,"t":1`, min(len(transform), 1))+"}")
					if len(met) != 1 || string(met[0].Base) != `{"n":0,"st":""}` || !strings.Contains(string(met[0].Current), `"a"`) {
						t.Errorf("learnt of %d conflicts: %+v", len(met), met)
					}
				})
			})
		}
	}
}

func TestADryRunOfATransformedPartShowsWhatIsMerged(t *testing.T) {
	w := newWorld(t, sumOfN+setsT)
	w.put("1", `{"n":0,"st":""}`)
	c := w.client("c")
	c.read("1")
	w.put("1", `{"n":1,"st":"a"}`)
	a := c.account("POST", "/shop/_update/1", `{"doc":{"n":5,"st":"b"}}`)
	var decisions []string
	for _, d := range a.Merge {
		decisions = append(decisions, d.Path+" "+d.Decision+" "+string(d.Base)+" "+string(d.Sent)+" "+string(d.Current)+" "+string(d.Result))
	}
	if want := []string{`/n sum 0 5 1 6`, `/st overwritten "" "b" "a" "b"`}; !slices.Equal(decisions, want) {
		t.Errorf("decisions %q, want %q", decisions, want)
	}
	if !strings.Contains(string(a.Change), `{"op":"replace","path":"/n","value":5}`) {
		t.Errorf("the client's change is %s", a.Change)
	}
	if a.Outcome.Field != `merged;attempts=1;base=session;overwrote="/st"` {
		t.Errorf("outcome %s", a.Outcome.Field)
	}
}

// A client that wrote a copy without the rule's own field had it named at every conflict, and an alert said that a strategy is missing.
func TestWhatTheRuleSetsIsNotOverwritten(t *testing.T) {
	for name, c := range map[string]struct{ transform, want string }{
		"the time":              {"{op: now, path: /t, format: epoch_millis}", `"/o/x","/st"`},
		"a value":               {"{op: add, path: /t, value: 1}", `"/o/x","/st"`},
		"all of an object":      {"{op: add, path: /o, value: {}}", `"/st","/t"`},
		"each member":           {`{op: replace, path: "/o/*", value: 1}, {op: now, path: /t, format: epoch_millis}`, `"/st"`},
		"only if":               {`{op: now, path: /t, format: epoch_millis, when: "candidate.n > 0"}`, `"/o/x","/st","/t"`},
		"only what is missing":  {"{op: default, path: /t, value: 1}", `"/o/x","/st","/t"`},
		"what the client sends": {"{op: add, path: /t, value: {from: incoming, path: /t}}", `"/o/x","/st","/t"`},
		"what the rule adds up": {"{op: increment, path: /t, value: 1}", `"/o/x","/st","/t"`},
		"something else":        {"{op: now, path: /other}", `"/o/x","/st","/t"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "rules:\n- name: shop\n  match: {index: [shop]}\n  transform: ["+c.transform+"]\n")
			w.put("1", `{"n":0,"o":{"x":0},"st":"","t":5}`)
			a := w.client("a")
			a.read("1")
			w.put("1", `{"n":0,"o":{"x":1},"st":"b","t":6}`)
			r := a.send("PUT", "/shop/_doc/1", `{"n":1,"o":{"x":2},"st":"a"}`)
			has(t, r, 200, "merged")
			_, got, _ := strings.Cut(r.outcome, ";overwrote=")
			paths := strings.Split(strings.Trim(got, `"`), " ")
			slices.Sort(paths)
			if got := `"` + strings.Join(paths, `","`) + `"`; got != c.want {
				t.Errorf("%s: overwrote %s, want %s", r.outcome, got, c.want)
			}
		})
	}
}

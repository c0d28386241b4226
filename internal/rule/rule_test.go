package rule

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimist/internal/api"
	"optimist/internal/condition"
	"optimist/internal/config"
	"optimist/internal/rank"
	"optimist/rewrite/edit"
)

// compiled reads a configuration and compiles its rules.
func compiled(t testing.TB, yaml string) (*config.Config, *Set) {
	t.Helper()
	c, err := config.Parse("t.yaml", []byte(yaml), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := FromConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func name(r *Rule) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func TestWithNoRulesOneTakesWhatCanBeGuarded(t *testing.T) {
	_, s := compiled(t, "")
	for index, want := range map[string]string{
		"shop": "default", "logstash": "default", "optimistic": "default", "a.b": "default", "log-2026": "default",
		".kibana_1": "", ".ds-logs-x": "", "logs-nginx": "", "metrics-cpu": "", "traces-apm": "", "optimist-locks": "", "optimist-dead-letters": "",
	} {
		if got := name(s.Match(index, api.Index)); got != want {
			t.Errorf("%s is taken by %q, want %q", index, got, want)
		}
	}
	if r := s.Match("shop", api.Delete); !r.AnyIndex || !r.IfMatch || !r.Session || r.RetryOnConflict != 3 || r.Merger == nil || r.HasStrategies {
		t.Errorf("the built-in rule is %+v", r)
	}
}

func TestTheFirstRuleThatMatchesWins(t *testing.T) {
	_, s := compiled(t, `
rules:
  - {name: deletes, match: {index: ["orders-*"], ops: [delete]}, base: {reads: []}}
  - {name: orders, match: {index: ["orders-*", "-orders-old-*", shop], ops: [index, delete]}, base: {reads: [search]}}
  - {name: hidden, match: {index: [".app-*"]}}
  - {name: rest, base: {reads: [get]}}
`)
	for _, c := range []struct {
		index string
		kind  api.Kind
		want  string
	}{
		{"orders-1", api.Delete, "deletes"},
		{"orders-1", api.Index, "orders"},
		{"orders-1", api.IndexAuto, "orders"},
		{"orders-1", api.Create, "rest"},
		{"orders-1", api.Update, "rest"},
		{"orders-1", api.Patch, "rest"},
		{"orders-old-1", api.Index, "rest"},
		{"orders-old-1", api.Delete, "deletes"},
		{"shop", api.Delete, "orders"},
		{".app-1", api.Index, "hidden"},
		{".other", api.Index, ""},
		{"logs-x", api.Index, ""},
		// reads: the first rule of the index that watches them
		{"orders-1", api.Search, "orders"},
		{"orders-1", api.Get, "rest"},
		{"orders-1", api.Source, "rest"},
		{"orders-1", api.Mget, ""},
		{".app-1", api.Mget, "hidden"},
		{"other", api.Search, ""},
		{"orders-1", api.Bulk, ""},
		{"orders-1", api.Other, ""},
	} {
		if got := name(s.Match(c.index, c.kind)); got != c.want {
			t.Errorf("%s of %s is taken by %q, want %q", c.kind, c.index, got, c.want)
		}
	}
	if !s.Takes(api.Search) || s.Takes(api.Bulk) {
		t.Error("Takes is wrong")
	}
}

func TestEveryKeyReachesItsRule(t *testing.T) {
	_, s := compiled(t, `
rules:
  - name: all
    match: {index: [a]}
    mode: observe
    base: {from: [stamp, session], stamp: _rev, explicit: merge, unknown: fetch, lost: reject, ambiguous: fail}
    merge: {default: current, paths: {/a: sum, /l: {by_key: id}}}
    transform: [{op: increment, path: /n, value: 1, when: current == null}, {op: max, path: /t, value: {from: now}, format: epoch_millis}]
    pipeline: rerun
    on_conflict: merge
    on_missing: recreate
    retry: {max_attempts: 5, max_elapsed: 3s, backoff: {base_interval: 10ms, max_interval: 1s}}
    retry_on_conflict: 7
    update: engine
    bulk: refuse
    rerun: true
    write_id: _writes
    priority: background
  - {name: fails, match: {index: [b]}, base: {unknown: reject, from: [if_match]}, on_conflict: fail}
  - {name: deletes, match: {index: [c]}, on_conflict: fail, on_delete_conflict: sent}
`)
	got := *s.All()[0]
	if got.Transform == nil || !got.Transform.ReadsCurrent() {
		t.Fatalf("the transform is %+v", got.Transform)
	}
	for current, want := range map[string]string{"": `{"n":2,"t":5000}`, `{"n":1}`: `{"n":1,"t":5000}`} {
		in := &edit.Inputs{Now: time.Unix(5, 0)}
		if current != "" {
			in.Current = []byte(current)
		}
		if made, err := got.Transform.Apply([]byte(`{"n":1,"t":1}`), in); err != nil || string(made) != want {
			t.Errorf("of a document where %q is stored the transform makes %s, %v; want %s", current, made, err, want)
		}
	}
	got.Merger, got.Transform, got.match = nil, nil, matcher{}
	want := Rule{Name: "all", Mode: Observe, FromStamp: true, Session: true, Stamp: "_rev", MergeExplicit: true, Unknown: UnknownFetch, RejectLost: true,
		FailAmbiguous: true, RerunPipeline: true, RecreateMissing: true, FailStaleDelete: true, EngineUpdates: true, Bulk: BulkRefuse, Rerun: true, WriteID: "_writes", Background: true,
		HasStrategies: true, Sums: true, Keys: rank.NewKeys([]string{"id"}), RetryOnConflict: 7,
		Retry: Retry{MaxAttempts: 5, MaxElapsed: 3 * time.Second, BaseInterval: 10 * time.Millisecond, MaxInterval: time.Second}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Rule{}, matcher{})); d != "" {
		t.Error(d)
	}
	if r := s.All()[1]; r.Unknown != UnknownReject || !r.IfMatch || r.Session || r.FromStamp || r.Transform != nil || !r.FailConflict || !r.FailStaleDelete || r.N != 1 {
		t.Errorf("fails is %+v", r)
	}
	if r := s.All()[2]; r.FailStaleDelete {
		t.Errorf("what is said of deletes isn't what counts: %+v", r)
	}
}

func TestPatternsMatchAsTheEngines(t *testing.T) {
	for _, c := range []struct {
		p, name string
		want    bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "a", true}, {"a*", "abc", true}, {"*", "", true}, {"*", "x", true}, {"*a", "ba", true},
		{"*a", "ab", false}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "abcd", false}, {"*ab*", "aab", true}, {"**", "x", true},
		{"*", ".x", false}, {".*", ".x", true}, {"*x", ".x", false}, {"", "", true}, {"", "a", false}, {"a*a", "a", false},
	} {
		if got := pattern(c.p).matches(c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.p, c.name, got)
		}
	}
}

// TestCoverAndMeetAgreeWithNames: what is said about all names of two patterns holds for each name that is tried.
func TestCoverAndMeetAgreeWithNames(t *testing.T) {
	glob := rapid.StringMatching(`[.]?[ab*]{0,5}`)
	word := rapid.StringMatching(`[.]?[ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		p, q := pattern(glob.Draw(t, "p")), pattern(glob.Draw(t, "q"))
		n := word.Draw(t, "name")
		inP, inQ := p.matches(n), q.matches(n)
		if inP && inQ && !p.meets(q) {
			t.Fatalf("%q is in both %q and %q, which are said not to meet", n, p, q)
		}
		if inQ && !inP && p.covers(q) {
			t.Fatalf("%q is in %q and not in %q, which is said to cover it", n, q, p)
		}
		if p.meets(q) != q.meets(p) {
			t.Fatalf("%q and %q don't meet from both sides", p, q)
		}
	})
}

func TestRulesThatNobodyReachesAreTold(t *testing.T) {
	c, _ := compiled(t, `rules:
  - name: part
    match: {index: ["a*", "-ab*"], ops: [index, delete]}
  - name: inside
    match: {index: [ac], ops: [index]}
  - name: excluded
    match: {index: [abc], ops: [index]}
  - name: otherops
    match: {index: [ac], ops: [update]}
  - name: half
    match: {index: [x, ac, "-q"], ops: [index]}
  - name: rest
    match: {index: ["*"]}
  - name: dotted
    match: {index: [".x"]}
  - name: never
    match: {index: ["orders-*", shop]}
  - name: again
  - name: nothing
    match: {index: [ab, "-a*", ".z"]}
`)
	var lines []string
	for _, p := range Lint(c) {
		lines = append(lines, p.String())
	}
	want := []string{
		`t.yaml:4:5: warning: rules[1]: rule inside is never reached: rule part above takes all its requests (the first rule that matches wins)`,
		`t.yaml:11:24: warning: rules[4].match.index[1]: "ac" never gets here: rule part above takes it`,
		`t.yaml:16:5: warning: rules[7]: rule never is never reached: rule rest above takes all its requests (the first rule that matches wins)`,
		`t.yaml:18:5: warning: rules[8]: rule again is never reached: rule rest above takes all its requests (the first rule that matches wins)`,
		`t.yaml:20:21: warning: rules[9].match.index[0]: "ab" takes nothing: "-a*" excludes all of it`,
	}
	if d := cmp.Diff(strings.Join(want, "\n"), strings.Join(lines, "\n")); d != "" {
		t.Error(d)
	}
	c, _ = compiled(t, "rules: [{name: a, transform: [{op: refuse, message: sold out, when: candidate.stock < 0}]}]")
	if found := Lint(c); len(found) != 1 || !strings.Contains(found[0].String(), "as in has(candidate.stock) && …, or write candidate.?stock") {
		t.Errorf("a condition that takes a field for granted: %v", found)
	}
	if c, _ := compiled(t, ""); len(Lint(c)) != 0 {
		t.Error("the built-in rule is judged")
	}
}

// A condition that takes a field for granted is told with what can be written in its place, unless a step before names the field.
func TestAConditionThatTakesAFieldForGrantedIsTold(t *testing.T) {
	const refuse = "{op: refuse, message: no, when: '%s'}"
	for when, want := range map[string]string{
		"candidate.stock < 0":                   "has(candidate.stock) && …, or write candidate.?stock",
		`candidate["@timestamp"] == 1`:          `"@timestamp" in candidate && …`,
		`request.headers["X-Job"] == "nightly"`: `"x-job" in request.headers && …`,
	} {
		step := fmt.Sprintf(refuse, when)
		c, _ := compiled(t, "rules: [{name: a, transform: ["+step+"]}]")
		if found := Lint(c); len(found) != 1 || !strings.Contains(found[0].String(), want) {
			t.Errorf("%s: %v", when, found)
		}
		if _, err := condition.Compile(strings.Split(strings.ReplaceAll(want, "…", "true"), ", or")[0]); err != nil {
			t.Errorf("the advice is no condition: %v", err)
		}
	}
	for _, before := range []string{"{op: default, path: /stock, value: 0}", fmt.Sprintf(refuse, "!has(candidate.stock)")} {
		c, _ := compiled(t, "rules: [{name: a, transform: ["+before+", "+fmt.Sprintf(refuse, "candidate.stock < 0")+"]}]")
		if found := Lint(c); len(found) != 0 {
			t.Errorf("after %s: %v", before, found)
		}
	}
	c, _ := compiled(t, "rules: [{name: a, match: {headers: {X-Job: '*'}}, transform: ["+
		fmt.Sprintf(refuse, `request.headers["x-job"] == "nightly"`)+"]}]")
	if found := Lint(c); len(found) != 0 {
		t.Errorf("a rule that takes only requests with the header: %v", found)
	}
}

// What a condition takes by .? is never null, however the comparison is written.
func TestAComparisonOfABoxWithNullIsTold(t *testing.T) {
	for when, want := range map[string]string{
		"candidate.?owner.?id == null":                       "write candidate.?owner.?id.orValue(null) == null",
		"null != candidate.?owner.id":                        "write candidate.?owner.id.orValue(null) != null",
		`candidate[?"owner"] == null`:                        `write candidate[?"owner"].orValue(null) == null`,
		"has(current.a) && (candidate.?a) == null":           "write candidate.?a.orValue(null) == null",
		"candidate.?owner.orValue(null) == null":             "",
		"candidate.?owner.orValue({}).?id.hasValue()":        "",
		`request.id == "candidate.?owner == null"`:           "",
		"current == null || candidate.?n.orValue(null) == 1": "",
	} {
		c, _ := compiled(t, "rules:\n- name: a\n  transform:\n  - op: refuse\n    message: no\n    when: '"+when+"'\n")
		found := Lint(c)
		if want == "" && len(found) != 0 || want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), want)) {
			t.Errorf("%s: %v", when, found)
		}
	}
}

func TestModesNarrowEachOther(t *testing.T) {
	_, s := compiled(t, "rules: [{name: g}, {name: o, mode: observe}, {name: x, mode: 'off'}]")
	w := NewSwitch(Guard, s)
	for _, whole := range []Mode{Guard, Observe, Off} {
		w.SetMode(whole)
		for _, r := range s.All() {
			if got := w.Effective(r); got != min(whole, r.Mode) {
				t.Errorf("%s and %s are %s", whole, r.Mode, got)
			}
		}
	}
	if w.Effective(nil) != Off {
		t.Error("what no rule takes is guarded")
	}
	for _, m := range []Mode{Guard, Observe, Off} {
		if again, ok := ParseMode(m.String()); !ok || again != m {
			t.Errorf("%s is read as %s", m, again)
		}
	}
	if _, ok := ParseMode("on"); ok {
		t.Error("on is a mode")
	}
}

func TestRulesChangeWhileOthersRead(t *testing.T) {
	_, a := compiled(t, "rules: [{name: a}]")
	_, b := compiled(t, "rules: [{name: b}]")
	w := NewSwitch(Guard, a)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if n := name(w.Rules().Match("x", api.Index)); n != "a" && n != "b" {
					t.Errorf("got rule %q", n)
					return
				}
			}
		})
	}
	for i := range 1000 {
		w.SetRules([]*Set{a, b}[i%2])
		w.SetMode(Mode(i % 3))
	}
	wg.Wait()
}

func TestMatchingAllocatesNothing(t *testing.T) {
	_, s := compiled(t, "rules: [{name: a, match: {index: ['a-*-b*', '-a-x*']}}, {name: b}]")
	if n := testing.AllocsPerRun(100, func() { s.Match("orders-2026", api.Index) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkMatchBuiltInRule(b *testing.B) {
	_, s := compiled(b, "")
	for b.Loop() {
		s.Match("orders-2026.08", api.Index)
	}
}

func TestWhoeverIsSeenAgainIsSaid(t *testing.T) {
	compile := func(rules string) *Set {
		_, s := compiled(t, "version: 1\nrules:\n"+rules)
		return s
	}
	const shop, off, other = "- {name: a, match: {index: [shop]}}\n", "- {name: a, mode: off, match: {index: [shop]}}\n", "- {name: b, match: {index: [b]}}\n"
	w := NewSwitch(Off, compile(shop))
	var said []bool
	w.OnResume(func(missed bool) { said = append(said, missed) })
	for _, c := range []struct {
		what   string
		change func()
		want   []bool
	}{
		{"observe after off", func() { w.SetMode(Observe) }, []bool{true}},
		{"guard after observe", func() { w.SetMode(Guard) }, nil},
		{"off", func() { w.SetMode(Off) }, nil},
		{"off again", func() { w.SetMode(Off) }, nil},
		{"guard after off", func() { w.SetMode(Guard) }, []bool{true}},
		{"the same rules", func() { w.SetRules(compile(shop)) }, nil},
		{"a rule off", func() { w.SetRules(compile(off)) }, nil},
		{"a rule on", func() { w.SetRules(compile(shop)) }, []bool{true}},
		{"one more", func() { w.SetRules(compile(shop + other)) }, []bool{false}},
		{"one less", func() { w.SetRules(compile(other)) }, nil},
	} {
		said = nil
		if c.change(); !slices.Equal(said, c.want) {
			t.Errorf("%s: %v, want %v", c.what, said, c.want)
		}
	}
}

// Whether a part that only sets values is stale, only its base tells.
func TestAPartNeedsABaseIfStaleWritesAreRefused(t *testing.T) {
	for yaml, want := range map[string][2]bool{ // whether it needs none: from a certain base, from an ambiguous one
		"rules: [{name: r}]":                                             {true, true},
		"rules: [{name: r, base: {ambiguous: fail}}]":                    {true, true},
		"rules: [{name: r, on_conflict: fail}]":                          {false, true},
		"rules: [{name: r, on_conflict: fail, base: {ambiguous: fail}}]": {false, false},
		"rules: [{name: r, merge: {paths: {/owner: fail}}}]":             {false, false},
	} {
		_, s := compiled(t, yaml)
		r := s.Match("shop", api.Update)
		for i, ambiguous := range []bool{false, true} {
			if got := r.NeedsNoBase([]byte(`{"owner":null}`), []byte(`{"owner":"x"}`), ambiguous); got != want[i] {
				t.Errorf("%s, ambiguous %t: %t", yaml, ambiguous, got)
			}
		}
		if r.NeedsNoBase([]byte(`{"owner":"x"}`), []byte(`{"owner":"x"}`), false) {
			t.Errorf("%s: a part that says what its base says", yaml)
		}
	}
}

package rewrite

import (
	"errors"
	"strings"
	"testing"
)

func TestRulesThatCannotBeMeantAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		def  Strategy
		rule PathRule
		want string
	}{
		"default for numbers":   {Sum, PathRule{Path: "/a"}, "must be sent, current or fail, not sum"},
		"unknown default":       {99, PathRule{Path: "/a"}, "not strategy(99)"},
		"no slash":              {Sent, PathRule{Path: "a"}, "is not a JSON Pointer"},
		"tilde at the end":      {Sent, PathRule{Path: "/a~"}, "~ must be followed by 0 or 1"},
		"tilde and two":         {Sent, PathRule{Path: "/a~2"}, "~ must be followed by 0 or 1"},
		"whole document":        {Sent, PathRule{Path: "", Strategy: Fail}, "set the default"},
		"unknown strategy":      {Sent, PathRule{Path: "/a", Strategy: 99}, "unknown strategy"},
		"by_key without a key":  {Sent, PathRule{Path: "/a", Strategy: ByKey}, "needs the name of the field"},
		"a key without by_key":  {Sent, PathRule{Path: "/a", Strategy: Union, Key: "id"}, "which only by_key uses"},
		"the same path twice":   {Sent, PathRule{Path: "/twice/*"}, "is given twice"},
		"the same, but escaped": {Sent, PathRule{Path: "/a~1b"}, "is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewMerger(c.def, []PathRule{{Path: "/twice/*", Strategy: Sum}, {Path: "/a~1b"}, c.rule})
			var e *RuleError
			if !errors.As(err, &e) || !strings.Contains(e.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestStrategyNamesAreReadAsTheyAreWritten(t *testing.T) {
	for s := Sent; s <= ByKey; s++ {
		if got, err := ParseStrategy(s.String()); err != nil || got != s {
			t.Errorf("%v became %v, %v", s, got, err)
		}
	}
	if _, err := ParseStrategy("Sum"); err == nil || !strings.Contains(err.Error(), "sum, max") {
		t.Errorf("got %v: it must name what would be right", err)
	}
}

// A rule's result must not depend on where in the file it stands.
func TestTheOrderOfRulesDoesNotMatter(t *testing.T) {
	rules := []PathRule{{Path: "/*", Strategy: Fail}, {Path: "/a", Strategy: Current}, {Path: "/*/x", Strategy: Sum}, {Path: "/a/*", Strategy: Max}}
	base, sent, current := `{"a":{"x":1,"y":1},"b":{"x":1}}`, `{"a":{"x":2,"y":2},"b":{"x":2}}`, `{"a":{"x":3,"y":3},"b":{"x":3}}`
	const want = `{"a":{"x":3,"y":3},"b":{"x":4}}`
	for i := range rules {
		for j := range rules {
			rules[i], rules[j] = rules[j], rules[i]
			res, err := mustMerger(t, Sent, rules...).Merge([]byte(base), []byte(sent), []byte(current))
			if err != nil || string(res.Doc) != want {
				t.Errorf("%v: %s, %v", rules, res.Doc, err)
			}
		}
	}
}

// What is asked of a path beforehand is what decides when both sides change the value there.
func TestWhatDecidesAtAPathIsKnownBeforehand(t *testing.T) {
	m, err := NewMerger(Sent, []PathRule{{Path: "/n", Strategy: Sum}, {Path: "/a", Strategy: Current}, {Path: "/a/b/n", Strategy: Sum},
		{Path: "/a/c", Strategy: Max}, {Path: "/m/*/n", Strategy: Min}, {Path: "/m/x/*", Strategy: Fail}, {Path: "/m/x/n", Strategy: Sum}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/n": "/n sum", "/o": " sent", "/a": "/a current", "/a/b": "/a current", "/a/b/n": "/a/b/n sum", "/a/b/m": "/a current", "/a/c": "/a/c max",
		"/a/c/d": "/a current", "/m/x/n": "/m/x/n sum", "/m/y/n": "/m/*/n min", "/m/x/o": "/m/x/* fail", "/m/*/n": "/m/*/n min", "/m/*/o": " sent",
		"": " sent", "no pointer": " sent",
	} {
		if rule, st := m.Ruled(path); rule+" "+st.String() != want {
			t.Errorf("%s: %q %v, want %q", path, rule, st, want)
		}
	}
	doc := `{"n":%,"o":%,"a":{"b":{"n":%,"m":%},"c":%},"m":{"y":{"n":%},"x":{"n":%}}}`
	version := func(n string) []byte { return []byte(strings.ReplaceAll(doc, "%", n)) }
	_, decisions, err := m.Explain(version("1"), version("2"), version("3"))
	if err != nil || len(decisions) != 7 {
		t.Fatalf("%d decisions, %v", len(decisions), err)
	}
	for _, d := range decisions {
		if rule, st := m.Ruled(d.Path); !d.Both || rule != d.Rule || st != d.Strategy {
			t.Errorf("%s: %q %v, but it was decided by %q %v", d.Path, rule, st, d.Rule, d.Strategy)
		}
	}
}

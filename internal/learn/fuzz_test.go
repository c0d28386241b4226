package learn

import (
	"strings"
	"testing"

	"optimist/internal/config"
	"optimist/internal/doc"
)

// FuzzSuggestions holds that whatever clients write, what is suggested is a configuration.
func FuzzSuggestions(f *testing.F) {
	for _, seed := range [][4]string{
		{"shop", `{"n":1}`, `{"n":2}`, `{"n":2}`},
		{"- a: b", `{"a\nb":{"*":1}}`, `{"a\nb":{"*":2}}`, `{"a\nb":{"*":3}}`},
		{"x", `{"\"":1,"#":1,"":1}`, `{"\"":2,"#":2,"":2}`, `{"\"":2,"#":2,"":2}`},
		{"x", `{"l":[{"k\u0000":1,"q":1},{"k\u0000":2}]}`, `{"l":[{"k\u0000":1,"q":2},{"k\u0000":2}]}`, `{"l":[{"k\u0000":1,"q":3}]}`},
		{"x", `{"n":1e400}`, `{"n":1e401}`, `{"n":1E401}`},
		{"x", ``, `{"a":[1]}`, `{"a":null}`},
		{"\xff", `{"\ud800":1}`, `{"\ud800":2}`, `{"\ud800":2}`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, index, base, sent, current string) {
		g := newFight(t)
		for range enough {
			g.Observe(&Conflict{Ref: doc.Ref{Index: index, ID: "1"}, Client: someone("c"), Merger: g.merger, Base: raw(base), Sent: raw(sent), Current: raw(current)})
		}
		g.Hot(1, g.ruled)
		s := g.Suggest("", func(string, string, string, string) Ruled { return Ruled{Rule: "default", Strategy: "sent"} })
		if len(s.Indices) == 0 {
			return
		}
		var text strings.Builder
		s.WriteYAML(&text)
		c, err := config.Parse("suggested.yaml", []byte(text.String()), config.Overrides{Upstream: []string{"http://127.0.0.1:1"}})
		switch {
		case err != nil && !isIndexName(index):
		case err != nil:
			t.Fatalf("%v\n%s", err, &text)
		case c.Rules[len(c.Rules)-1].Name != "rest" && !c.DefaultRules():
			t.Fatalf("%v\n%s", c.Rules, &text)
		}
	})
}

// isIndexName reports whether an engine takes the name for an index's.
func isIndexName(name string) bool {
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.+@é") == "" && strings.Trim(name, ".") != "" && !strings.ContainsAny(name[:1], "-_+")
}

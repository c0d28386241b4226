package rule

import (
	"fmt"
	"slices"
	"testing"

	"optimist/internal/api"
	"optimist/internal/wire"
)

func TestWhyARuleTookARequest(t *testing.T) {
	_, s := compiled(t, `
rules:
  - {name: creates, match: {index: ["shop*"], ops: [create]}}
  - {name: anna, match: {index: ["shop*"], headers: {X-User: anna}}}
  - {name: old, match: {index: ["shop*", "-shop-new"]}}
  - {name: other, match: {index: [other, "*-2026"]}}
  - {name: rest}
`)
	for _, c := range []struct {
		asked   Target
		rule    string
		pattern string
		skipped []string
	}{
		{Target{Index: "shop", Kind: api.Create}, "creates", "shop*", nil},
		{Target{Index: "shop", Kind: api.Index}, "old", "shop*", []string{"creates: its operations are others", "anna: its headers or users are others"}},
		{Target{Index: "shop-new", Kind: api.Index, Fields: []wire.Field{{Name: []byte("x-user"), Value: []byte("anna")}}}, "anna", "shop*",
			[]string{"creates: its operations are others"}},
		{Target{Index: "shop-new", Kind: api.Index}, "rest", "*",
			[]string{"creates: its operations are others", "anna: its headers or users are others", "old: it leaves this index out", "other: its indices are others"}},
		{Target{Index: "alias", Concrete: "log-2026", Kind: api.Index}, "other", "*-2026",
			[]string{"creates: its indices are others", "anna: its indices are others", "old: its indices are others"}},
		{Target{Index: ".hidden", Kind: api.Index}, "", "",
			[]string{"creates: its indices are others", "anna: its indices are others", "old: its indices are others", "other: its indices are others", "rest: its indices are others"}},
	} {
		r := s.MatchRequest(&c.asked)
		taken, pattern := "", ""
		if r != nil {
			taken, pattern = r.Name, r.Pattern(c.asked.Index, c.asked.Concrete)
		}
		var skipped []string
		for _, sk := range s.Skipped(&c.asked, r) {
			skipped = append(skipped, fmt.Sprintf("%s: %s", sk.Rule.Name, sk.Why))
		}
		if taken != c.rule || pattern != c.pattern || !slices.Equal(skipped, c.skipped) {
			t.Errorf("%s: rule %q by %q, skipped %q", c.asked.Index, taken, pattern, skipped)
		}
	}
}

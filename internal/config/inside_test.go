package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestPlacesInsideOfTextsAreFound marks, in each way of writing a text, the place where X stands.
func TestPlacesInsideOfTextsAreFound(t *testing.T) {
	for _, when := range []string{
		`a == X`,
		`a == 'b' && X`,
		`"a == 'b' && X"`,
		`'a == ''b'' && X'`,
		`"a == \"b\" \x41\u0042\U00000043 ü && X"`,
		"a is\n            b and\n            c X",
		"'a ==\n\n\n          b && X'",
		"\"a ==\n          b\\\n          c X\"",
		"|\n          a ==\n            b &&\n\n          X",
		"|-\n\n          a == X",
		">\n          a ==\n          b &&\n\n          c X # d",
		"&anchor a == X",
	} {
		file := "rules:\n  - name: a\n    transform:\n      - op: now\n        path: /a\n        when: " + when + "\n"
		c, err := Parse("f.yaml", []byte(file), Overrides{})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		text := c.Rules[0].Transform[0].When
		before, _, _ := strings.Cut(text, "X")
		at := Pos{Line: 1 + strings.Count(before, "\n"), Column: 1 + len([]rune(before[strings.LastIndex(before, "\n")+1:]))}
		p := c.FailInside("rules[0].transform[0].when", at, "x")
		lines := strings.Split(file, "\n")
		if got := []rune(lines[p.Pos.Line-1]); p.Pos.Column > len(got) || got[p.Pos.Column-1] != 'X' {
			t.Errorf("%s\nread as %q, with X at %v, found at %v", when, text, at, p.Pos)
		}
		if want := fmt.Sprintf("f.yaml:%d:%d: rules[0].transform[0].when: x", p.Pos.Line, p.Pos.Column); p.String() != want {
			t.Errorf("got %s", p)
		}
	}
}

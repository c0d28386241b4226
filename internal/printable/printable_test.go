package printable

import "testing"

func TestTextOfOthersStaysOnItsLine(t *testing.T) {
	for text, want := range map[string][2]string{
		"plain":              {"plain", "plain"},
		"größe – 値":          {"größe – 値", "größe – 値"},
		"a b":                {"a b", "a b"},
		`a\"b`:               {`a\"b`, `a\"b`},
		"\x1b[2Jred":         {`"\x1b[2Jred"`, `\x1b[2Jred`},
		"line\nFAIL":         {`"line\nFAIL"`, `line\nFAIL`},
		"tab\tcell":          {`"tab\tcell"`, `tab\tcell`},
		"c1 \u009b2J":        {`"c1 \u009b2J"`, `c1 \u009b2J`},
		"bidi \u202egpj.exe": {`"bidi \u202egpj.exe"`, `bidi \u202egpj.exe`},
		"\xff\xfe":           {`"\xff\xfe"`, `\xff\xfe`},
		"":                   {"", ""},
	} {
		if got := [2]string{Word(text), Line(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

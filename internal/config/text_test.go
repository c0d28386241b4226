package config

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// problemsOf are the mistakes in a text.
func problemsOf(t *testing.T, text string) Problems {
	t.Helper()
	_, err := Parse("a.yaml", []byte(text), Overrides{})
	var problems Problems
	errors.As(err, &problems)
	return problems
}

func TestWhatIsNoTextIsToldAtItsFirstByte(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"\xff\xfer\x00u\x00l\x00e\x00s\x00", "a.yaml:1:1: this isn't UTF-8"},
		{"rules:\n- name: ä\xff\n", "a.yaml:2:10: this isn't UTF-8"},
		{"rules:\r\n- name: \"a\x00\"\r\n", "a.yaml:2:11: the character U+0000 can't stand in a text"},
		{"rules: []\n# \x7f\n", "a.yaml:2:3: the character U+007F can't stand in a text"},
	} {
		got := problemsOf(t, c.text)
		if len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want) || !utf8.ValidString(got[0].Excerpt()) || strings.ContainsAny(got[0].Excerpt(), "\x00\x7f") {
			t.Errorf("%q: %q, want %s", c.text, got, c.want)
		}
	}
}

// Editors on Windows begin a file with a mark of its order of bytes, which nobody sees.
func TestAMarkOfTheOrderOfBytesIsNoPartOfTheText(t *testing.T) {
	if c, err := Parse("a.yaml", []byte("\ufeffrules: [{name: a}]\n"), Overrides{}); err != nil || c.Rules[0].Name != "a" {
		t.Errorf("%v", err)
	}
	got := problemsOf(t, "\ufeffruless: []\n")
	if len(got) != 1 || got[0].Pos != (Pos{1, 1}) || got[0].Excerpt() != "    1 | ruless: []\n      | ^\n" {
		t.Errorf("%v\n%s", got, got[0].Excerpt())
	}
}

// A text of brackets is told as such, and costs no more memory than its length.
func TestWhatIsNestedTooDeeplyIsntRead(t *testing.T) {
	for text, want := range map[string]string{
		"rules: " + strings.Repeat("[", 200_000):                          "a.yaml:1:10008: this is nested too deeply: 10000 levels at most",
		"rules:\n  " + strings.Repeat("{a: ", 200_000):                    "a.yaml:2:40003: this is nested too deeply: 10000 levels at most",
		"rules:\n" + strings.Repeat("- ", 200_000) + "a\n":                "a.yaml:2:20001: this is nested too deeply: 10000 levels at most",
		"rules: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000): "a.yaml:1:9: rules[0]: want keys with values",
		"rules: [\"" + strings.Repeat("[", 1000) + "\", name]":            "a.yaml:1:9: rules[0]: want keys with values",
		"rules: [1]\n" + strings.Repeat("# [{- \n", 1000):                 "a.yaml:1:9: rules[0]: want keys with values",
		"rules:\n" + strings.Repeat("- 1\n", 1000):                        "a.yaml:2:3: rules[0]: want keys with values",
		"rules:\n- name: a\n  transform:\n  - op: add\n    path: /a\n    value: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000): "a.yaml:6:77: rules[0].transform[0].value: the value is nested too deeply",
	} {
		if got := problemsOf(t, text); len(got) == 0 || !strings.HasPrefix(got[0].String(), want) {
			t.Errorf("%.20q: %.200q, want %s", text, got, want)
		}
	}
}

func TestWhatIsToldStaysShort(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for _, text := range []string{"rules: [{name: \"" + long + "\"}]\n", long, long + ": 1\n", "mode: " + long + "\n", "rules: [{name: a, match: \"" + long + "\"}]"} {
		for _, p := range problemsOf(t, text) {
			if n := utf8.RuneCountInString(p.String()); n > 500 {
				t.Errorf("%d characters: %.300s", n, p)
			}
			if n := utf8.RuneCountInString(p.Excerpt()); n > 350 {
				t.Errorf("an excerpt of %d characters:\n%.300s", n, p.Excerpt())
			}
		}
	}
	p := Problem{Pos: Pos{1, 2003}, Line: strings.Repeat("-", 2000) + "\x1bab\t\u202e" + strings.Repeat("-", 2000)}
	line, mark, _ := strings.Cut(p.Excerpt(), "\n")
	if at := len([]rune(mark)) - 2; []rune(line)[at] != 'b' || strings.ContainsAny(line, "\x1b\u202e") || !strings.Contains(line, "·ab\t·") {
		t.Errorf("%q\n%q", line, mark)
	}
}

func TestOneMistakeIsToldOnce(t *testing.T) {
	for _, text := range []string{"rules: [{name: 1}]", "rules: [{name: [a]}]", "rules: [{name: !!int a}]"} {
		if got := problemsOf(t, text); len(got) != 1 || got[0].Key != "rules[0].name" {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestAKeyOfAnotherFileIsntSentIntoTheConfiguration(t *testing.T) {
	var v struct {
		Tests []struct {
			Name string `json:"name"`
		} `json:"tests"`
	}
	_, got := Decode("a.test.yaml", []byte("tests: [{unknown: 1}]"), &v)
	if len(got) != 1 || !strings.Contains(got[0].Message, "the keys here are name") {
		t.Errorf("%v", got)
	}
}

// A key may be written as a text of several lines. One that is written with a question mark is no other than one without.
func TestKeysMayBeTextsOfSeveralLines(t *testing.T) {
	cfg, err := Parse("f.yaml", []byte(`rules:
- name: r
  transform:
  - op: add
    path: /a
    value:
      ? >-
        several

        lines
      : 1
      ? |
        as they are
      : 2
      ? plain
      : 3
`), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(cfg.Rules[0].Transform[0].Value.Literal); got != `{"several\nlines":1,"as they are\n":2,"plain":3}` {
		t.Error(got)
	}
}

// An alias, an anchor or a tag where a key is was read as a key that is that sign.
func TestKeysAreTexts(t *testing.T) {
	for _, key := range []string{"*x :", "&y a:", "!!str 1:", "? *x\n      :", "? &y a\n      :", "? !!str 1\n      :", "b: {&y c:"} {
		text := "rules:\n- name: &x r\n  transform:\n  - op: add\n    path: /a\n    value:\n      " + key + " 1" + strings.Repeat("}", strings.Count(key, "{")) + "\n"
		_, err := Parse("f.yaml", []byte(text), Overrides{})
		if err == nil || !strings.Contains(err.Error(), "f.yaml:7:") || !strings.Contains(err.Error(), "a key is a text here") {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{`"*x":`, `'&y a':`, `"!!str":`, "a*b&c!:", "7:", "? \"*x\"\n      :"} {
		if _, err := Parse("f.yaml", []byte("rules:\n- name: &x r\n  transform:\n  - op: add\n    path: /a\n    value:\n      "+key+" *x\n"), Overrides{}); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// TestAPasswordIsNeverShown has URLs with one in each place where a text can be wrong.
func TestAPasswordIsNeverShown(t *testing.T) {
	for _, u := range []string{"https://elastic:hunter2@es1:9200", "https://elastic:hunter2@x@es1:9200", "elastic:hunter2@es1:9200", "ftp://a:hunter2/b@es1:x",
		"https://elastic:hunter2" + strings.Repeat("2", 100) + "@es1", "https://elastic:hunter2 b@es1", "https://hunter2:@es1", "https://a:hunter2%zz@es1"} {
		for _, text := range []string{"upstream: {urls: [%s]}", "upstream: {urls: %s}", "upstream: {urls: {a: %s}}", "upstream: {urls: [[%s]]}", "upstream: %s",
			"upstream: {url: %s}", "upstream:\n  urls:\n  - %s\n  - %s", "listen: %s", "mode: %s", "rules: %s", "sniffing: {advertise: %s}", "%s: 1",
			"upstream: {connect_timeout: %s}", "version: %s", "sessions: {trusted_proxies: [%s]}", "locks: {path: %s}", "rules: [{name: %s}]"} {
			quoted := `"` + u + `"`
			for _, p := range problemsOf(t, strings.ReplaceAll(text, "%s", quoted)) {
				if strings.Contains(p.String()+p.Excerpt(), "hunter2") {
					t.Errorf("%s\n%s\n%s", text, p, p.Excerpt())
				}
			}
		}
		_, err := Parse("", nil, Overrides{Upstream: []string{u}, Listen: u, Mode: u})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", u, err)
		}
	}
}

package config

import (
	"strings"
	"testing"
)

// paths reads the entries of merge.paths as they are written after `paths:`.
func paths(t *testing.T, text string) (string, error) {
	t.Helper()
	c, err := Parse("f.yaml", []byte("rules:\n- name: a\n  merge:\n    paths: "+text+"\n"), Overrides{})
	if err != nil {
		return "", err
	}
	json, err := c.Rules[0].Merge.Paths.MarshalJSON()
	return string(json), err
}

// TestKeysMayHoldColons: the reader that optimist had before cut keys in { } at any colon.
func TestKeysMayHoldColons(t *testing.T) {
	for text, want := range map[string]string{
		"{/a:b: sum}":                                `{"/a:b":"sum"}`,
		"{/a:b: sum, /c: max, /d:e:f: min}":          `{"/a:b":"sum","/c":"max","/d:e:f":"min"}`,
		"{/l:i: {by_key: a:b}}":                      `{"/l:i":{"by_key":"a:b"}}`,
		`{"/a:b": sum, '/c d': max}`:                 `{"/a:b":"sum","/c d":"max"}`,
		`{"/a":sum, '/b':max}`:                       `{"/a":"sum","/b":"max"}`,
		"\n      /a:b: sum\n      \"/c\": max":       `{"/a:b":"sum","/c":"max"}`,
		"{? /a:b : sum}":                             `{"/a:b":"sum"}`,
		"{/a: >-\n      sum\n      }":                "",
		"\n      /a: >-\n        sum":                `{"/a":"sum"}`,
		"\n      /a: |-\n        sum":                `{"/a":"sum"}`,
		"\n      ? >-\n        /a\n      : s" + "um": `{"/a":"sum"}`,
	} {
		got, err := paths(t, text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
	}
	c, err := Parse("f.yaml", []byte("upstream: {urls: [http://es1:9200, https://es2:9200/a:b]}\n"), Overrides{})
	if err != nil || strings.Join(c.Upstream.URLs, " ") != "http://es1:9200 https://es2:9200/a:b" {
		t.Errorf("%v", err)
	}
}

// TestWhatIsNoYAMLIsToldWithItsPlace has what people write who don't think of YAML's signs.
func TestWhatIsNoYAMLIsToldWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"rules:\n- name: a\n  match: {index: [*]}\n":         `f.yaml:3:19: there is no anchor for the alias *; if it is meant as text, write it in quotes: "*"`,
		"rules:\n- name: a\n  match: {index: [a, *-b]}\n":    `f.yaml:3:22: there is no anchor for the alias *-b; if it is meant as text, write it in quotes: "*-b"`,
		"rules:\n- name: a\n  match:\n    users:\n    - *\n": `f.yaml:5:7: there is no anchor for the alias *; if it is meant as text, write it in quotes: "*"`,
		"rules:\n- name: a\n  match: {index: *logs}\n":       `f.yaml:3:18: there is no anchor for the alias *logs; if it is meant as text, write it in quotes: "*logs"`,
		"listen: *x # y\n":                      `f.yaml:1:9: there is no anchor for the alias *x; if it is meant as text, write it in quotes: "*x"`,
		"listen: @x\n":                          `f.yaml:1:9: no text begins with @ unless it is in quotes`,
		"mode: guard\nlisten: `a`\n":            "f.yaml:2:9: no text begins with ` unless it is in quotes",
		"upstream:\n\turls: []\n":               "f.yaml:2:1: a tab can't indent here; YAML wants spaces",
		"mode: guard\n\tlisten: :1\n":           "f.yaml:2:1: a tab can't indent here; YAML wants spaces",
		"rules:\n- name: a\n \tmatch: {}\n":     "f.yaml:3:2: a tab can't indent here; YAML wants spaces",
		"rules: [{name: a\n":                    "f.yaml:1:9: no } closes the { here",
		"rules: [a, b":                          "f.yaml:1:8: no ] closes the [ here",
		"listen: 'x\n":                          "f.yaml:1:9: this text has no closing quote",
		"listen: \"a\\d\"\n":                    `f.yaml:1:11: \d is no escape; write \\d, or the text in single quotes`,
		"listen: 'it's'\n":                      "f.yaml:1:13: this can't follow the value before it; if both are one text, write all of it in quotes",
		"rules: [{name: a\nmode: b: c\n":        "f.yaml:2:5: a comma or a } is missing before this; the { is in line 1",
		"rules:\n- match: {index: [a}\n":        "f.yaml:2:20: a comma or a ] is missing before this",
		"%YAML 1.2\n---\nmode: guard\n":         "f.yaml:1:1: a line that begins with % isn't read here; leave it out",
		"mode: guard\nlisten: a: b\n":           "f.yaml:2:10: a second colon in one line; write a text with a colon in quotes, and the next key in the next line",
		"mode: guard\n listen: a\n":             "f.yaml:2:8: this key is indented too far: the line above has a value already, and the keys of a section begin in the same column",
		"log:\n  level: info\n format: a\n":     "f.yaml:3:2: this line fits into no section: the keys of a section, and the entries of a list, begin in the same column",
		"rules:\n- name: a\n - name: b\n":       "f.yaml:3:2: this line fits into no section: the keys of a section, and the entries of a list, begin in the same column",
		"- a\nb: c\n":                           "f.yaml:2:1: this line fits into no section: the keys of a section, and the entries of a list, begin in the same column",
		"rules: - name: a\n":                    "f.yaml:1:8: a list can't begin in the line of its key; begin it in the next line, or write it in [ ]",
		"log:{level: info}\n":                   "f.yaml:1:1: a key needs a colon behind it, and a space behind the colon, as in mode: guard",
		"rules:\n- match:{index: [a]}\n":        "f.yaml:2:3: a key needs a colon behind it, and a space behind the colon, as in mode: guard",
		"rules:\n-\u00a0name: a\n  mode: off\n": "f.yaml:2:2: the character U+00A0 is no space to YAML, though it may look like one; write a space, or leave it out",
		"mode:\u00a0off\nlisten: x\n":           "f.yaml:1:6: the character U+00A0 is no space to YAML, though it may look like one; write a space, or leave it out",
		"upstream: {urls: [$ES_URL]}\n":         "f.yaml:1:19: upstream.urls[0]: variables ($ES_URL) are not expanded in this file: OPTIMIST_LISTEN, _ADMIN, _UPSTREAM, _MODE, _LOG_LEVEL and _LOG_FORMAT win over it, and credentials come from the files that keys in _file name",
		"mode guard\n\nlisten: x\n":             "f.yaml:1:1: a key needs a colon behind it, and a space behind the colon, as in mode: guard",
		"rules:\n- name:a\n  mode: off\n":       "f.yaml:2:3: a key needs a colon behind it, and a space behind the colon, as in mode: guard",
		"mode: guard\nlisten\nlog: {}\n":        "f.yaml:2:1: a key needs a colon behind it, and a space behind the colon, as in mode: guard",
		"listen: ]\n":                           "f.yaml:1:9: no text begins with ] unless it is in quotes",
		"listen: &\n":                           "f.yaml:1:9: no text begins with & unless it is in quotes",
		"listen: !\n":                           "f.yaml:1:9: listen: tags (!) are not read here",
		"listen: |x\n  a\n":                     "f.yaml:1:9: no text begins with | unless it is in quotes",
		"listen: \"\\u12\"\n":                   "f.yaml:1:12: this is not YAML: did not find expected hexadecimal number while scanning a quoted scalar",
		"mode: !!str off\n":                     "f.yaml:1:7: mode: tags (!!str) are not read here",
		"!!map {mode: off}\n":                   "f.yaml:1:1: tags (!!map) are not read here",
		"mode: &a off\nlisten: *b\n":            `f.yaml:2:9: there is no anchor for the alias *b; if it is meant as text, write it in quotes: "*b"`,
		"mode: off\nmode: guard\n":              `f.yaml:2:1: the key "mode" is here twice; the first is in line 1`,
		"log: {level: info, level: info}\n":     `f.yaml:1:20: log: the key "level" is here twice; the first is in line 1`,
		"mode: off\n---\nmode: guard\n":         "f.yaml:3:1: a second document begins here; optimist reads one",
		"mode: off\n---\n'\n":                   "f.yaml:3:1: this text has no closing quote",
		"[mode]: off\n":                         "f.yaml:1:1: a key is a text here, no alias (*), and has no anchor (&) or tag (!); one that begins with such a sign needs quotes",
		"log: &l {}\nlimits: {<<: *l}\n":        "f.yaml:2:10: limits: merge keys (<<) are not read here; an alias can stand for a whole value",
		"log: &l [*l]\n":                        "f.yaml:1:6: log: want keys with values, found a list; the keys here are format, level",
		"version: 1_0\n":                        "f.yaml:1:10: version: this optimist reads version 1 of the file, not 10",
		"version: 99999999999999999999\n":       "f.yaml:1:10: version: want a whole number, found the number 99999999999999999999",
	} {
		_, err := Parse("f.yaml", []byte(text), Overrides{})
		if err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", text, err, want)
		}
	}
}

// TestOddScalarsAreRead has values that are texts, whatever they look like, and empty documents.
func TestOddScalarsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"off": "off", "Off": "Off", "yes": "yes", "2001-01-01": "2001-01-01", "'1'": "1", `"\u0061\x62"`: "ab", "a#b": "a#b",
		">-\n      a\n      b": "a b", "|\n      a\n": "a\n", "a\n      b": "a b", "'it''s'": "it's", "&x a": "a", "-a": "-a", "a:b": "a:b", "1e400": "1e400",
	} {
		c, err := Parse("f.yaml", []byte("rules:\n- name: r\n  match:\n    users:\n    - "+text+"\n"), Overrides{})
		if err != nil || c.Rules[0].Match.Users[0] != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "---\n", "---\n---\n", "# a\n---\n# b\n", "~\n", "%YAML 1.1\n---\nmode: guard\n", "---\nmode: guard\n...\n", "--- {}\n--- ~\n"} {
		if _, err := Parse("f.yaml", []byte(text), Overrides{}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

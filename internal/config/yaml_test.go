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
		"listen: *x # y\n":                  `f.yaml:1:9: there is no anchor for the alias *x; if it is meant as text, write it in quotes: "*x"`,
		"listen: @x\n":                      `f.yaml:1:9: no text begins with @ unless it is in quotes`,
		"mode: guard\nlisten: `a`\n":        "f.yaml:2:9: no text begins with ` unless it is in quotes",
		"upstream:\n\turls: []\n":           "f.yaml:2:1: a tab can't indent here; YAML wants spaces",
		"mode: guard\n\tlisten: :1\n":       "f.yaml:2:1: a tab can't indent here; YAML wants spaces",
		"rules:\n- name: a\n \tmatch: {}\n": "f.yaml:3:2: a tab can't indent here; YAML wants spaces",
		"rules: [{name: a\n":                "f.yaml:1:9: did not find expected ',' or '}' while parsing a flow mapping",
		"listen: 'x\n":                      "f.yaml:1:9: found unexpected end of stream while scanning a quoted scalar",
		"rules: [{name: a\nmode: b: c\n":    "f.yaml:2:5: did not find expected ',' or '}' while parsing a flow mapping from line 1 on",
		"%YAML 1.2\n---\nmode: guard\n":     "f.yaml:1:1: found incompatible YAML document",
		"mode: guard\nlisten: a: b\n":       "f.yaml:2:10: mapping values are not allowed in this context",
		"mode: guard\n listen: a\n":         "f.yaml:2:8: mapping values are not allowed in this context",
		"mode: !!str off\n":                 "f.yaml:1:7: mode: tags (!!str) are not read here",
		"!!map {mode: off}\n":               "f.yaml:1:1: tags (!!map) are not read here",
		"mode: &a off\nlisten: *b\n":        `f.yaml:2:9: there is no anchor for the alias *b; if it is meant as text, write it in quotes: "*b"`,
		"mode: off\nmode: guard\n":          `f.yaml:2:1: the key "mode" is here twice; the first is in line 1`,
		"log: {level: info, level: info}\n": `f.yaml:1:20: log: the key "level" is here twice; the first is in line 1`,
		"mode: off\n---\nmode: guard\n":     "f.yaml:3:1: a second document begins here; optimist reads one",
		"mode: off\n---\n'\n":               "f.yaml:3:1: found unexpected end of stream while scanning a quoted scalar",
		"[mode]: off\n":                     "f.yaml:1:1: a key is a text here, no alias (*), and has no anchor (&) or tag (!); one that begins with such a sign needs quotes",
		"log: &l {}\nlimits: {<<: *l}\n":    "f.yaml:2:10: limits: merge keys (<<) are not read here; an alias can stand for a whole value",
		"log: &l [*l]\n":                    "f.yaml:1:6: log: want keys with values, found a list",
		"version: 1_0\n":                    "f.yaml:1:10: version: this optimist reads version 1 of the file, not 10",
		"version: 99999999999999999999\n":   "f.yaml:1:10: version: want a whole number, found the number 99999999999999999999",
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

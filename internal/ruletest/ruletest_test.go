package ruletest

import (
	"encoding/xml"
	"errors"
	"os"
	"strings"
	"testing"

	"optimist/internal/config"
	"optimist/internal/configtest"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// results runs all tests of a file.
func results(t *testing.T, rules, name, tests string) *Report {
	t.Helper()
	f, err := Parse(name, []byte(tests))
	if err != nil {
		t.Fatal(err)
	}
	r := new(Runner)
	r.Config, r.Rules = configtest.Compile(t, rules)
	defer r.Close()
	report := new(Report)
	for i := range f.Tests {
		report.Results = append(report.Results, r.Run(t.Context(), f, &f.Tests[i]))
	}
	return report
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// golden compares with a file, or writes it where UPDATE_GOLDEN is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("testdata/"+name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := file(t, name); got != want {
		t.Errorf("got\n%s\nwant (%s)\n%s", got, name, want)
	}
}

// TestTheTestsOfUsersPass, and the dry run of each write has told what the write then did.
func TestTheTestsOfUsersPass(t *testing.T) {
	for _, name := range []string{"good", "transforms", "stamps", "users"} {
		t.Run(name, func(t *testing.T) {
			for _, r := range results(t, file(t, name+".yaml"), name+".test.yaml", file(t, name+".test.yaml")).Results {
				if r.Failed() {
					t.Errorf("%s (line %d): %v\n%s", r.Name, r.Line, r.Err, strings.Join(r.lines(), "\n"))
				}
				for _, w := range r.Writes {
					o := w.Account.Outcome
					if doc := w.Account.Document; doc != nil && w.Status < 300 && len(differences(doc, w.stored, false)) > 0 {
						t.Errorf("%s %s: stored %s, and the dry run said %s", r.Name, w.Name, w.stored, doc)
					}
					if o.Field != w.Outcome || o.Status != 0 && o.Status != w.Status {
						t.Errorf("%s %s: %d %s, and the dry run said %d %s", r.Name, w.Name, w.Status, w.Outcome, o.Status, o.Field)
					}
				}
			}
		})
	}
}

func TestAFailureTellsWhatWasExpectedPathByPath(t *testing.T) {
	var out strings.Builder
	report := results(t, file(t, "good.yaml"), "failing.test.yaml", file(t, "failing.test.yaml"))
	for _, r := range report.Results {
		if err := WriteResult(&out, r, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := report.WriteSummary(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "failing.txt", out.String())
}

func TestMistakesInAFileAreToldAllAtOnce(t *testing.T) {
	_, err := Load("testdata/bad.test.yaml")
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, p := range problems {
		out.WriteString(p.String() + "\n" + p.Excerpt())
	}
	golden(t, "bad.txt", out.String())
}

func TestFilesThatCannotBeMeantAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "there are no tests in it"},
		{"tests: []", "there are no tests in it"},
		{"tests:\n- name: a\n  name: b\n", "is here twice"},
		{"tests: {name: a}\n", "want a list"},
		{"rules: []\n", `unknown key "rules"`},
		{"tests:\n\t- name: a\n", "tab"},
		{"tests:\n- {name: a, request: PUT shop, sent: {}, expect: {status: 200}}\n", "write method and path"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/ä, sent: {}, expect: {status: 200}}\n", "percent-encoded"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, headers: [1], sent: {}, expect: {status: 200}}\n", "names with values"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, headers: {A b: 1}, sent: {}, expect: {status: 200}}\n", "is not a header"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, headers: {A: [1]}, sent: {}, expect: {status: 200}}\n", "is not a text"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, headers: {optimist-dry-run: false}, sent: {}, expect: {status: 200}}\n", "can't be given here"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, sent: {}, expect: {attempts: 1.5}}\n", "whole number"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, sent: {}, expect: {rule: [a]}}\n", "name of a rule"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, user: 'a:b', sent: {}, expect: {status: 200}}\n", "can't have a colon"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, user: [a], sent: {}, expect: {status: 200}}\n", "a user is a name"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, user: b, headers: {authorization: x}, sent: {}, expect: {status: 200}}\n",
			"the user, too"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, sent: {}, expect: {answer: 1}}\n", "members of the answer"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, sent: {}, expect: {overwrote: [a]}}\n", "JSON Pointer"},
		{"tests:\n- {name: a, sent: {}, expect: {status: 200}}\n", "needs a request"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/%zz, sent: {}, expect: {status: 200}}\n", "a.test.yaml:2:22: tests[0].request: \"PUT /shop/_doc/%zz\" has a % that"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1?routing=%, sent: {}, expect: {status: 200}}\n", "has a % that"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, headers: {X: \"a\\x01\"}, sent: {}, expect: {status: 200}}\n", "is not a header"},
	} {
		if _, err := Parse("a.test.yaml", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want something with %q", c.text, err, c.want)
		}
	}
}

// What follows from a mistake isn't one more.
func TestAMistakeInAPartIsNotTakenForAMissingPart(t *testing.T) {
	for _, c := range []struct{ text, key string }{
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, sent: {}, expect: {status: many}}\n", "tests[0].expect.status"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, sent: {}, expect: [1]}\n", "tests[0].expect"},
		{"tests:\n- {name: a, request: 5, sent: {}, expect: {status: 200}}\n", "tests[0].request"},
		{"tests:\n- {name: [a], request: PUT /shop/_doc/1, sent: {}, expect: {status: 200}}\n", "tests[0].name"},
		{"tests:\n- {name: a, request: PUT /shop/_doc/1, writers: [{sent: {}, expect: {result: 1}}]}\n", "tests[0].writers[0].expect.result"},
	} {
		_, err := Parse("a.test.yaml", []byte(c.text))
		var problems config.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Key != c.key {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// What the engine says is told, not the JSON that it says it in.
func TestWhatTheEngineRefusesIsToldInItsWords(t *testing.T) {
	const tests = `tests:
- {name: a, request: PUT /shop/_doc/1, base: {a: 1}, current: {a: {b: 1}}, sent: {a: 1}, expect: {status: 200}}
- {name: b, request: PUT /shop/_doc/1, headers: {Content-Encoding: gzip}, sent: {a: 1}, expect: {status: 200}}
`
	for i, r := range results(t, "rules: [{name: a}]\n", "a.test.yaml", tests).Results {
		want := []string{"document_parsing_exception: [1:6] failed to parse field [a]", "400 parse_exception: the body isn't the gzip data"}[i]
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || strings.Contains(r.Err.Error(), "root_cause") {
			t.Errorf("%v", r.Err)
		}
	}
}

func TestTheClockOfATestIsItsOwn(t *testing.T) {
	const rules = "rules:\n- name: shop\n  match: {index: [shop]}\n  transform: [{op: now, path: /at}]\n"
	const tests = "tests:\n- {name: a, request: PUT /shop/_doc/1, now: 2026-01-01T00:00:00Z, sent: {a: 1}, expect: {document: {a: 1, at: \"2026-01-01T00:00:00.000Z\"}}}\n"
	for _, r := range results(t, rules, "a.test.yaml", tests).Results {
		if r.Failed() {
			t.Errorf("%v\n%s", r.Err, strings.Join(r.lines(), "\n"))
		}
	}
}

func TestJUnitIsXMLWhateverTheTestsAreCalled(t *testing.T) {
	report := results(t, file(t, "good.yaml"), "a.test.yaml", "tests:\n"+
		"- {name: \"<a> & \\\"b\\\" \\x01\", request: PUT /shop/_doc/1, sent: {a: \"<\\u0001>\"}, expect: {document: {a: 2}}}\n"+
		"- {name: b, request: PUT /shop/_doc/1, sent: {a: 1}, expect: {status: 201}}\n"+
		"- {name: c, request: PUT /shop/_doc/1, base: {a: 1}, current: {a: {b: 1}}, sent: {a: 1}, expect: {status: 201}}\n")
	var out strings.Builder
	if err := report.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.NewDecoder(strings.NewReader(out.String())).Decode(&got); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got.Tests != 3 || got.Failures != 1 || got.Errors != 1 || len(got.Suites) != 1 || got.Suites[0].Failures != 1 || len(got.Suites[0].Cases) != 3 {
		t.Fatalf("%+v", got)
	}
	cases := got.Suites[0].Cases
	if cases[0].Name != "<a> & \"b\" \uFFFD" || cases[0].Failure == nil || cases[1].Failure != nil || cases[2].Error == nil || cases[1].Line != 3 {
		t.Errorf("%+v", cases)
	}
	if !strings.Contains(cases[2].Error.Message, "current: the engine in memory refused it") {
		t.Errorf("%+v", cases[2].Error)
	}
}

func TestOutcomesAreReadAsTheyAreWritten(t *testing.T) {
	o := readOutcome(`merged;attempts=2;base=session;ambiguous;overwrote="/a /b%20c;x=%22 +3";reason=x`)
	if o.kind != "merged" || o.param("attempts") != "2" || o.param("reason") != "x" || len(o.params) != 5 {
		t.Errorf("%+v", o)
	}
	if got := strings.Join(overwrote(o.param("overwrote")), "|"); got != `+3|/a|/b c;x="` {
		t.Errorf("%s", got)
	}
	for _, broken := range []string{"", ";", `a;b="`, `a;b="c`, "a;;b", "a;b=c=d"} {
		readOutcome(broken)
	}
}

// TestDigitsSurviveTheFile: what stands in YAML is what is sent.
func TestDigitsSurviveTheFile(t *testing.T) {
	f, err := Parse("a.test.yaml", []byte("tests:\n- name: a\n  request: PUT /shop/_doc/1\n  sent: {a: 9007199254740993, b: 1.10, c: 1e400, d: -0.0, e: \"1\"}\n  expect: {status: 201}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.Tests[0].Sent.Text); got != `{"a":9007199254740993,"b":1.10,"c":1e400,"d":-0.0,"e":"1"}` {
		t.Error(got)
	}
}

func FuzzFile(f *testing.F) {
	// Small ones: the fuzzer's own work grows with them.
	f.Add("tests:\n- {name: a, request: PUT /s/_doc/1, base: {n: 1.0}, current: null, sent: {n: [2e3]}, expect: {document: {n: 1}, noop: true}}\n")
	f.Add("tests:\n- name: a\n  request: DELETE /s/_doc/1?routing=x\n  via: if_match\n  writers: [{headers: {A: 1}}, &x {sent: {}}, *x]\n  expect: {document: ~}\n")
	f.Add("tests: [{name: a, now: 2026-01-01T00:00:00Z, sent: |\n  x\n, others: [{expect: {overwrote: [/a], status: 9}}]}]")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse("a.test.yaml", []byte(text))
		var problems config.Problems
		if err != nil && (!errors.As(err, &problems) || len(problems) == 0) {
			t.Fatalf("no problem is told: %v", err)
		}
		if err != nil {
			return
		}
		for i := range parsed.Tests {
			for _, w := range parsed.Tests[i].writes {
				if w.Sent.IsSet {
					if _, err := edit.Diff(w.Sent.Text, w.Sent.Text, tree.Limits{}); err != nil {
						t.Fatalf("%s: %v", w.Sent.Text, err)
					}
				}
			}
		}
	})
}

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// unpack writes an archive's files into a folder and moves there, so that messages have no random names in them.
func unpack(t *testing.T, archive string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, f := range txtar.Parse([]byte(archive)).Files {
		if err := os.MkdirAll(filepath.Dir(f.Name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRulesOfFilesStandBeforeTheRest(t *testing.T) {
	unpack(t, `
-- optimist.yaml --
rule_files: ["rules.d/*.yaml", more/one.yaml, rules.d/b.yaml]
rules:
  - {name: batch, match: {users: [batch]}}
  - {name: own, match: {index: [own]}}
  - {name: deletes, match: {ops: [delete]}}
  - {name: rest}
-- rules.d/b.yaml --
rules: [{name: b1, match: {index: [b]}, base: {stamp: _rev}}, {name: b2, match: {index: [bb]}}]
-- rules.d/a.yaml --
rules: [{name: a, match: {index: [a]}}]
-- rules.d/.#a.yaml --
an editor's
-- rules.d/notes.txt --
no rules
-- more/one.yaml --
rules: [{name: one, match: {index: [one]}}]
`)
	c, err := Load("optimist.yaml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range c.Rules {
		names = append(names, c.Rules[i].Name)
	}
	if d := cmp.Diff("batch own one a b1 b2 deletes rest", strings.Join(names, " ")); d != "" {
		t.Error(d)
	}
	if got := c.Warn(c.RuleKey(5)+".match", "x").String(); got != "rules.d/b.yaml:1:74: warning: rules[1].match: x" {
		t.Error(got)
	}
	if from := c.Rules[4].Base.From; len(from) != 3 || from[1] != FromStamp {
		t.Errorf("a rule of a file that is stamped takes its base from %v", from)
	}
	files, folders := Files("optimist.yaml")
	if d := cmp.Diff([]string{"optimist.yaml", "more/one.yaml", "rules.d/a.yaml", "rules.d/b.yaml"}, files); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{".", "more", "rules.d"}, folders); d != "" {
		t.Error(d)
	}
}

func TestRuleFilesAloneHaveNoRuleForTheRest(t *testing.T) {
	unpack(t, "-- optimist.yaml --\nrule_files: [a.yml]\n-- a.yml --\nrules: [{name: a, match: {index: [a]}}]\n")
	c, err := Load("optimist.yaml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rules) != 1 || c.Rules[0].Name != "a" || c.DefaultRules() {
		t.Errorf("the rules are %+v", c.Rules)
	}
}

func TestMistakesInRuleFilesNameTheFile(t *testing.T) {
	unpack(t, `
-- optimist.yaml --
rule_files: ["rules.d/*", "*.yaml", none/*.yaml, "[", rules.d/]
rules:
  - {name: a, match: {index: [x]}}
-- rules.d/a.yaml --
listen: :1
ruels: []
rules:
  - {name: a, match: {index: [a]}, retry: {max_elapsed: 1m30s}}
  - {name: any}
  - {name: twice, match: {index: [t]}}
-- rules.d/b.yaml --
- rules
-- rules.d/c.yaml --
# nothing
-- rules.d/d.yaml --
rules: [{name: twice, match: {index: u}}, {nam: x}]
-- rules.d/e.yaml --
rules: [{name: any}]
-- rules.d/f.yaml/x --
a folder
`)
	_, err := Load("optimist.yaml", Overrides{})
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatal(err)
	}
	want := `optimist.yaml:1:27: rule_files[1]: it fits this file itself; put the files with rules into a folder of their own
optimist.yaml:1:37: rule_files[2]: there is no such file: none/*.yaml
optimist.yaml:1:50: rule_files[3]: "[" is not a pattern of file names
rules.d: it can't be read: read rules.d: is a directory
rules.d/a.yaml:1:1: "listen" belongs into the file that names this one in rule_files; here are rules only
rules.d/a.yaml:2:1: unknown key "ruels"; did you mean "rules"?
rules.d/a.yaml:4:12: rules[0].name: "a" is the name of rules[0] in optimist.yaml:3:5, too; names must differ
rules.d/a.yaml:4:57: rules[0].retry.max_elapsed: "1m30s" is not a duration: whole numbers and one unit only; write 90s
rules.d/b.yaml:1:1: want keys with values, found a list; the keys here are rules
rules.d/c.yaml:1:1: there are no rules in it; a file of rule_files holds ` + "`rules:`" + `
rules.d/d.yaml:1:16: rules[0].name: "twice" is the name of rules[2] in rules.d/a.yaml:6:5, too; names must differ
rules.d/d.yaml:1:38: rules[0].match.index: want a list, found the text "u"; write [u]
rules.d/d.yaml:1:44: rules[1]: unknown key "nam"; did you mean "name"?
rules.d/e.yaml:1:9: rules[0]: a rule in a file of rule_files names its indices (match.index); one for all the rest stands at the end of optimist.yaml
rules.d/e.yaml:1:16: rules[0].name: "any" is the name of rules[1] in rules.d/a.yaml:5:5, too; names must differ
rules.d/f.yaml: it can't be read: read rules.d/f.yaml: is a directory`
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	if d := cmp.Diff(want, strings.Join(lines, "\n")); d != "" {
		t.Error(d)
	}
}

func TestFoldersInWhichRuleFilesMayAppearAreNamed(t *testing.T) {
	unpack(t, "-- conf/optimist.yaml --\nrule_files: [teams/*/rules/*.yaml]\n-- conf/teams/a/rules/x.yaml --\n-- conf/teams/b/y --\n")
	files, folders := Files("conf/optimist.yaml")
	if d := cmp.Diff([]string{"conf/optimist.yaml", "conf/teams/a/rules/x.yaml"}, files); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"conf", "conf/teams", "conf/teams/a", "conf/teams/a/rules", "conf/teams/b"}, folders); d != "" {
		t.Error(d)
	}
	if files, folders := Files("conf/none.yaml"); len(files) != 1 || len(folders) != 1 {
		t.Errorf("a file that isn't there: %v %v", files, folders)
	}
}

func TestFilesOfTestsStandBesideTheRules(t *testing.T) {
	unpack(t, `
-- main.yaml --
rule_files: ["*/*.y*ml"]
rules: [{name: rest}]
-- a/a.yaml --
rules: [{name: a, match: {index: [a]}}]
-- a/a.test.yaml --
tests: []
-- a/b.test.yml --
tests: []
`)
	if c, err := Load("main.yaml", Overrides{}); err != nil || len(c.Rules) != 2 {
		t.Fatalf("%v", err)
	}
}

// TestAFileWithoutAKeyIsRefused: it was emptied, or is half written. Who wants the defaults says so.
func TestAFileWithoutAKeyIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for content, want := range map[string]string{
		"":                         "a.yaml:1:1: nothing stands in this file: it is empty, or half written; for the defaults alone write {}",
		"\n# mode: guard\n---\n":   "a.yaml:1:1: nothing stands in this file: it is empty, or half written; for the defaults alone write {}",
		"null":                     "a.yaml:1:1: nothing stands in this file: it is empty, or half written; for the defaults alone write {}",
		"rules: [":                 "a.yaml:1:8: no ] closes the [ here",
		"{}":                       "",
		"version: 1":               "",
		"# a comment\nversion: 1 ": "",
	} {
		if err := os.WriteFile("a.yaml", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := Load("a.yaml", Overrides{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s", content, got)
		}
	}
}

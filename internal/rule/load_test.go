package rule

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"optimist/internal/api"
	"optimist/internal/config"
)

// loaded writes an archive's files into a folder, reads optimist.yaml among them, and returns what is wrong, line by line.
func loaded(t *testing.T, archive string) (*config.Config, *Set, string) {
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
	c, s, err := Load("optimist.yaml", config.Overrides{})
	if err == nil {
		return c, s, ""
	}
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatal(err)
	}
	return c, nil, problems.Error()
}

func TestWhatCantBeCompiledIsToldWithItsPlace(t *testing.T) {
	_, _, got := loaded(t, `-- optimist.yaml --
rule_files: [team.yaml]
rules:
  - name: a
    transform:
      - {op: now, path: /a, when: 'incomming.status == "published"'}
      - {op: now, path: /a, when: 'incoming.status == "published'}
      - op: now
        path: /a
        when: |
          current != null &&
            current.a + (1 ==
      - {op: now, path: /a, when: request.indx == "a"}
      - {op: now, path: /a, when: '"a"'}
      - {op: increment, path: /a, value: one}
      - {op: move, path: "/a/*", from: "/b/*/c/*"}
      - {op: now, path: "", when: current == null}
-- team.yaml --
rules:
  - {name: b, match: {index: [b]}, transform: [{op: now, path: /a, when: 1 + 1}]}
`)
	want := `optimist.yaml:5:36: rules[0].transform[0].when: the condition can't be used: undeclared reference to 'incomming' (did you mean 'incoming'?)
optimist.yaml:6:55: rules[0].transform[1].when: the condition can't be used: Syntax error: token recognition error at: '"published'; the quote isn't closed
optimist.yaml:11:30: rules[0].transform[2].when: the condition can't be used: Syntax error: the expression ends before it is complete
optimist.yaml:12:42: rules[0].transform[3].when: the condition can't be used: undeclared reference to 'request.indx' (did you mean 'request.index'?)
optimist.yaml:13:36: rules[0].transform[4].when: the condition can't be used: must be true or false, and is a string
optimist.yaml:14:42: rules[0].transform[5].value: it must be a number, and is string "one"
optimist.yaml:15:40: rules[0].transform[6].from: it must be like path up to its last ` + "`*`" + `
optimist.yaml:16:25: rules[0].transform[7].path: it is the whole document, of which that can't be done
team.yaml:2:74: rules[0].transform[0].when: the condition can't be used: must be true or false, and is a number`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestOneMistakeHidesNoOther: who mends one mistake after the other checks as often as there are mistakes.
func TestOneMistakeHidesNoOther(t *testing.T) {
	_, _, got := loaded(t, `-- optimist.yaml --
mod: guard
rules:
  - name: a
    on_confict: fail
    merge: {default: best}
    transform:
      - {op: increment, path: /a, value: "1"}
      - {op: remov, path: /a, when: incomming.a}
      - {op: move, path: "/a/*", from: "/b/*/c/*"}
  - name: b
    match: {index: [B]}
    transform: [{op: remove, path: ""}]
`)
	want := `optimist.yaml:1:1: unknown key "mod"; did you mean "mode"?
optimist.yaml:4:5: rules[0]: unknown key "on_confict"; did you mean "on_conflict"?
optimist.yaml:5:22: rules[0].merge.default: "best" is not one of sent, current, fail
optimist.yaml:7:42: rules[0].transform[0].value: it must be a number, and is string "1"
optimist.yaml:8:14: rules[0].transform[1].op: "remov" is not one of add, remove, replace, move, copy, test, increment, append, union, max, ` +
		`min, default, now, merge, remove_empty, refuse; did you mean "remove"?
optimist.yaml:9:40: rules[0].transform[2].from: it must be like path up to its last ` + "`*`" + `
optimist.yaml:11:21: rules[1].match.index[0]: "B": the engine's index names are in lower case: write b
optimist.yaml:12:36: rules[1].transform[0].path: it is the whole document, of which that can't be done`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestAnIndexIsClaimedInOneFileOnly(t *testing.T) {
	_, _, got := loaded(t, `-- optimist.yaml --
rule_files: ["teams/*.yaml"]
rules:
  - {name: everywhere, match: {headers: {X-Batch: "*"}}, priority: background}
  - {name: main, match: {index: [audit, "m-*", "-m-team-*"], ops: [index, delete]}}
  - {name: more, match: {index: [audit]}}
  - {name: rest}
-- teams/a.yaml --
rules:
  - {name: a1, match: {index: ["orders-*", "-orders-old-*"]}}
  - {name: a2, match: {index: [audit], ops: [update]}}
  - {name: a3, match: {index: [x, "m-team-a", m-a]}}
  - {name: a4, match: {index: ["orders-*"]}}
-- teams/b.yaml --
rules:
  - {name: b1, match: {index: ["orders-old-1", "b*"]}}
  - {name: b2, match: {index: ["*-new"]}}
  - {name: b3, match: {index: ["*-new", "-*"], users: [b]}}
`)
	want := `teams/a.yaml:3:32: rules[1].match.index[0]: "audit" is claimed twice: rule more takes "audit" for the same operations, at optimist.yaml:5:34
teams/a.yaml:4:47: rules[2].match.index[2]: "m-a" is claimed twice: rule main takes "m-*" for the same operations, at optimist.yaml:4:41
teams/b.yaml:2:32: rules[0].match.index[0]: "orders-old-1" is claimed twice: rule a4 takes "orders-*" for the same operations, at teams/a.yaml:5:32
teams/b.yaml:3:32: rules[1].match.index[0]: "*-new" is claimed twice: rule main takes "m-*" for the same operations, at optimist.yaml:4:41
teams/b.yaml:3:32: rules[1].match.index[0]: "*-new" is claimed twice: rule a1 takes "orders-*" for the same operations, at teams/a.yaml:2:32
teams/b.yaml:3:32: rules[1].match.index[0]: "*-new" is claimed twice: rule a4 takes "orders-*" for the same operations, at teams/a.yaml:5:32`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRulesOfFilesAreInForce(t *testing.T) {
	_, s, got := loaded(t, `-- optimist.yaml --
rule_files: [team.yaml]
rules: [{name: rest}]
-- team.yaml --
rules: [{name: team, match: {index: [orders]}}]
`)
	if got != "" {
		t.Fatal(got)
	}
	if a, b := name(s.Match("orders", api.Index)), name(s.Match("other", api.Index)); a != "team" || b != "rest" {
		t.Errorf("orders is taken by %s, other by %s", a, b)
	}
	if s.All()[0].N != 0 || s.All()[1].N != 1 {
		t.Error("the rules are not numbered in the order in which they count")
	}
}

// FuzzRules: no file makes the compiler panic, and what can't be compiled is told with its place.
func FuzzRules(f *testing.F) {
	for _, pattern := range []string{"../config/testdata/good/*.yaml", "../config/testdata/bad/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("rules: [{name: a, transform: [{op: now, path: /a, when: |\n  incoming.a ==\n  1\n}]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("fuzz.yaml", data, config.Overrides{})
		if err != nil {
			return
		}
		s, err := FromConfig(c)
		var problems config.Problems
		if err != nil && !errors.As(err, &problems) {
			t.Fatalf("an error that isn't a problem: %v", err)
		}
		for _, p := range problems {
			if p.Pos.Line < 1 || p.Pos.Column < 1 {
				t.Fatalf("without a place: %s", p)
			}
		}
		Lint(c)
		if s != nil {
			a := Target{Index: "shop", Kind: api.Index, Fields: fields("X-A", "b", "Authorization", "Basic YWRhOng=")}
			s.Elsewhere(&a, s.MatchRequest(&a))
		}
	})
}

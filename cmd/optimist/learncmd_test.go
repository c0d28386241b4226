package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Where the configuration has rules, what is suggested is a file beside it: its rules come before the one for the rest.
func TestSuggestionsGoBesideRulesThatAreThere(t *testing.T) {
	r := serveFor(t, "", "rules:\n- {name: claimed, match: {index: [claimed]}, merge: {paths: {/n: sum}}}\n- {name: rest, on_missing: recreate}\n")
	for _, index := range []string{"claimed", "free"} {
		for i := range 3 {
			doc := fmt.Sprintf("/%s/_doc/%d", index, i)
			r.ask(t, "PUT", doc, `{"n":1,"m":1}`, "Optimist-Session", "third")
			for _, who := range []string{"one", "other"} {
				r.ask(t, "GET", doc, "", "Optimist-Session", who)
			}
			for _, who := range []string{"one", "other"} {
				r.ask(t, "PUT", doc, `{"n":2,"m":2}`, "Optimist-Session", who)
			}
		}
	}
	var rules, out, stderr strings.Builder
	if status := run(t.Context(), []string{"suggest", "--admin", r.admin}, &rules, &stderr); status != exitOK {
		t.Fatal(status, &stderr)
	}
	for _, want := range []string{"# Name this file in rule_files.", "#   add to merge.paths of rule claimed:  /m: sum\n", "; rule claimed says sum already",
		"  - name: free\n", "    # Rule rest takes these writes now: copy what else it says.\n"} {
		if !strings.Contains(rules.String(), want) {
			t.Errorf("%q isn't in it:\n%s", want, &rules)
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"rules.yaml": rules.String(), "main.yaml": "rules: [{name: rest, on_missing: recreate}]\nrule_files: [rules.yaml]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status := run(t.Context(), []string{"check", "--strict", filepath.Join(dir, "main.yaml")}, &out, &stderr); status != exitOK {
		t.Fatalf("%d %s\n%s", status, &stderr, &rules)
	}
	for i, name := range []string{"free", "rest"} {
		if lines := strings.Split(out.String(), "\n"); !strings.HasPrefix(lines[3+i], name+" ") {
			t.Errorf("line %d isn't that of %s:\n%s", i, name, &out)
		}
	}
}

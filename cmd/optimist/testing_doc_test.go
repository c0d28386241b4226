package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestThePageOnTestingRulesIsWhatItsScriptRuns: every file and every output on it.
func TestThePageOnTestingRulesIsWhatItsScriptRuns(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := txtar.ParseFile("testdata/script/testing-rules.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range script.Files {
		files[f.Name] = string(f.Data)
	}
	blocks := regexp.MustCompile("(?ms)^```(yaml|console)\n(.*?)^```$").FindAllSubmatch(page, -1)
	if len(blocks) < 6 {
		t.Fatalf("%d blocks found in the page", len(blocks))
	}
	for _, b := range blocks {
		kind, text := string(b[1]), string(b[2])
		first, rest, _ := strings.Cut(strings.ReplaceAll(text, " \\\n    ", " "), "\n") // a long command takes several lines
		if kind == "yaml" {
			name := strings.TrimPrefix(first, "# ")
			if files[name] != text {
				t.Errorf("%s isn't the script's:\n%s", name, text)
			}
			continue
		}
		command := strings.TrimPrefix(first, "$ ")
		_, after, ok := strings.Cut(string(script.Comment), " "+command+"\ncmp stdout ")
		if name, _, _ := strings.Cut(after, "\n"); !ok || files[name] != rest {
			t.Errorf("the script doesn't run %s, or it prints\n%s", command, files[name])
		}
	}
}

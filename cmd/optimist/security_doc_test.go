package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"optimist/internal/pagetest"
)

// Each bound in docs/security.md is a test: its row links to the file of one that exists, and has its name as the link's title. A name in the
// column itself would leave no room for the bound.
func TestEveryBoundOfTheSecurityPageHasItsTest(t *testing.T) {
	const root = "../.."
	tests := map[string]bool{} // path and name
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests[filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))+" "+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	table := pagetest.Part(t, filepath.Join(root, "docs", "security.md"), "bounds")
	var rows []string
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") && line != "| --- | --- | --- |" && line != "| bound | default, and its key | test |" {
			rows = append(rows, line)
		}
	}
	if len(rows) < 40 {
		t.Fatalf("the tables have %d rows", len(rows))
	}
	linked := regexp.MustCompile(`\]\(\.\./(\S+) "(\w+)"\)`)
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		links := linked.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(links) == 0 {
			t.Errorf("a bound without a test: %s", row)
		}
		for _, l := range links {
			if !tests[l[1]+" "+l[2]] {
				t.Errorf("there is no test %s in %s: %s", l[2], l[1], row)
			}
		}
	}
}

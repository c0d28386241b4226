package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each bound in docs/security.md is a test: its row names one that exists.
func TestEveryBoundOfTheSecurityPageHasItsTest(t *testing.T) {
	const root = "../.."
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- bounds: begin -->")
	table, _, found := strings.Cut(table, "<!-- bounds: end -->")
	var rows []string
	for line := range strings.Lines(table) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") && line != "| --- | --- | --- |" && line != "| bound | default, and its key | test |" {
			rows = append(rows, line)
		}
	}
	if !found || len(rows) < 40 {
		t.Fatalf("the tables have %d rows", len(rows))
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		names := named.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(names) == 0 {
			t.Errorf("a bound without a test: %s", row)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("there is no test %s: %s", name[1], row)
			}
		}
	}
}

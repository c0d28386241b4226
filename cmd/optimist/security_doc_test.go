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
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if !found || len(rows) < 10 {
		t.Fatalf("the table has %d lines", len(rows))
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for _, row := range rows[2:] {
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

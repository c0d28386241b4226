package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each link of a page to a file or to a heading has its target in the repository.
func TestEveryLinkBetweenPagesHasItsTarget(t *testing.T) {
	const root = "../.."
	headings := map[string]map[string]bool{} // of each page: the anchors of its headings
	texts := map[string]string{}             // of each page: its text without code
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		page := regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```").ReplaceAllString(string(text), "")
		headings[path], texts[path] = anchors(page), page
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) < 20 {
		t.Fatalf("only %d pages were found", len(texts))
	}
	code, link := regexp.MustCompile("`[^`\n]*`"), regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for page, text := range texts {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(text, "x"), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s has no target", page, m[1])
			} else if anchor != "" && !headings[target][anchor] {
				t.Errorf("%s: the link %s names a heading that isn't there", page, m[1])
			}
		}
	}
}

// anchors returns the anchors that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	heading := regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	link, drop := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`), regexp.MustCompile(`[^\p{L}\p{N}\p{M}_ -]`)
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		name := drop.ReplaceAllString(strings.ToLower(link.ReplaceAllString(m[1], "$1")), "")
		name = strings.ReplaceAll(name, " ", "-")
		unique := name
		for n := 1; all[unique]; n++ {
			unique = name + "-" + strconv.Itoa(n)
		}
		all[unique] = true
	}
	return all
}

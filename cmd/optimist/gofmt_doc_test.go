package main

import (
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestProgramsOfPagesAreFormatted: who copies one gets no change from gofmt.
func TestProgramsOfPagesAreFormatted(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal(len(pages), err)
	}
	program := regexp.MustCompile("(?ms)^```go\n(package .*?)^```")
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range program.FindAllSubmatch(text, -1) {
			if formatted, err := format.Source(m[1]); err != nil || string(formatted) != string(m[1]) {
				t.Errorf("%s: a program isn't as gofmt writes it (%v)", page, err)
			}
		}
	}
}

package rewrite

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A story is one ```merge block of a Markdown file: what was there, what came, and what becomes of it.
type story struct {
	name, file              string
	line                    int
	def                     Strategy
	rules                   []PathRule
	limits                  Limits
	base, sent, current     []byte // base is nil where the block has none
	result, patch, fails    string
	overwritten, conflict   []string
	repeatable              string
	resultGiven, patchGiven bool
}

// TestMergeStories runs every block of testdata/stories.md.
func TestMergeStories(t *testing.T) { runStories(t, "testdata/stories.md", 60) }

// TestDocumentationIsTrue runs every block of the page that users read.
func TestDocumentationIsTrue(t *testing.T) { runStories(t, "../docs/merge.md", 20) }

func runStories(t *testing.T, file string, atLeast int) {
	stories := readStories(t, file)
	if len(stories) < atLeast {
		t.Fatalf("%s has %d stories, fewer than %d: are they still found?", file, len(stories), atLeast)
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) { s.run(t) })
	}
}

func (s *story) run(t *testing.T) {
	m := mustMerger(t, s.def, s.rules...).Within(s.limits)
	res, err := m.Merge(s.base, s.sent, s.current)
	var conflict *ConflictError
	switch {
	case s.fails != "":
		if err == nil || !strings.Contains(err.Error(), s.fails) {
			t.Errorf("%s:%d: error %v, want %q", s.file, s.line, err, s.fails)
		}
	case s.conflict != nil:
		if !errors.As(err, &conflict) || !slices.Equal(conflict.Paths, s.conflict) {
			t.Errorf("%s:%d: got %s, %v; want a conflict at %q", s.file, s.line, res.Doc, err, s.conflict)
		}
	case err != nil:
		t.Errorf("%s:%d: %v", s.file, s.line, err)
	default:
		if s.resultGiven && string(res.Doc) != s.result {
			t.Errorf("%s:%d:\n got %s\nwant %s", s.file, s.line, res.Doc, s.result)
		}
		if !slices.Equal(res.Overwritten, s.overwritten) {
			t.Errorf("%s:%d: overwritten %q, want %q", s.file, s.line, res.Overwritten, s.overwritten)
		}
		if res.Changed != (string(res.Doc) != string(s.current)) {
			t.Errorf("%s:%d: changed is %v", s.file, s.line, res.Changed)
		}
	}
	s.runChange(t, m)
}

// runChange checks what a block says about the change itself.
func (s *story) runChange(t *testing.T, m *Merger) {
	if s.patchGiven {
		p, err := Diff(s.base, s.sent)
		p = slices.DeleteFunc(p, func(op Operation) bool { return op.Op == "test" })
		if got := string(p.AppendJSON(nil)); err != nil || got != s.patch {
			t.Errorf("%s:%d: %v\n got %s\nwant %s", s.file, s.line, err, got, s.patch)
		}
	}
	if s.repeatable != "" {
		ok, err := m.Repeatable(s.base, s.sent, s.current)
		if err != nil || strconv.FormatBool(ok) != s.repeatable {
			t.Errorf("%s:%d: repeatable %v, %v; want %s", s.file, s.line, ok, err, s.repeatable)
		}
	}
}

func readStories(t *testing.T, file string) (stories []*story) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	heading, inside := "", false
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			if inside = line == "```merge"; inside {
				stories = append(stories, &story{name: heading, file: file, line: i + 1})
			}
		case inside:
			if reason := stories[len(stories)-1].read(line); reason != "" {
				t.Fatalf("%s:%d: %s", file, i+1, reason)
			}
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	return stories
}

// read takes in one line of a block.
func (s *story) read(line string) (reason string) {
	if strings.TrimSpace(line) == "" {
		return ""
	}
	name, text, ok := strings.Cut(line, ":")
	if !ok {
		return "no colon"
	}
	text = strings.TrimSpace(text)
	var err error
	switch name {
	case "default":
		s.def, err = ParseStrategy(text)
	case "rule":
		f := append(strings.Fields(text), "", "")
		r := PathRule{Path: f[0], Key: f[2]}
		r.Strategy, err = ParseStrategy(f[1])
		s.rules = append(s.rules, r)
	case "cells":
		s.limits.Cells, err = strconv.Atoi(text)
	case "depth":
		s.limits.Depth, err = strconv.Atoi(text)
	case "base":
		s.base = []byte(text)
	case "sent":
		s.sent = []byte(text)
	case "current":
		s.current = []byte(text)
	case "result":
		s.result, s.resultGiven = text, true
	case "patch":
		s.patch, s.patchGiven = text, true
	case "overwritten":
		s.overwritten = strings.Fields(text)
	case "conflict":
		s.conflict = strings.Fields(text)
	case "error":
		s.fails = text
	case "repeatable":
		s.repeatable = text
	default:
		return "unknown line " + name
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// event is one line of go test -json, see go doc test2json; build-output and build-fail come from go build.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// summary counts tests. A test with subtests counts as these, and itself only if it failed while they did not.
type summary struct {
	passed, failed, skipped int
	failures                []failure
}

// failure is a failed test, or a package that did not build or ended outside of a test, with all that it printed. Where something
// below it failed, too, it is there for what it printed itself: a panic is, outside of the test that it ends.
type failure struct{ name, output string }

func (s *summary) add(o summary) {
	s.passed += o.passed
	s.failed += o.failed
	s.skipped += o.skipped
	s.failures = append(s.failures, o.failures...)
}

// state is what is known of a test, or of a package where the test's name is empty.
type state struct {
	output  strings.Builder
	result  string
	parent  bool // it has subtests
	failing bool // something below it failed
}

type key struct{ pkg, test string }

// read summarises one stream of events. Lines that are no events are what something else printed: they are failures of the
// package that go test was building or vetting, so they are kept.
func read(r io.Reader) (summary, error) {
	states := map[key]*state{}
	var order []key
	var loose bytes.Buffer
	at := func(k key) *state {
		if states[k] == nil {
			states[k] = &state{}
			order = append(order, k)
		}
		return states[k]
	}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Action != "" {
			note(at(key{e.pkg(), e.Test}), e)
		} else {
			loose.Write(line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return summary{}, err
		}
	}
	return summarise(states, order, loose.String()), nil
}

// pkg is the package of the event. Those of a build name it with the test binary: "optimist/rewrite [optimist/rewrite.test]".
func (e event) pkg() string {
	if e.Package != "" {
		return e.Package
	}
	name, _, _ := strings.Cut(e.ImportPath, " ")
	return name
}

func note(s *state, e event) {
	switch e.Action {
	case "output", "build-output":
		s.output.WriteString(e.Output)
	case "pass", "fail", "skip", "build-fail":
		if s.result != "fail" { // a package that is run twice has failed if one run has
			s.result = strings.TrimPrefix(e.Action, "build-")
		}
	}
}

func summarise(states map[key]*state, order []key, loose string) summary {
	// Tests that ended without a result were running when their package ended: a panic, or a time-out. A benchmark only has one if it failed.
	for _, k := range order {
		if s := states[k]; k.test != "" && s.result == "" {
			s.result = "fail"
			if whole := states[key{pkg: k.pkg}]; strings.HasPrefix(k.test, "Benchmark") && whole != nil && whole.result == "pass" {
				s.result = "pass"
			}
		}
	}
	for _, k := range order {
		for _, above := range k.parents() {
			if p := states[above]; p != nil {
				p.parent = p.parent || above.test != ""
				p.failing = p.failing || states[k].result == "fail"
			}
		}
	}
	var sum summary
	for _, k := range order {
		sum.count(k, states[k])
	}
	if sum.failed > 0 && strings.TrimSpace(loose) != "" {
		sum.failures = append(sum.failures, failure{"go test", loose})
	}
	return sum
}

// parents are the tests that k is a subtest of, and its package.
func (k key) parents() []key {
	if k.test == "" {
		return nil
	}
	above := []key{{pkg: k.pkg}}
	for i, r := range k.test {
		if r == '/' {
			above = append(above, key{k.pkg, k.test[:i]})
		}
	}
	return above
}

func (s *summary) count(k key, st *state) {
	switch st.result {
	case "fail":
		output := tidy(st.output.String())
		if !st.failing {
			s.failed++ // else what failed below it counts
		} else if output == "" {
			return
		}
		s.failures = append(s.failures, failure{strings.TrimSpace(k.pkg + " " + k.test), output})
	case "pass":
		if k.test != "" && !st.parent {
			s.passed++
		}
	case "skip":
		if k.test != "" && !st.parent {
			s.skipped++
		}
	}
}

// tidy drops the lines in which go test says what it does. The seed of a shuffled run stays: it repeats the failure.
func tidy(output string) string {
	lines := strings.SplitAfter(output, "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool {
		l = strings.TrimSpace(l)
		for _, noise := range []string{"=== ", "--- FAIL", "--- PASS", "--- SKIP", "FAIL", "exit status"} {
			if strings.HasPrefix(l, noise) {
				return true
			}
		}
		return false
	})
	return strings.Join(lines, "")
}

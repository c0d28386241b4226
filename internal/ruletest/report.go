package ruletest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is the results of all files, in their order.
type Report struct {
	Results []*Result
	Took    time.Duration
}

// Failed is how many tests didn't pass.
func (r *Report) Failed() (n int) {
	for _, res := range r.Results {
		if res.Failed() {
			n++
		}
	}
	return n
}

// WriteResult tells one result in a line, a failure with what wasn't as expected. verbose adds how each write came to what it did.
func WriteResult(w io.Writer, r *Result, verbose bool) error {
	var b strings.Builder
	if r.Failed() {
		fmt.Fprintf(&b, "FAIL  %s:%d: %s\n", r.File, r.Line, r.Name)
	} else {
		fmt.Fprintf(&b, "ok    %s: %s\n", r.File, r.Name)
	}
	for _, line := range r.lines() {
		b.WriteString("      " + line + "\n")
	}
	if verbose {
		for i := range r.Writes {
			b.WriteString("\n" + indent(AccountText(r.Writes[i].Account), "      "))
		}
		if len(r.Writes) > 0 {
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lines are what is to be said of a failure: what wasn't as expected, and what the answers were.
func (r *Result) lines() []string {
	if !r.Failed() {
		return nil
	}
	var out []string
	if r.Err != nil {
		out = append(out, "it could not run: "+r.Err.Error())
	}
	out = append(out, r.Failures...)
	for _, w := range r.Writes {
		line := fmt.Sprintf("answered: %s: %d", w.Request, w.Status)
		if w.Outcome != "" {
			line += ", " + w.Outcome
		}
		if w.Name != "" {
			line = w.Name + " " + line
		}
		out = append(out, line)
	}
	return out
}

func indent(text, by string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if l != "" && l != "\n" {
			lines[i] = by + l
		}
	}
	return strings.Join(lines, "")
}

// WriteSummary tells how many tests passed.
func (r *Report) WriteSummary(w io.Writer) error {
	failed := r.Failed()
	text := fmt.Sprintf("%d passed", len(r.Results)-failed)
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	_, err := fmt.Fprintf(w, "\n%s\n", text)
	return err
}

// The elements of JUnit's XML, as continuous integration reads it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
		took     time.Duration
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		File    string        `xml:"file,attr"`
		Line    int           `xml:"line,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitProblem `xml:"failure,omitempty"`
		Error   *junitProblem `xml:"error,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit's XML: a suite for each file.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Tests: len(r.Results), Time: seconds(r.Took)}
	for _, res := range r.Results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != res.File {
			all.Suites = append(all.Suites, junitSuite{Name: res.File})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: clean(res.Name), Class: s.Name, File: res.File, Line: res.Line, Time: seconds(res.Took)}
		text := clean(strings.Join(res.lines(), "\n"))
		switch {
		case res.Err != nil:
			c.Error = &junitProblem{Message: clean(res.Err.Error()), Type: "error", Text: text}
			s.Errors++
			all.Errors++
		case res.Failed():
			c.Failure = &junitProblem{Message: clean(res.Failures[0]), Type: "expectation", Text: text}
			s.Failures++
			all.Failures++
		}
		s.Tests++
		s.took += res.Took
		s.Time = seconds(s.took)
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(&all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// clean leaves out what XML can't hold, such as control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r >= ' ' && r != 0xFFFE && r != 0xFFFF {
			return r
		}
		return '\uFFFD'
	}, s)
}

// Package conformance holds one suite of requests and answers, written as data, for the embedded engine, the real ones, and
// optimist in front of each.
//
// Against an engine it checks that the answers are what the case says. Through optimist it checks that the same requests get
// the same answers as without it: status, header and body, byte for byte but for names and times that differ from run to
// run. It says nothing about speed, concurrency or lost connections; other suites do.
package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Engines are the names that cases know engines by.
var Engines = []string{"embedded", "elasticsearch9", "elasticsearch7", "opensearch"}

// stubName is the engine of cases that bring their answers along.
const stubName = "stub"

// Case is a story of requests that follow one another on one connection.
type Case struct {
	// Name says what must hold. It is a sentence, and unique.
	Name string `yaml:"name"`
	// Trap is where the failure was reported, as in the table of traps; empty for the engine's own semantics.
	Trap string `yaml:"trap"`
	// Not names the engines that the case doesn't run on, and why.
	Not map[string]string `yaml:"not"`
	// Via says which half the case is for: "" for both, "direct" for expectations alone, "proxy" for requests that no engine
	// is to see.
	Via string `yaml:"via"`
	// Stub are the answers of an engine that is none, for what the real ones don't say: bytes with Go's escapes, one for each
	// request of the case that reaches it. A case with a stub runs on nothing else.
	Stub []StubAnswer `yaml:"stub"`
	// Modes are those of optimist that the case is for; none stands for all.
	Modes []string `yaml:"modes"`
	// Steps are the requests, in order.
	Steps []Step `yaml:"steps"`

	File string `yaml:"-"`
}

// StubAnswer is what the stub does with a request.
type StubAnswer struct {
	Raw string `yaml:"raw"`
	// Then is "close" where the stub closes the connection after the answer without having said so.
	Then string `yaml:"then"`
}

// runs reports whether the case is for an engine.
func (c *Case) runs(engine string) bool {
	return (len(c.Stub) > 0) == (engine == stubName) && c.Not[engine] == ""
}

// Step is one request and what its answer must be.
type Step struct {
	// Request is the request line without its version: "PUT /{index}/_doc/1". In all of a step's texts {index} stands for the
	// name of a fresh index, {index}x for another that begins like it, and {name} for what an earlier step saved.
	Request string `yaml:"request"`
	// Headers are sent in their order, as "Name: value". A body without a Content-Type among them goes as JSON.
	Headers []string `yaml:"headers"`
	// Body is sent with a Content-Length. Lines, if given, are the body's lines with a newline after each.
	Body  *string  `yaml:"body"`
	Lines []string `yaml:"lines"`
	// Send changes how the body goes: "chunked", "gzip", "hex" (the body is written in hex) or "expect" (sends
	// Expect: 100-continue and waits for the engine's word), in any combination.
	Send []string `yaml:"send"`
	// Raw is sent as it is instead of all of the above: bytes with Go's escapes.
	Raw string `yaml:"raw"`
	// Pause closes the connection before the step, as an idle client would find it.
	Reconnect bool `yaml:"reconnect"`

	// Expect is what every engine answers.
	Expect Expect `yaml:"expect"`
	// On replaces parts of Expect for some engines; names may be joined with commas.
	On map[string]Expect `yaml:"on"`
	// Save keeps parts of the answer under a name: a dotted path into the JSON body, or header:Name.
	Save map[string]string `yaml:"save"`
	// Vary are regular expressions for what differs between two runs of the step on the same engine.
	Vary []string `yaml:"vary"`
}

// Expect is what an answer must have. What isn't given isn't looked at.
type Expect struct {
	Status int `yaml:"status"`
	// Headers: a value, "*" for any, "!" for none, or a regular expression between slashes.
	Headers map[string]string `yaml:"headers"`
	// JSON is matched as matchJSON says.
	JSON string `yaml:"json"`
	// Body is the whole body. Contains are parts of it.
	Body     *string  `yaml:"body"`
	Contains []string `yaml:"contains"`
	// Empty wants no body.
	Empty bool `yaml:"empty"`
	// Closed wants the connection closed after the answer.
	Closed bool `yaml:"closed"`
}

// with returns the expectation for an engine.
func (s *Step) expect(engine string) Expect {
	e := s.Expect
	for names, o := range s.On {
		if !slices.Contains(strings.Split(names, ","), engine) {
			continue
		}
		if o.Status != 0 {
			e.Status = o.Status
		}
		if o.Headers != nil {
			e.Headers = o.Headers
		}
		if o.JSON != "" || o.Body != nil || o.Contains != nil || o.Empty {
			e.JSON, e.Body, e.Contains, e.Empty = o.JSON, o.Body, o.Contains, o.Empty
		}
	}
	return e
}

// Load reads all cases of a folder. Unknown keys, unknown engines and names used twice are errors.
func Load(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("no cases in " + dir)
	}
	var all []Case
	seen := make(map[string]bool)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var cases []Case
		if err := yaml.Load(text, &cases, yaml.WithKnownFields()); err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		for i := range cases {
			c := &cases[i]
			c.File = filepath.Base(f)
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", f, c.Name, err)
			}
			if seen[c.Name] {
				return nil, fmt.Errorf("%s: %s: the name is taken", f, c.Name)
			}
			seen[c.Name] = true
		}
		all = append(all, cases...)
	}
	return all, nil
}

func (c *Case) check() error {
	if c.Name == "" || len(c.Steps) == 0 {
		return errors.New("a case has a name and steps")
	}
	for name, why := range c.Not {
		if !slices.Contains(Engines, name) || why == "" {
			return fmt.Errorf("not: %q is no engine, or the reason is missing", name)
		}
	}
	if !slices.Contains([]string{"", "direct", "proxy"}, c.Via) {
		return fmt.Errorf("via: %q", c.Via)
	}
	for _, a := range c.Stub {
		if a.Then != "" && a.Then != "close" {
			return fmt.Errorf("stub: then: %q", a.Then)
		}
	}
	for i := range c.Steps {
		if err := c.Steps[i].check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *Step) check() error {
	if (s.Request == "") == (s.Raw == "") {
		return errors.New("either request or raw")
	}
	for names := range s.On {
		for _, n := range strings.Split(names, ",") {
			if !slices.Contains(Engines, n) {
				return fmt.Errorf("on: %q is no engine", n)
			}
		}
	}
	for _, how := range s.Send {
		if !slices.Contains([]string{"chunked", "gzip", "hex", "expect"}, how) {
			return fmt.Errorf("send: %q", how)
		}
	}
	return nil
}

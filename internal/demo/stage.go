package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"optimist/internal/config"
	"optimist/internal/demo/app"
	"optimist/internal/embedded"
	"optimist/internal/roundtrip"
)

// Optimist starts an optimist with a configuration and returns the base URL of its data port, and what ends it.
type Optimist func(ctx context.Context, c *config.Config) (url string, stop func() error, err error)

// Options adjust the demonstration. Optimist, Workers and Rounds are required.
type Options struct {
	Optimist Optimist
	// Upstream is the base URL of a real engine. Empty: the embedded one. On a real one an index of its own is made, and deleted in
	// the end.
	Upstream string
	// Once ends the demonstration after the table, instead of serving on until the context ends.
	Once bool
	// Workers is how many work at once, and Rounds how often each reads and writes.
	Workers, Rounds int
	// Terminal says that the output is a terminal, on which progress can be drawn.
	Terminal bool
}

// stage is one run of the demonstration: the engine, the index and the optimist that it uses.
type stage struct {
	Options
	out    io.Writer
	engine string // the engine's base URL
	title  string // what the engine calls itself
	index  string
	proxy  string // optimist's base URL
}

// rules is the rule of the demonstration. The counter needs it: without it, two writers that each add 1 to 7 would both store 8.
const rules = `rules:
  - name: demo
    merge:
      paths: {` + app.CounterPath + `: sum}
`

// configuration returns optimist's configuration: the defaults, a free port, and the rule. Warnings aren't logged: optimist would warn of
// numbers that may be counters, and the table shows better whether anything was lost.
func (s *stage) configuration() (*config.Config, error) {
	text := "listen: 127.0.0.1:0\nadmin: \"\"\nlog: {level: error}\n" + rules
	return config.Parse("", []byte(text), config.Overrides{Upstream: []string{s.engine}})
}

func (s *stage) banner() string {
	where := "The engine is " + s.title + " at " + s.engine + ". The demo uses the index " + s.index + ", and deletes it at the end."
	if s.Upstream == "" {
		where = "The engine is in memory: its data is lost at the end. `optimist demo --upstream URL` uses a real one."
	}
	return fmt.Sprintf(`optimist demo: %d workers read a document, change it and write it back whole, %d times each. They don't use versions.
%s
One rule is configured: changes of the counter add up. Fields and lists need no rule.

%s`, s.Workers, s.Rounds, where, indent(strings.TrimSpace(rules)))
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// open starts the engine in memory, or asks the given engine what it is, and makes the index there. The returned function undoes that. It
// is never nil.
func (s *stage) open(ctx context.Context) (end func() error, err error) {
	end = func() error { return nil }
	if s.Upstream == "" {
		if end, err = s.embed(); err != nil {
			return end, err
		}
	} else {
		s.engine = strings.TrimRight(s.Upstream, "/")
	}
	if err := s.introduce(ctx); err != nil {
		return end, err
	}
	if s.Upstream == "" {
		return end, nil
	}
	return s.deleteIndex, s.makeIndex(ctx)
}

// embed serves an engine in memory on a free port.
func (s *stage) embed() (end func() error, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return func() error { return nil }, fmt.Errorf("port for the embedded engine: %w", err)
	}
	e := embedded.New(embedded.Options{})
	served := make(chan error, 1)
	go func() { served <- e.Serve(ln) }()
	s.engine = "http://" + ln.Addr().String()
	return func() error { return errors.Join(e.Close(), <-served) }, nil
}

// introduce asks the engine what it is.
func (s *stage) introduce(ctx context.Context) error {
	var root struct {
		Version struct{ Distribution, Number string }
	}
	body, err := send(ctx, http.MethodGet, s.engine+"/", "")
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("no engine answers at %s: %w", s.engine, failed.Err)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, &root); err != nil {
		return fmt.Errorf("%s doesn't answer as an engine does; --upstream is for the URL of one", s.engine)
	}
	s.title = "Elasticsearch " + root.Version.Number
	if root.Version.Distribution == "opensearch" {
		s.title = "OpenSearch " + root.Version.Number
	}
	return nil
}

// makeIndex makes an index of our own. Its documents aren't to be searched, so their fields need no mapping.
func (s *stage) makeIndex(ctx context.Context) error {
	whole, cancel := app.Whole(ctx)
	defer cancel()
	_, err := send(whole, http.MethodPut, s.engine+"/"+s.index,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"dynamic":false}}`)
	return errors.Join(err, ctx.Err())
}

// deleteIndex deletes it, also when the demonstration was interrupted, and when nobody knows whether the engine has made it.
func (s *stage) deleteIndex() error {
	ctx, cancel := context.WithTimeout(context.Background(), app.Patience)
	defer cancel()
	_, err := send(ctx, http.MethodDelete, s.engine+"/"+s.index+"?ignore_unavailable=true", "")
	return err
}

// send sends one request and returns the answer's body. Any status but 200 and 201 is an error.
func send(ctx context.Context, method, url, body string) ([]byte, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	a, err := roundtrip.Do(ctx, http.DefaultClient, roundtrip.Request{Method: method, URL: url, Header: header, Body: []byte(body)})
	switch {
	case err != nil:
		return nil, err
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		return nil, fmt.Errorf("%s %s: %d %s", method, url, a.Status, bytes.TrimSpace(a.Body))
	}
	return a.Body, nil
}

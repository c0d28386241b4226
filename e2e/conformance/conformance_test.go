package conformance

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/internal/embedded"
	"optimist/internal/upstream"
	"optimist/proxy"
)

// kinds are the real engines under the names of the cases.
var kinds = map[string]engine.Kind{"elasticsearch9": engine.ES9, "elasticsearch7": engine.ES7, "opensearch": engine.OpenSearch38}

// address returns where the engine listens.
func address(t *testing.T, name string) string {
	if name != "embedded" {
		return strings.TrimPrefix(engine.Shared(t, kinds[name]).URL, "http://")
	}
	e := embedded.New(embedded.Options{})
	ln := listen(t)
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// pass is a proxy that intercepts nothing in front of an engine.
func pass(t *testing.T, engine string) string {
	t.Helper()
	up, err := upstream.New(upstream.Config{URLs: []string{"http://" + engine}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := proxy.New(proxy.Options{Upstream: up})
	if err != nil {
		t.Fatal(err)
	}
	ln := listen(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		up.Close()
	})
	return ln.Addr().String()
}

func load(t *testing.T) []Case {
	t.Helper()
	cases, err := Load("cases")
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// report prints the line that the notes quote: tests that pass would say nothing.
func report(t *testing.T, what, on string, ran, steps, differences int) {
	t.Helper()
	fmt.Printf("conformance: %s: %d cases, %d requests on %s, %d differences\n", what, ran, steps, on, differences)
}

// each runs every case of one half on every engine and counts.
func each(t *testing.T, what string, skip func(*Case) bool, front func(t *testing.T, address string) func(c *Case, engine string) []string) {
	for _, name := range Engines {
		t.Run(name, func(t *testing.T) {
			test := front(t, address(t, name))
			ran, steps, differences := 0, 0, 0
			for _, c := range load(t) {
				if c.Not[name] != "" || skip(&c) {
					continue
				}
				ran++
				steps += len(c.Steps)
				t.Run(c.Name, func(t *testing.T) {
					bad := test(&c, name)
					differences += len(bad)
					for _, m := range bad {
						t.Errorf("%s: %s", c.File, m)
					}
				})
			}
			report(t, what, name, ran, steps, differences)
		})
	}
}

func TestEnginesAnswerAsTheCasesSay(t *testing.T) {
	each(t, "direct", func(c *Case) bool { return c.Via == "proxy" }, func(_ *testing.T, address string) func(*Case, string) []string {
		return func(c *Case, engine string) []string { return Check(c, engine, address) }
	})
}

func TestPassingThroughChangesNothing(t *testing.T) {
	each(t, "passed through", func(c *Case) bool { return c.Via == "direct" }, func(t *testing.T, direct string) func(*Case, string) []string {
		proxied := pass(t, direct)
		return func(c *Case, engine string) []string { return Compare(c, engine, direct, proxied, Policy{}) }
	})
}

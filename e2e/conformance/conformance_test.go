package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// kinds are the real engines under the names of the cases.
var kinds = map[string]engine.Kind{"elasticsearch9": engine.ES9, "elasticsearch7": engine.ES7, "opensearch": engine.OpenSearch38}

// mode is what optimist may do in front of an engine, and what it may add to answers then.
type mode struct {
	name   string
	policy Policy
}

// modesFor returns the modes that an engine's cases run in. What observe changes doesn't depend on the engine: the real ones see
// it in long runs only.
func modesFor(engine string) []mode {
	modes := []mode{
		{"off", Policy{}},
		{"guard", Policy{Own: []string{"optimist-", "etag"}, Plain: true}},
	}
	if engine == "embedded" || engine == stubName || os.Getenv("E2E_LONG") == "1" {
		modes = append(modes, mode{"observe", Policy{}})
	}
	return modes
}

// address returns where the engine listens.
func address(t *testing.T, name string) string {
	if name == "embedded" {
		return strings.TrimPrefix(engine.Embedded(t), "http://")
	}
	return strings.TrimPrefix(engine.Shared(t, kinds[name]).URL, "http://")
}

// bench is one engine with optimist in front of it in each mode, and what came of the cases there.
type bench struct {
	name, direct string
	stub         *stub // nil for engines
	modes        []mode
	proxies      []string // beside modes

	mu     sync.Mutex
	counts []tally // the engine's own, then those through the proxies
	made   []string
}

// tally counts what the last line says.
type tally struct{ cases, requests, differences int }

// TestConformance runs every case on every engine, and the same through optimist in each mode.
func TestConformance(t *testing.T) {
	cases, err := Load("cases")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{stubName}, Engines...) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, name)
			t.Run("case", func(t *testing.T) { // returns when its parallel tests have
				for i := range cases {
					if c := &cases[i]; c.runs(name) {
						t.Run(c.Name, func(t *testing.T) {
							t.Parallel()
							b.run(t, c)
						})
					}
				}
			})
			if b.stub == nil {
				if err := drop(b.direct, b.made); err != nil {
					t.Error(err)
				}
			}
			b.report()
		})
	}
}

func newBench(t *testing.T, name string) *bench {
	b := &bench{name: name, modes: modesFor(name)}
	b.counts = make([]tally, 1+len(b.modes))
	if name == stubName {
		s, err := newStub()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		b.stub = s
		b.direct = b.stub.address()
	} else {
		b.direct = address(t, name)
	}
	for _, m := range b.modes {
		p := optimist.Start(t, optimist.Options{Upstream: []string{"http://" + b.direct}, Args: []string{"--mode", m.name}})
		b.proxies = append(b.proxies, strings.TrimPrefix(p.URL, "http://"))
	}
	return b
}

// report prints the line that the notes quote: what a test that passes logs is not shown.
func (b *bench) report() {
	own := b.counts[0]
	fmt.Printf("conformance: %s: %d cases, %d requests, %d differences", b.name, own.cases, own.requests, own.differences)
	for i, m := range b.modes {
		fmt.Printf("; through %s: %d cases, %d differences", m.name, b.counts[i+1].cases, b.counts[i+1].differences)
	}
	fmt.Println()
}

func (b *bench) run(t *testing.T, c *Case) {
	var own *told
	if c.Via != "proxy" {
		own = tell(c, b.direct, b.stub)
		b.note(t, 0, own, own.unmet(b.name))
	}
	if c.Via == "direct" {
		return
	}
	for i, m := range b.modes {
		if len(c.Modes) > 0 && !slices.Contains(c.Modes, m.name) {
			continue
		}
		got := tell(c, b.proxies[i], b.stub)
		if own == nil {
			b.note(t, i+1, got, got.unmet(b.name))
		} else {
			b.note(t, i+1, got, compare(own, got, m.policy))
		}
	}
}

func (b *bench) note(t *testing.T, way int, got *told, bad []string) {
	what := "direct"
	if way > 0 {
		what = "through " + b.modes[way-1].name
	}
	for _, m := range bad {
		t.Errorf("%s: %s: %s", got.run.c.File, what, m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := &b.counts[way]
	n.cases++
	n.requests += len(got.run.c.Steps)
	n.differences += len(bad)
	b.made = append(b.made, got.run.indices()...)
}

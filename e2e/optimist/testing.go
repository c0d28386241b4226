package optimist

import (
	"context"
	"strconv"
	"strings"
	"testing"
)

// Start runs the program for a test, which ends it. It has to end well: a crash fails the test.
func Start(t testing.TB, o Options) *Process {
	t.Helper()
	p, err := Run(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("optimist's log:\n%s", p.Log())
		}
	})
	return p
}

// Metric is the sum of a metric's values over all series that have the labels, each as name="value". A metric that isn't there is 0.
func (p *Process) Metric(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	status, body, err := p.admin(context.Background(), "/metrics")
	if err != nil || status != 200 {
		t.Fatalf("metrics: %d %v", status, err)
	}
	var sum float64
	for line := range strings.Lines(body) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(line, "#") || !of(series, name, labels) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metrics: %q: %v", line, err)
		}
		sum += v
	}
	return sum
}

// of reports whether a series belongs to the metric and has all labels.
func of(series, name string, labels []string) bool {
	rest, ok := strings.CutPrefix(series, name)
	if !ok || rest != "" && rest[0] != '{' {
		return false
	}
	for _, l := range labels {
		if !strings.Contains(rest, l) {
			return false
		}
	}
	return true
}

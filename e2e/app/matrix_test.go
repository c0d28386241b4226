package app_test

import (
	"fmt"
	"testing"

	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

func sessionsName(s app.Sessions) string {
	return [...]string{"unnamed", "named", "pooled", "credentialed"}[s]
}

// TestApplicationLosesWithoutOptimist is the control: the other tests could not fail if this didn't lose.
func TestApplicationLosesWithoutOptimist(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		for _, shape := range app.Shapes() {
			t.Run(shape.String(), func(t *testing.T) {
				r, _ := run(t, &app.Application{URLs: []string{e.url}, Path: "/" + index + "/_doc/" + shape.String(), Shape: shape, Workers: 16, Rounds: rounds(16)})
				if r.Lost == 0 || r.Refused != 0 || r.Errors != 0 {
					t.Errorf("the control is to lose, and nothing else: %s", &r)
				}
			})
		}
	})
}

func TestUnmodifiedApplicationLosesNothing(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		proxies := proxies(t, e)
		for _, shape := range app.Shapes() {
			for _, workers := range []int{16, 64} {
				for _, sessions := range []app.Sessions{app.Named, app.Unnamed, app.Pooled} {
					name := fmt.Sprintf("%s/%d/%s", shape, workers, sessionsName(sessions))
					t.Run(name, func(t *testing.T) {
						r, o := run(t, &app.Application{
							URLs: []string{proxies[shape].URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%d-%d", index, shape, workers, sessions),
							Shape: shape, Workers: workers, Rounds: rounds(workers), Sessions: sessions,
						})
						flawless(t, &r)
						spoken(t, o)
						if want := int64(workers * rounds(workers)); r.Acknowledged != want {
							t.Errorf("%d changes acknowledged, want %d", r.Acknowledged, want)
						}
					})
				}
			}
		}
	})
}

// proxies are optimist with the rule for counters, and without any for what needs none.
func proxies(t *testing.T, e target) map[app.Shape]*optimist.Process {
	t.Helper()
	plain := optimistFor(t, e, "")
	return map[app.Shape]*optimist.Process{app.Fields: plain, app.List: plain, app.Counter: optimistFor(t, e, sum)}
}

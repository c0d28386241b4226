package app_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"optimist/e2e/optimist"
	"optimist/internal/demo/app"
)

// strict is what a proxy that may be killed needs: what clients read before it started is no base any more, and a write from such a
// read would erase what was acknowledged since.
const strict = `rules:
  - name: strict
    base: {lost: reject}
    merge: {paths: {` + app.CounterPath + `: sum}}
`

// TestKilledProxyForgetsNothingThatItAcknowledged: the proxy is killed under load, and started again on the same port; clients go on, and
// take a broken connection for an unknown outcome.
func TestKilledProxyForgetsNothingThatItAcknowledged(t *testing.T) {
	const kills = 3
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, strict)
		for _, guard := range []app.Guard{app.Unguarded, app.ByMatch} {
			for _, shape := range app.Shapes() {
				t.Run(shape.String()+map[app.Guard]string{app.ByMatch: "/if-match"}[guard], func(t *testing.T) {
					a := &app.Application{
						URLs: []string{p.URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%d", index, shape, guard),
						Shape: shape, Workers: 16, Rounds: 2 * rounds(16), Sessions: app.Named, Guard: guard,
					}
					r, _ := runWithKills(t, a, p, kills)
					lossless(t, &r)
					if r.Errors == 0 {
						t.Error("nobody noticed: nothing was tested")
					}
					if r.Refused != r.Statuses[409] {
						t.Errorf("refused otherwise than by a conflict: %s", &r)
					}
				})
			}
		}
	})
}

// runWithKills lets an application work, to its end. The proxy is killed so many times meanwhile, and started again on the same port.
func runWithKills(t *testing.T, a *app.Application, p *optimist.Process, kills int) (app.Result, *outcomes) {
	t.Helper()
	due := make(chan struct{}, kills)
	var ended atomic.Int64
	every := int64(a.Workers * a.Rounds / (kills + 1))
	a.Round = func() {
		if n := ended.Add(1); n%every == 0 && n/every <= int64(kills) {
			due <- struct{}{}
		}
	}
	again := make(chan error, 1)
	go func() {
		for range kills {
			<-due
			p.Kill()
			if err := p.Start(t.Context()); err != nil {
				again <- err
				return
			}
		}
		again <- nil
	}()
	r, o := run(t, a)
	if err := <-again; err != nil {
		t.Fatal(err)
	}
	return r, o
}

package app_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"optimist/internal/demo/app"
)

// carts is the configuration for the shape that counts beside its list.
const carts = `rules:
  - {name: carts, merge: {paths: {/count: sum}}}
`

// TestWhatWasReadSurvivesKills: the proxy is killed under load, and started again on the same port and with the same file. Its clients send a
// write again, as it was, whose connection broke, and read again after a conflict. Without the file, such a write goes unguarded, and erases
// what others have written since.
func TestWhatWasReadSurvivesKills(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		if e.name != "embedded" && !long() {
			return // the proxy's matter alone
		}
		index := e.index(t)
		for _, sessions := range []app.Sessions{app.Named, app.Unnamed} {
			for _, shape := range []app.Shape{app.Cart, app.List} {
				t.Run(fmt.Sprintf("%s/named=%v", shape, sessions == app.Named), func(t *testing.T) {
					file := filepath.Join(t.TempDir(), "sessions")
					r, o := killed(t, e, fmt.Sprintf("/%s/_doc/%s-%d", index, shape, sessions), "sessions: {file: "+file+"}\n", shape, sessions)
					lossless(t, r)
					if r.Refused != r.Statuses[409] {
						t.Errorf("refused otherwise than by a conflict: %s", r)
					}
					if o.restarted == 0 {
						t.Error("no write was guarded by the file: nothing was tested")
					}
				})
			}
		}
	})
}

// TestWhatWasReadIsLostWithoutTheFile is the control. In ten runs, at least 58 of 800 changes were lost.
func TestWhatWasReadIsLostWithoutTheFile(t *testing.T) {
	e := inMemory(t)
	index := e.index(t)
	for _, sessions := range []app.Sessions{app.Named, app.Unnamed} {
		r, _ := killed(t, e, fmt.Sprintf("/%s/_doc/cart-%d", index, sessions), "", app.Cart, sessions)
		t.Logf("named=%v: %d of %d acknowledged changes lost", sessions == app.Named, r.Lost, r.Acknowledged)
		if r.Lost == 0 {
			t.Error("the control is to lose")
		}
	}
}

// killed runs 16 workers that resend, through a proxy that is killed 5 times.
func killed(t *testing.T, e target, path, config string, shape app.Shape, sessions app.Sessions) (*app.Result, *outcomes) {
	t.Helper()
	const kills = 5
	p := optimistFor(t, e, config+carts)
	a := &app.Application{
		URLs: []string{p.URL}, Store: e.url, Path: path, Shape: shape, Workers: 16, Rounds: 2 * rounds(16), Sessions: sessions, Resends: true,
	}
	r, o := runWithKills(t, a, p, kills)
	return &r, o
}

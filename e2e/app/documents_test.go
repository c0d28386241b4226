package app_test

import (
	"fmt"
	"testing"

	"optimist/internal/demo/app"
)

// sums is the configuration for documents as people have them: what their numbers are.
const sums = `rules:
  - {name: documents, merge: {paths: {` + app.CountPath + `: sum, ` + app.TotalPath + `: sum}}}
`

// mistakenDocuments are how many changes in 400 may be wrong. In 40 and 80 runs of each shape, in memory and on three engines, at most 3 of an
// order and of a ticket were, and none of a cart and a profile; in most runs none. But one mistake may cost as many changes as there are
// other workers: the base is then older than what all of them wrote since, and one run in some hundred of an order lost 11 or 12 at once.
// By distance alone 26 to 112 changes of a cart were wrong.
var mistakenDocuments = map[app.Shape]int64{app.Cart: 4, app.Order: 16, app.Ticket: 16, app.Profile: 4}

// TestDocumentsOfUnnamedSessionsLoseNothing: nothing tells the workers apart but what they send. While others only look, few changes may be
// wrong, and then the answers say that they are guesses.
func TestDocumentsOfUnnamedSessionsLoseNothing(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, sums)
		crowds := []int{16}
		if long() {
			crowds = append(crowds, 64)
		}
		for _, shape := range app.Documents() {
			for _, workers := range crowds {
				for _, sessions := range []app.Sessions{app.Unnamed, app.Pooled} {
					for _, readers := range []int{0, 1, 4} {
						if e.name != "embedded" && !long() && (sessions == app.Unnamed || readers == 1) {
							continue // one pool tells the least, and real engines take their time
						}
						name := fmt.Sprintf("%s/%d/%s/%d-readers", shape, workers, sessionsName(sessions), readers)
						t.Run(name, func(t *testing.T) {
							r, o := run(t, &app.Application{
								URLs: []string{p.URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%d-%d-%d", index, shape, workers, sessions, readers),
								Shape: shape, Workers: workers, Rounds: rounds(workers), Sessions: sessions, Readers: readers,
							})
							spoken(t, o)
							if r.Refused != 0 || r.Errors != 0 || r.Damaged != nil {
								t.Errorf("a guess may cost precision, nothing else: %s", &r)
							}
							fewer(t, &r, o, mistakenDocuments[shape])
						})
					}
				}
			}
		}
	})
}

// fewer fails the test if more than so many changes in 400 are wrong, or if more are than answers say that they are guesses.
func fewer(t *testing.T, r *app.Result, o *outcomes, most int64) {
	t.Helper()
	if wrong := r.Lost + r.Invented; wrong > most*r.Rounds/400 || wrong > int64(o.ambiguous) {
		t.Errorf("%d wrong, with %d answers that say ambiguous: %s", wrong, o.ambiguous, r)
	}
}

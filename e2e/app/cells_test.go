package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/internal/demo/app"
)

// mistakes are how many changes in a hundred rounds may be lost or invented at most, where nothing tells the workers apart.
type mistakes map[app.Shape]int

// habit is what an application does beside reading, changing and writing.
type habit struct {
	name string
	set  func(a *app.Application)
	mistakes
}

// habits are those of real applications. Their mistakes are about twice the most that 88 runs of 400 rounds have shown, in memory
// and on three engines: 12, 13 and 7 of 400 changes to fields, a counter and a list. A counter that idle saves are mixed with is
// what nobody can guess: 557 of 733, and 150 most often.
var habits = []habit{
	{"reads-for-display", func(a *app.Application) { a.Looks = 10 }, mistakes{app.Fields: 1, app.Counter: 8, app.List: 1}},
	// Of the counter mostly none is wrong: but one mistake leads to others, 15 to 60 of 400.
	{"unchanged-saves", func(a *app.Application) { a.Idle = 10 }, mistakes{app.Fields: 3, app.Counter: 25, app.List: 3}},
	{"steps-of-1-to-3", func(a *app.Application) { a.Steps = 3 }, mistakes{app.Fields: 1, app.Counter: 1, app.List: 1}},
	{"all-of-it", func(a *app.Application) { a.Looks, a.Idle, a.Steps = 10, 10, 3 }, mistakes{app.Fields: 7, app.Counter: 250, app.List: 5}},
}

// TestHabitsAreExact where the client's base is known: by the name of its session, or by If-Match.
func TestHabitsAreExact(t *testing.T) {
	known := []struct {
		name string
		app.Sessions
		app.Guard
	}{{"named", app.Named, app.Unguarded}, {"named-if-match", app.Named, app.ByMatch}, {"if-match", app.Unnamed, app.ByMatch}}
	eachInferenceTarget(t, func(t *testing.T, e target) {
		index, proxies := e.index(t), proxies(t, e)
		for _, habit := range habits {
			for _, shape := range app.Shapes() {
				for _, k := range known {
					if k.name == "named-if-match" && e.name != "embedded" && !long() {
						continue // the two together are the proxy's matter alone
					}
					t.Run(habit.name+"/"+shape.String()+"/"+k.name, func(t *testing.T) {
						a := &app.Application{
							URLs: []string{proxies[shape].URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%s-%s", index, habit.name, shape, k.name),
							Shape: shape, Workers: 16, Rounds: rounds(16), Sessions: k.Sessions, Guard: k.Guard,
						}
						habit.set(a)
						r, o := run(t, a)
						flawless(t, &r)
						spoken(t, o)
					})
				}
			}
		}
	})
}

// TestHabitsOfUnnamedSessionsAreGuessed: nothing tells the workers apart, so that a base can be somebody else's. That costs few
// changes, nothing is refused, and the answers say that they are guesses.
func TestHabitsOfUnnamedSessionsAreGuessed(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		index, proxies := e.index(t), proxies(t, e)
		for _, habit := range habits {
			for _, shape := range app.Shapes() {
				t.Run(habit.name+"/"+shape.String(), func(t *testing.T) {
					a := &app.Application{
						URLs: []string{proxies[shape].URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%s", index, habit.name, shape),
						Shape: shape, Workers: 16, Rounds: rounds(16),
					}
					habit.set(a)
					r, o := run(t, a)
					spoken(t, o)
					if r.Refused != 0 || r.Errors != 0 || r.Damaged != nil {
						t.Errorf("a guess may cost precision, nothing else: %s", &r)
					}
					few(t, &r, o, habit.mistakes[shape])
				})
			}
		}
	})
}

// few fails the test if more than so many changes in a hundred rounds are wrong, or if some are and no answer says that it was a
// guess.
func few(t *testing.T, r *app.Result, o *outcomes, percent int) {
	t.Helper()
	if wrong := r.Lost + r.Invented; wrong > r.Rounds*int64(percent)/100 || wrong > 0 && o.ambiguous == 0 {
		t.Errorf("%d wrong, at most %d in 100 are expected, with %d answers that say ambiguous: %s", wrong, percent, o.ambiguous, r)
	}
}

// TestUnchangedSaveIsExactInANamedSessionAndSaidToBeAGuessElsewhere: one client, one request at a time. It looked at the document
// once, for display; since then somebody has written; now it reads it again and saves it as it is. A named session knows that the
// newer read is the base. An unnamed one may be many clients: a read that was never written back could be the base of what looks
// like no change (a counter that two raise at once), so the older read is taken, and the answer says that this was a guess.
func TestUnchangedSaveIsExactInANamedSessionAndSaidToBeAGuessElsewhere(t *testing.T) {
	e := inMemory(t)
	index := e.index(t)
	p := optimistFor(t, e, sum)
	for name, docs := range map[string][2]string{
		"fields":  {`{"a":0,"b":0,"c":0}`, `{"a":1,"b":2,"c":3}`},
		"counter": {`{"stock":0}`, `{"stock":50}`},
		"list":    {`{"history":[]}`, `{"history":[1,2,3]}`},
	} {
		for _, session := range []string{"", "desk-7"} {
			doc := "/" + index + "/_doc/" + name + session
			header := http.Header{}
			if session != "" {
				header.Set("Optimist-Session", session)
			}
			e.send(t, 201, "PUT", doc, docs[0])
			request(t, 200, "GET", p.URL+doc, "", header)
			e.send(t, 200, "PUT", doc, docs[1])
			request(t, 200, "GET", p.URL+doc, "", header)
			e.send(t, 200, "PUT", doc, docs[1]) // and somebody writes again meanwhile
			a := request(t, 200, "PUT", p.URL+doc, docs[1], header)
			guess := strings.Contains(a.outcome(), ";ambiguous")
			if session == "" && !guess {
				t.Errorf("%s: a guess that isn't said: %s", name, a.outcome())
			}
			if got := e.source(t, doc); session != "" && (got != docs[1] || guess) {
				t.Errorf("%s: %s, outcome %s", name, got, a.outcome())
			}
		}
	}
}

// TestTwoProxiesAndADirectWriterShareADocument: the proxies know nothing of each other, and nothing of the third.
func TestTwoProxiesAndADirectWriterShareADocument(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, left, right := e.index(t), optimistFor(t, e, patient), optimistFor(t, e, patient)
		for _, shape := range app.Shapes() {
			t.Run(shape.String(), func(t *testing.T) {
				path := "/" + index + "/_doc/" + shape.String()
				apps := []*app.Application{
					{URLs: []string{left.URL}, First: 0, Workers: 8, Sessions: app.Named},
					{URLs: []string{right.URL}, First: 8, Workers: 8, Sessions: app.Named},
					{URLs: []string{e.url}, First: 16, Workers: 2, Guard: app.ByNumbers},
				}
				if err := (&app.Application{URLs: []string{e.url}, Path: path, Shape: shape, Workers: 18}).Prepare(t.Context()); err != nil {
					t.Fatal(err)
				}
				tallies := make([]*app.Tally, len(apps))
				var wg sync.WaitGroup
				for i, a := range apps {
					a.Path, a.Store, a.Shape, a.Rounds = path, e.url, shape, rounds(16)
					wg.Go(func() { tallies[i] = work(t, a) })
				}
				wg.Wait()
				r := count(t, apps[0], tallies...)
				t.Log(&r)
				flawless(t, &r)
			})
		}
	})
}

// TestRepeatedPutAfterATimeoutCountsOnce: the client gives up, and sends the same again, while its first try is still out.
func TestRepeatedPutAfterATimeoutCountsOnce(t *testing.T) {
	eachInferenceTarget(t, func(t *testing.T, e target) {
		const workers = 8
		const patience = 100 * time.Millisecond
		index := e.index(t)
		between := slow(t, e, 10, 5*patience/2) // no answer comes at the moment at which a client gives up
		p := optimistFor(t, between, sum)
		for _, shape := range app.Shapes() {
			for _, way := range []struct {
				name string
				app.Sessions
				app.Guard
			}{{"named", app.Named, app.Unguarded}, {"unnamed", app.Unnamed, app.Unguarded}, {"if-match", app.Unnamed, app.ByMatch}} {
				t.Run(shape.String()+"/"+way.name, func(t *testing.T) {
					r, o := run(t, &app.Application{
						URLs: []string{p.URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%s-%s", index, shape, way.name),
						Shape: shape, Workers: workers, Rounds: rounds(16), Sessions: way.Sessions, Guard: way.Guard, Timeout: patience,
					})
					if r.Repeats == 0 {
						t.Error("nobody repeated a write: nothing was tested")
					}
					if r.Refused != 0 && way.Guard == app.Unguarded || r.Unknown != 0 || r.Damaged != nil {
						t.Errorf("a repeated write is refused, or its end isn't known: %s", &r)
					}
					if way.Sessions == app.Named {
						lossless(t, &r)
					}
					if way.Guard == app.ByMatch {
						// A client that gives up just when its answer is there repeats a change that isn't in doubt any more. The
						// repeat is a conflict, or another client's equal change. On a busy machine that is one repeat of 40.
						if r.Lost != 0 || r.Invented > r.Refused+r.Repeats/16 || r.Refused > r.Repeats/4 {
							t.Errorf("what names its revision counts once: %s", &r)
						}
						return
					}
					few(t, &r, o, 25) // most often none, and 32 of 200 at the most in 90 runs
				})
			}
		}
	})
}

// TestEqualChangesWithATimeoutOfTheirOwnBothCount: the time that a request gives the engine is over with its answer, and its
// client is not.
func TestEqualChangesWithATimeoutOfTheirOwnBothCount(t *testing.T) {
	e := inMemory(t)
	doc := "/" + e.index(t) + "/_doc/counter"
	p := optimistFor(t, slow(t, e, 1, 50*time.Millisecond), sum)
	e.send(t, 201, "PUT", doc, `{"stock":0}`)
	for range 2 {
		request(t, 200, "GET", p.URL+doc, "", nil)
	}
	for range 2 {
		request(t, 200, "PUT", p.URL+doc+"?timeout=1m", `{"stock":1}`, nil)
	}
	if got := e.source(t, doc); got != `{"stock":2}` {
		t.Errorf("%s", got)
	}
}

// TestLostAnswersInventNothing: the engine has written, and nobody hears of it.
func TestLostAnswersInventNothing(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		p := optimistFor(t, forgetful(t, e, 20), sum)
		for _, shape := range app.Shapes() {
			t.Run(shape.String(), func(t *testing.T) {
				r, _ := run(t, &app.Application{
					URLs: []string{p.URL}, Store: e.url, Path: "/" + index + "/_doc/" + shape.String(),
					Shape: shape, Workers: 16, Rounds: rounds(16), Sessions: app.Named,
				})
				lossless(t, &r)
				if r.Refused != r.Statuses[504] || r.Errors != 0 {
					t.Errorf("what isn't known is a 504: %s", &r)
				}
			})
		}
	})
}

// TestClientsThatBothReadNothingBothCount: of two who make the same document, the second would erase the first. Neither has to
// know whether there is an index.
func TestClientsThatBothReadNothingBothCount(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		for _, clients := range []int{2, 8} {
			p := optimistFor(t, together(t, e, clients), sum)
			for _, shape := range app.Shapes() {
				for _, sessions := range []app.Sessions{app.Named, app.Unnamed} {
					for _, index := range []string{e.index(t), e.absent(t)} {
						t.Run(fmt.Sprintf("%s/%d/%s/%s", shape, clients, sessionsName(sessions), strings.TrimRight(index, "0123456789abcdef")), func(t *testing.T) {
							for n := range 5 {
								a := &app.Application{
									URLs: []string{p.URL}, Store: e.url, Path: fmt.Sprintf("/%s/_doc/%d", index, n),
									Shape: shape, Workers: clients, Rounds: 1, Sessions: sessions,
								}
								r := count(t, a, work(t, a))
								flawless(t, &r)
								if r.Found != int64(clients) {
									t.Errorf("%s", &r)
								}
							}
						})
					}
				}
			}
		}
	})
}

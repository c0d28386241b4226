package write

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// crowd makes w's clients those of one session, who are told apart by their connections. Time runs: who leaves has waited for a
// while.
func (w *world) crowd() {
	var ticks atomic.Int64
	start := time.Now()
	w.store = session.New(session.Options{Left: wire.PeerClosed, Now: func() time.Time {
		return start.Add(time.Duration(ticks.Add(1)) * 20 * time.Millisecond)
	}})
	ticks.Add(int64(time.Hour / (20 * time.Millisecond)))
	w.s = New(Options{Upstream: w.engine, Engine: &es.Client{Upstream: w.engine}, Sessions: w.store})
}

// onlyOne is a client of the crowd with a connection of its own.
type onlyOne struct {
	*client
	ctx   context.Context
	leave func() // returns when it can be seen
	cut   context.CancelFunc
	r     Request
}

// onlyOne makes one.
func (w *world) onlyOne() *onlyOne {
	theirs, ours := connection(w.t)
	o := &onlyOne{client: w.stranger()}
	o.ctx, o.cut = context.WithCancel(wire.WithPeer(w.t.Context(), ours))
	o.leave = func() {
		_ = theirs.Close()
		w.until("the connection is closed", func() bool { return wire.PeerClosed(o.ctx) })
	}
	return o
}

// save is client's, with the connection.
func (o *onlyOne) save(body string) result {
	return o.doRequest(o.ctx, &o.r, "PUT", target1, []byte(body))
}

// starts saves and returns how to have the result.
func (o *onlyOne) starts(body string) (wait func() result) {
	done := make(chan result, 1)
	go func() {
		r := o.save(body)
		o.r.Unanswered().NoteAnswer()
		done <- r
	}()
	return func() result { return <-done }
}

// until returns when it is so.
func (w *world) until(what string, so func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); runtime.Gosched() {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// again has another connection send what me has given up, and returns when that waits for its first try.
func (w *world) again(body string) (wait func() result) {
	w.t.Helper()
	before := w.store.Stats().Waited
	wait = w.onlyOne().starts(body)
	w.until("the repeat waits for its first try", func() bool { return w.store.Stats().Waited > before })
	return wait
}

const (
	asRead   = `{"n":1,"l":0,"m":0}`
	counted  = `{"n":2,"l":0,"m":0}`
	lChanged = `{"n":1,"l":1,"m":0}`
	mChanged = `{"n":1,"l":0,"m":1}`
)

// newCrowd is a world in which three clients of one session have read a document.
func newCrowd(t *testing.T) *world {
	w := newWorld(t, sumRule)
	w.put("1", asRead)
	w.crowd()
	w.warm("1")
	for range 3 {
		w.stranger().read("1")
	}
	return w
}

// settled fails unless the document is as it should be once the last of the three has written, which has its own read for that.
func (w *world) settled(want string) {
	w.t.Helper()
	has(w.t, w.onlyOne().save(mChanged), 200, "merged;attempts=2;base=session")
	same(w.t, w.stored("1"), want)
}

func TestAClientLeavesWhileItsWriteWaitsInALane(t *testing.T) {
	for name, noticed := range map[string]bool{"and is noticed": true, "and isn't noticed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCrowd(t)
				hold, held := w.holdFirst()
				other := w.onlyOne().starts(lChanged)
				<-held
				me := w.onlyOne()
				first := me.starts(counted)
				w.waiting(1)
				me.leave()
				again := w.again(counted)
				if noticed {
					if me.cut(); !errors.Is(first().err, context.Canceled) {
						t.Error("it was written all the same")
					}
				}
				close(hold)
				has(t, other(), 200, "guarded")
				if noticed {
					has(t, again(), 200, "merged")
				} else {
					has(t, first(), 200, "merged")
					has(t, again(), 200, "merged;attempts=0;base=view")
				}
				w.settled(`{"n":2,"l":1,"m":1}`)
			})
		})
	}
}

func TestAClientLeavesWhileItsWriteIsOut(t *testing.T) {
	for name, c := range map[string]struct {
		before func(r *upstream.Request) (*upstream.Response, error)
		after  func(r *upstream.Request, res *upstream.Response) error
		first  func(t *testing.T, r result)
		again  string
		status int
	}{
		"which is acknowledged": {
			first: func(t *testing.T, r result) { has(t, r, 200, "guarded;attempts=1;base=session") },
			again: "merged;attempts=0;base=view", status: 200,
		},
		"which the engine refuses": {
			before: func(*upstream.Request) (*upstream.Response, error) { return answering(403, `{"status":403}`), nil },
			first:  func(t *testing.T, r result) { has(t, r, 403, "guarded") },
			again:  "guarded;attempts=1;base=session", status: 200,
		},
		"whose answer is lost": {
			after: func(*upstream.Request, *upstream.Response) error { return lostError },
			first: func(t *testing.T, r result) {
				if !errors.Is(r.err, ErrUnknownOutcome) {
					t.Errorf("%v", r)
				}
			},
			again: "guarded;attempts=1;base=session", status: 409,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCrowd(t)
			has(t, w.onlyOne().save(lChanged), 200, "guarded")
			w.stranger().read("1")
			var first atomic.Bool
			first.Store(true)
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "PUT" && c.before != nil && first.Swap(false) {
					return c.before(r)
				}
				return nil, nil
			}
			w.engine.after = func(r *upstream.Request, res *upstream.Response) error {
				if r.Method == "PUT" && c.after != nil && first.Swap(false) {
					return c.after(r, res)
				}
				return nil
			}
			hold, held := w.holdFirst()
			me := w.onlyOne()
			body := `{"n":2,"l":1,"m":0}`
			tried := me.starts(body)
			<-held
			me.leave()
			again := w.again(body)
			close(hold)
			c.first(t, tried())
			has(t, again(), c.status, c.again)
			w.settled(`{"n":2,"l":1,"m":1}`)
		})
	}
}

func TestAClientLeavesBeforeItHasBeenAnswered(t *testing.T) {
	for name, told := range map[string]bool{"and repeats after that": true, "and repeats before that": false} {
		t.Run(name, func(t *testing.T) {
			w := newCrowd(t)
			other := w.onlyOne()
			has(t, other.save(lChanged), 200, "guarded;attempts=1;base=session")
			other.r.Unanswered().NoteAnswer()
			me := w.onlyOne()
			has(t, me.save(counted), 200, "merged;attempts=2;base=session")
			me.leave()
			if told {
				me.r.Unanswered().NoteAnswer()
			}
			again := w.onlyOne()
			has(t, again.save(counted), 200, "merged;attempts=0;base=view;ambiguous") // somebody else may have made the same change
			me.r.Unanswered().NoteAnswer()
			again.r.Unanswered().NoteAnswer()
			w.settled(`{"n":2,"l":1,"m":1}`)
		})
	}
}

// TestClientsThatShareAWriteLeave: they all wait in the lane, are written as one, and leave before that is acknowledged.
func TestClientsThatShareAWriteLeave(t *testing.T) {
	for name, late := range map[string]bool{"and repeat at once": false, "and repeat when all is over": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 40
				w := newWorld(t, sumRule)
				w.put("1", `{"n":0}`)
				w.crowd()
				w.warm("1")
				for range clients + 2 {
					w.stranger().read("1")
				}
				body := func(i int) string { return fmt.Sprintf(`{"n":1,"w%d":1}`, i) }
				hold, held := w.holdFirst()
				before := w.onlyOne().starts(`{"n":1,"before":1}`)
				<-held
				all, results := make([]*onlyOne, clients), make([]func() result, clients)
				for i := range all {
					all[i] = w.onlyOne()
					results[i] = all[i].starts(body(i))
					w.waiting(i + 1)
				}
				second, waits := w.holdFirst()
				close(hold)
				<-waits
				has(t, before(), 200, "guarded")
				again := make([]func() result, clients)
				for i := range all {
					if all[i].leave(); !late {
						again[i] = w.again(body(i))
					}
				}
				close(second)
				for i := range all {
					has(t, results[i](), 200, "combined")
				}
				for i := range all {
					if late {
						again[i] = w.onlyOne().starts(body(i))
					}
					has(t, again[i](), 200, "merged;attempts=0;base=view")
				}
				has(t, w.onlyOne().save(`{"n":1,"after":1}`), 200, "merged;attempts=2;base=session")
				if got := gjson.Get(w.stored("1"), "n").Int(); got != clients+2 {
					t.Errorf("%d count of %d: %s", got, clients+2, w.stored("1"))
				}
			})
		})
	}
}

// A write that conflicts whenever it is merged, until its client leaves, isn't counted as merged: nothing of it is stored.
func TestAClientThatLeavesBetweenMergesHasMergedNothing(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":0,"b":0}`)
	c := w.client("a")
	c.read("1")
	ctx, leave := context.WithCancel(t.Context())
	others := 0
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if isWrite(r) {
			if others++; others == 2 {
				leave()
			}
			w.put("1", fmt.Sprintf(`{"a":0,"b":%d}`, others))
		}
		return nil, nil
	}
	got := c.sendContext(ctx, "PUT", "/shop/_doc/1", `{"a":1,"b":0}`)
	if got.err == nil || !strings.HasPrefix(got.outcome, "guarded;attempts=2") {
		t.Errorf("%v: want guarded, as the engine has refused both tries", got)
	}
	same(t, w.stored("1"), `{"a":0,"b":2}`)
}

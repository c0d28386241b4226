package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// failover is an engine whose primary changes. What it is asked about its terms is counted.
type failover struct {
	w     *world
	term  int // what the nodes say
	asked int
	// on is what happens when the write comes: nil for what isn't to be answered otherwise.
	on func(r *upstream.Request) (*upstream.Response, error)
	// other is a node that answers the question in place of the one that is asked, if any.
	other string
	// refused is the status with which the question for the term is answered, if not 200.
	refused int
}

func (w *world) failover() *failover {
	f := &failover{w: w, term: 1}
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		switch {
		case strings.HasPrefix(string(r.Target), "/_cluster/state/metadata/shop"):
			f.asked++
			if f.refused != 0 {
				return answering(f.refused, `{"error":{"type":"security_exception"}}`), nil
			}
			res := answering(200, fmt.Sprintf(`{"metadata":{"indices":{"shop":{"primary_terms":{"0":%d}}}}}`, f.term))
			res.Node = cmp.Or(f.other, r.Node)
			return res, nil
		case (r.Method == "PUT" || r.Method == "DELETE") && f.on != nil:
			return f.on(r)
		}
		return nil, nil
	}
	return f
}

// passOver has the next write applied by a primary that dies before it answers: the engine tries it again on the next one.
// between is what others write in the meantime.
func (f *failover) passOver(between func()) {
	f.on = func(r *upstream.Request) (*upstream.Response, error) {
		f.on = nil
		f.w.engine.handle(r)
		f.term++
		if between != nil {
			between()
		}
		return nil, nil
	}
}

// relabel has the engine name its only term as the second one, from now on.
func (f *failover) relabel() {
	asked := f.w.engine.before
	f.w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		r.Target = bytes.Replace(r.Target, []byte("if_primary_term=2"), []byte("if_primary_term=1"), 1)
		return asked(r)
	}
	f.w.engine.after = func(_ *upstream.Request, res *upstream.Response) error {
		res.Payload = bytes.ReplaceAll(res.Payload, []byte(`"_primary_term":1`), []byte(`"_primary_term":2`))
		return nil
	}
}

const failoverRule = "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}, retry: {max_attempts: %d}}\n"

func TestAConflictWithItsOwnFirstTryCountsOnceAtMost(t *testing.T) {
	for name, c := range map[string]struct {
		before, sent string
		between      string // what another client writes on top
		want         string
	}{
		"sum":                         {`{"n":1}`, `{"n":2}`, "", `{"n":2}`},
		"insertion":                   {`{"l":[1]}`, `{"l":[1,2]}`, "", `{"l":[1,2]}`},
		"sum that others went on":     {`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":3}`},
		"sum that others wrote again": {`{"n":1}`, `{"n":2}`, `{"n":2}`, `{"n":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, sumRule)
			w.put("1", c.before)
			me := w.client("me")
			me.read("1")
			f := w.failover()
			f.passOver(func() {
				if c.between != "" {
					w.put("1", c.between)
				}
			})
			r := me.save("1", c.sent)
			if !errors.Is(r.err, ErrUnknownOutcome) || !strings.HasPrefix(r.outcome, "unknown") || f.asked != 1 {
				t.Errorf("asked %d times: %v", f.asked, r)
			}
			same(t, w.stored("1"), c.want)
			if r := me.save("1", c.sent); r.status != 409 {
				t.Errorf("the repeated write: %v", r)
			}
		})
	}
}

// A node that is cut off, or slow, still names the term of the primary that is dead.
func TestTheTermOfAnotherNodeThanTheWritesProvesNothing(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	f := w.failover()
	w.engine.after = func(_ *upstream.Request, res *upstream.Response) error {
		res.Node = "http://one"
		return nil
	}
	f.other = "http://two"
	f.passOver(func() { f.term-- })
	r := me.save("1", `{"n":2}`)
	if !errors.Is(r.err, ErrUnknownOutcome) || f.asked != 1 {
		t.Errorf("asked %d times: %v", f.asked, r)
	}
	same(t, w.stored("1"), `{"n":2}`)
}

// Two proxies that count from the same number write the same bytes: that is no sign of a try of one's own.
func TestTheSameBytesOfAnotherAreCountedWhereThePrimaryStayed(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	f := w.failover()
	w.put("1", `{"n":2}`)
	has(t, me.save("1", `{"n":2}`), 200, "merged;attempts=2")
	same(t, w.stored("1"), `{"n":3}`)
	if f.asked != 1 {
		t.Errorf("asked %d times", f.asked)
	}
}

func TestThePrimaryIsAskedForOnlyWhereItMakesADifference(t *testing.T) {
	t.Run("one other write, of other bytes", func(t *testing.T) {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		f := w.failover()
		w.put("1", `{"n":5}`)
		has(t, me.save("1", `{"n":2}`), 200, "merged")
		same(t, w.stored("1"), `{"n":6}`)
		if f.asked != 0 {
			t.Errorf("asked %d times", f.asked)
		}
	})
	t.Run("a change that is as good twice as once, of what nobody else changed", func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"a":1,"b":1}`)
		me := w.client("me")
		me.read("1")
		f := w.failover()
		w.put("1", `{"a":1,"b":2}`)
		w.put("1", `{"a":1,"b":3}`)
		has(t, me.save("1", `{"a":2,"b":1}`), 200, "merged")
		same(t, w.stored("1"), `{"a":2,"b":3}`)
		if f.asked != 0 {
			t.Errorf("asked %d times", f.asked)
		}
	})
}

// A document that wasn't written since the primary last changed, long ago.
func TestAChangeOfPrimaryBeforeTheWriteIsNone(t *testing.T) {
	w := newWorld(t, sumRule)
	f := w.failover()
	f.term = 2
	for i, want := range []string{"unknown", "merged"} { // the first to ask can't tell since when it is so
		w.put("1", `{"n":1}`)
		me := w.client(fmt.Sprint(i))
		me.read("1")
		w.put("1", `{"n":5}`)
		w.put("1", `{"n":6}`)
		if r := me.save("1", `{"n":2}`); !strings.HasPrefix(r.outcome, want) {
			t.Errorf("%d: %v", i, r)
		}
	}
	same(t, w.stored("1"), `{"n":7}`)
}

// Another client's write was acknowledged by the new primary before this one was sent. So there was one primary while it was out.
func TestAWriteThatTheNewPrimaryAcknowledgedShowsThatItStayed(t *testing.T) {
	for _, term := range []int{2, 3} { // what the nodes say after the conflict
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1}`)
		me, other := w.client("me"), w.client("other")
		me.read("1")
		other.read("1")
		f := w.failover()
		f.relabel()
		has(t, other.save("1", `{"n":5}`), 200, "guarded")
		w.put("1", `{"n":6}`)
		f.term = term
		want := "merged"
		if term == 3 {
			want = "unknown"
		}
		if r := me.save("1", `{"n":2}`); !strings.HasPrefix(r.outcome, want) || f.asked != 1 {
			t.Errorf("term %d: asked %d times: %v", term, f.asked, r)
		}
	}
}

func TestAConflictIsUnknownWhereTheTermCantBeAsked(t *testing.T) {
	for _, status := range []int{429, 500, 503} {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		f := w.failover()
		f.refused = status
		w.put("1", `{"n":2}`)
		if r := me.save("1", `{"n":2}`); !errors.Is(r.err, ErrUnknownOutcome) {
			t.Errorf("%d: %v", status, r)
		}
	}
}

// Without the privilege to ask, the time decides: a change of primary isn't done in a moment.
func TestTheTimeTellsWhereTheTermMayNotBeAskedFor(t *testing.T) {
	for _, took := range []time.Duration{0, quickestFailover} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, sumRule)
			w.put("1", `{"n":1}`)
			me := w.client("me")
			me.read("1")
			f := w.failover()
			f.refused = 403
			w.put("1", `{"n":2}`)
			f.on = func(*upstream.Request) (*upstream.Response, error) {
				f.on = nil
				time.Sleep(took)
				return nil, nil
			}
			r := me.save("1", `{"n":2}`)
			if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != (took > 0) {
				t.Errorf("after %v: %v", took, r)
			}
		})
	}
}

func TestARefusalAfterAChangeOfPrimaryIsUnknown(t *testing.T) {
	for name, rules := range map[string]string{
		"attempts end":   fmt.Sprintf(failoverRule, 1),
		"never merged":   "rules:\n- {name: r, match: {index: [shop]}, on_conflict: fail}\n",
		"merge fails":    "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: fail}}}\n",
		"body not known": "rules:\n- {name: r, match: {index: [shop]}, base: {from: [if_match]}}\n",
	} {
		for _, changed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", changed), func(t *testing.T) {
				w := newWorld(t, rules)
				w.put("1", `{"n":1}`)
				me := w.client("me")
				write := func() result { return me.save("1", `{"n":2}`) }
				if name == "body not known" {
					write = func() result { return me.send("PUT", "/shop/_doc/1", `{"n":2}`, ifMatch(`"0-1"`)) }
				} else {
					me.read("1")
				}
				f := w.failover()
				if changed {
					f.passOver(func() { w.put("1", `{"n":3}`) })
				} else {
					w.put("1", `{"n":2}`)
					w.put("1", `{"n":3}`)
				}
				r := write()
				if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != changed || !changed && r.status != 409 {
					t.Errorf("got %v", r)
				}
				same(t, w.stored("1"), `{"n":3}`)
			})
		}
	}
}

func TestACreateThatConflictsWithItselfCountsOnce(t *testing.T) {
	for _, changed := range []bool{true, false} {
		w := newWorld(t, sumRule)
		w.put("other", `{}`)
		me := w.client("me")
		me.read("1")
		f := w.failover()
		if changed {
			f.passOver(nil)
		} else {
			w.put("1", `{"n":1}`)
		}
		r := me.save("1", `{"n":1}`)
		if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != changed {
			t.Errorf("%v: %v", changed, r)
		}
		same(t, w.stored("1"), map[bool]string{true: `{"n":1}`, false: `{"n":2}`}[changed])
	}
}

func TestADeleteThatConflictsWithItselfIsUnknown(t *testing.T) {
	for _, changed := range []bool{true, false} {
		w := newWorld(t, "")
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		f := w.failover()
		if changed {
			f.passOver(nil)
		} else {
			w.direct("DELETE", "/shop/_doc/1", "")
		}
		r := me.send("DELETE", "/shop/_doc/1", "")
		if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != changed || !changed && r.status != 404 {
			t.Errorf("%v: %v", changed, r)
		}
	}
}

// Changes that share a write share its fate: of none it can be told.
func TestChangesOfOneWriteThatConflictedWithItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1,"a":0,"b":0}`)
		w.warm("1")
		clients := []*client{w.client("first"), w.client("sum"), w.client("set")}
		for _, c := range clients {
			c.read("1")
		}
		bodies := []string{`{"n":1,"a":1,"b":0}`, `{"n":2,"a":0,"b":0}`, `{"n":1,"a":0,"b":1}`}
		f := w.failover()
		puts := 0
		f.on = func(*upstream.Request) (*upstream.Response, error) {
			if puts++; puts == 1 { // after the first, the others go together
				f.passOver(func() { time.Sleep(time.Millisecond) }) // a change of primary takes a moment
			}
			return nil, nil
		}
		results := w.queued(3, func(i int) result { return clients[i].save("1", bodies[i]) })
		has(t, results[0], 200, "guarded")
		for _, r := range results[1:] {
			if !errors.Is(r.err, ErrUnknownOutcome) {
				t.Errorf("got %v", r)
			}
		}
		same(t, w.stored("1"), `{"n":2,"a":1,"b":1}`)
	})
}

// A conflict with its own first try is no answer either where the document can't be read after it: a client that is told of a
// conflict makes its change again.
func TestAConflictProvesNothingWhereTheDocumentCantBeReadAfterIt(t *testing.T) {
	for name, unread := range map[string]func() (*upstream.Response, error){
		"refused": func() (*upstream.Response, error) {
			return answering(403, `{"error":{"type":"security_exception"}}`), nil
		},
		"nobody there": func() (*upstream.Response, error) { return nil, &upstream.Error{Class: upstream.NotSent} },
	} {
		for _, stayed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the primary stayed: %v", name, stayed), func(t *testing.T) {
				w := newWorld(t, sumRule)
				w.put("1", `{"n":1}`)
				me := w.client("me")
				me.read("1")
				f := w.failover()
				asked, over := w.engine.before, false
				f.passOver(func() { over = true })
				if stayed {
					f.on = func(r *upstream.Request) (*upstream.Response, error) {
						f.on, over = nil, true
						w.put("1", `{"n":5}`)
						return nil, nil
					}
				}
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if over && r.Method == "GET" && strings.Contains(string(r.Target), "/_doc/1") {
						return unread()
					}
					return asked(r)
				}
				r := me.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`)
				if !stayed {
					if !errors.Is(r.err, ErrUnknownOutcome) || !strings.HasPrefix(r.outcome, "unknown") {
						t.Errorf("the patch was applied, and the answer is %v", r)
					}
				} else {
					has(t, r, 409, "guarded;attempts=1")
				}
			})
		}
	}
}

// quickestFailover is in how short a time the catalog believes that no primary is replaced.
const quickestFailover = 10 * time.Millisecond

// After a change of primary the engine sends an _update again by itself. It then conflicts with its own first try, which ran the script:
// neither the engine, by a retry_on_conflict that optimist adds, nor optimist, nor who replays a letter may run it a second time.
func TestAScriptRunsOnceThoughItConflictsWithItsOwnFirstTry(t *testing.T) {
	for name, c := range map[string]struct {
		changes bool // the primary changes while the _update is out
		quick   bool // the conflict comes at once
		sent    int
		unknown bool // the client gets no answer of the engine, and no letter is made
	}{
		"another primary":  {changes: true, sent: 1, unknown: true},
		"the same primary": {sent: 2},
		"at once":          {quick: true, sent: 2}, // sooner than a primary can be replaced
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shelf := letterWorld(t, letterRule)
				w.put("1", `{"n":1}`)
				f := w.failover()
				next, sent := w.engine.before, []string{}
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if !strings.HasPrefix(string(r.Target), "/shop/_update/1") {
						return next(r)
					}
					if sent = append(sent, string(r.Target)); len(sent) > 1 {
						return answering(200, `{"_index":"shop","_id":"1","_version":3,"result":"updated","_seq_no":2,"_primary_term":1}`), nil
					}
					if !c.quick {
						time.Sleep(time.Second)
					}
					if c.changes {
						f.term++
					}
					return answering(409, `{"error":{"type":"version_conflict_engine_exception","shard":"0","index":"shop"},"status":409}`), nil
				}
				r := w.client("me").send("POST", "/shop/_update/1", `{"script":"ctx._source.n++"}`)
				if len(sent) != c.sent || errors.Is(r.err, ErrUnknownOutcome) != c.unknown || !c.unknown && r.status != 200 {
					t.Errorf("%v; sent %q", r, sent)
				}
				if strings.Contains(sent[0], "retry_on_conflict") || len(shelf.kept) > 0 {
					t.Errorf("sent %q, kept %+v", sent, shelf.kept)
				}
			})
		})
	}
}

// notebook is a journal that remembers of which of its writes it was told that they failed.
type notebook struct{ noted, failed, applied int }

func (n *notebook) Note(context.Context, *undo.Write) (undo.Place, error) {
	n.noted++
	return undo.Place{Page: 1, Nth: n.noted}, nil
}

func (n *notebook) Applied(undo.Place, doc.Revision) { n.applied++ }

func (*notebook) Wrote(any, doc.Ref, doc.Numbers) {}

func (n *notebook) Failed(context.Context, undo.Place) error {
	n.failed++
	return nil
}

// A write under a lock with undo may have conflicted with its own first try. Then it is applied, and has to be undone: the journal must not
// be told that it failed.
func TestAJournalLearnsOfNoFailureThatMayBeNone(t *testing.T) {
	for name, c := range map[string]struct {
		took          time.Duration
		changes       bool // the primary changes while the write is out
		asked, failed int
	}{
		"another primary":  {took: time.Second, changes: true, asked: 1},
		"the same primary": {took: time.Second, asked: 1, failed: 1},
		"at once":          {failed: 1}, // sooner than a primary can be replaced
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, on_conflict: fail}\n")
				w.put("1", `{"n":1}`)
				me := w.client("me")
				me.read("1")
				f, n := w.failover(), &notebook{}
				f.on = func(r *upstream.Request) (*upstream.Response, error) {
					f.on = nil
					time.Sleep(c.took)
					if c.changes {
						w.engine.handle(r)
						f.term++
						return nil, nil
					}
					w.put("1", `{"n":5}`)
					return nil, nil
				}
				r := me.doRequest(t.Context(), &Request{Journal: n}, "PUT", "/shop/_doc/1", []byte(`{"n":2}`))
				if n.noted != 1 || n.failed != c.failed || n.applied != 0 || errors.Is(r.err, ErrUnknownOutcome) != c.changes {
					t.Errorf("%v; %+v", r, n)
				}
				if c.took > 0 && f.asked != c.asked {
					t.Errorf("asked %d times", f.asked)
				}
			})
		})
	}
}

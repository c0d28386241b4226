package write

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/identity"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// warm makes it known that documents can be merged, so that changes may share writes.
func (w *world) warm(id string) {
	w.t.Helper()
	w.warmFor(w.client("warm"), id)
}

// warmFor is warm for those with the client's credentials.
func (w *world) warmFor(warm *client, id string) {
	w.t.Helper()
	before := warm.read(id)
	w.put(id, strings.TrimSuffix(before, "}")+`,"x":1}`)
	if r := warm.save(id, strings.TrimSuffix(before, "}")+`,"y":1}`); r.status != 200 {
		w.t.Fatalf("warming up: %v", r)
	}
	w.put(id, before)
}

// queued has clients write at once, so that the first holds the lane until all the others wait behind it, in order. write does
// client i's.
func (w *world) queued(n int, write func(i int) result) []result {
	w.t.Helper()
	hold, held := w.holdFirst()
	results := make([]result, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = write(i) })
		if i == 0 {
			<-held
		} else {
			w.waiting(i)
		}
	}
	close(hold)
	wg.Wait()
	return results
}

// A change that can't be merged into what its neighbours made of the document is judged by the document itself.
func TestABadNeighbourDoesntMakeAGoodChangeFail(t *testing.T) {
	for name, bad := range map[string]string{
		"broken JSON":          `{"n":0,"a":`,
		"a path that may fail": `{"n":0,"status":"mine","poison":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sumRule)
				w.put("1", `{"n":0,"status":"new"}`)
				w.warm("1")
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method == "PUT" && (strings.Contains(string(r.Body), "poison") || !gjson.ValidBytes(r.Body)) {
						return answering(400, `{"error":{"type":"mapper_parsing_exception"},"status":400}`), nil
					}
					return nil, nil
				}
				bodies := []string{`{"n":1,"status":"new"}`, bad, `{"n":0,"status":"yours"}`, `{"n":3,"status":"new"}`}
				var cs []*client
				for i := range bodies {
					cs = append(cs, w.client(fmt.Sprint("c", i)))
					cs[i].read("1")
				}
				results := w.queued(len(bodies), func(i int) result { return cs[i].save("1", bodies[i]) })
				for i, want := range []int{200, 400, 200, 200} {
					if results[i].status != want {
						t.Errorf("change %d: %v, want %d", i, results[i], want)
					}
				}
				same(t, w.stored("1"), `{"n":4,"status":"yours"}`)
			})
		})
	}
}

// Whatever a shared write is refused for may be the fault of one change, or of all together, but not of each.
func TestWhatRefusesASharedWriteRefusesNoNeighbour(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 412, 413, 422} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sumRule)
				w.put("1", `{"n":0}`)
				w.warm("1")
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method == "PUT" && strings.Contains(string(r.Body), "poison") {
						return answering(status, fmt.Sprintf(`{"error":{"type":"refused"},"status":%d}`, status)), nil
					}
					return nil, nil
				}
				bodies := []string{`{"n":1}`, `{"n":0,"a":1}`, `{"n":0,"a":"poison"}`, `{"n":0,"b":1}`}
				var cs []*client
				for i := range bodies {
					cs = append(cs, w.client(fmt.Sprint("c", i)))
					cs[i].read("1")
				}
				results := w.queued(len(bodies), func(i int) result { return cs[i].save("1", bodies[i]) })
				for i, want := range []int{200, 200, status, 200} {
					if results[i].status != want {
						t.Errorf("change %d: %v, want %d", i, results[i], want)
					}
				}
				same(t, w.stored("1"), `{"n":1,"a":1,"b":1}`)
			})
		})
	}
}

// Two that saw no document: the second's answer must not carry numbers that would let it overwrite what it hasn't seen.
func TestCreatesNeverShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("other", `{"a":1}`)
		w.warm("other")
		bodies := []string{`{"first":1}`, `{"second":1}`, `{"third":1}`}
		var cs []*client
		for i := range bodies {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		refused := false
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" && !refused {
				refused = true
				return answering(403, `{"status":403}`), nil // so that the document still isn't there for those who wait
			}
			return nil, nil
		}
		results := w.queued(len(bodies), func(i int) result { return cs[i].save("1", bodies[i]) })
		if results[0].status != 403 || results[1].status != 201 || results[2].status != 200 {
			t.Errorf("got %v", results)
		}
		same(t, w.stored("1"), `{"second":1,"third":1}`)
		for i, r := range results[1:] {
			n := gjson.Get(r.body, "_seq_no").Int()
			q := fmt.Sprintf("/shop/_doc/1?if_seq_no=%d&if_primary_term=1", n)
			if again := cs[i+1].send("PUT", q, bodies[i+1]); again.status != 409 {
				t.Errorf("a guard of the numbers in %v: %v", r, again)
			}
		}
	})
}

// Who asked for another kind of answer must not get somebody else's.
func TestOnlyTheSameMediaTypesShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"n":0}`)
		w.warm("1")
		accept := []string{"application/json", "application/json", "application/vnd.elasticsearch+json;compatible-with=8", "application/json"}
		var cs []*client
		for i := range accept {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		results := w.queued(len(accept), func(i int) result {
			return cs[i].send("PUT", "/shop/_doc/1", fmt.Sprintf(`{"n":0,"f%d":1}`, i), wire.Field{Name: []byte("Accept"), Value: []byte(accept[i])})
		})
		for i, r := range results {
			if r.status != 200 || strings.HasPrefix(r.outcome, "combined") {
				t.Errorf("change %d: %v", i, r)
			}
		}
		same(t, w.stored("1"), `{"n":0,"f0":1,"f1":1,"f2":1,"f3":1}`)
	})
}

// A change may go out under no other credentials, parameters or rule than its own, nor begin at what its neighbour has written
// with others: one client may be shown what another isn't.
func TestOnlyEqualWritesShareOneAndItsRevision(t *testing.T) {
	alice, bob := identity.CredentialsOf([]byte("alice")), identity.CredentialsOf([]byte("bob"))
	for name, c := range map[string]struct {
		bob           bool   // the third is another's
		route         bool   // a gateway may send the third elsewhere
		query         string // of the third
		reloaded      bool   // before the third
		third, fourth string // how its own outcome begins, and that of the one behind it
		shared        int    // by how many changes, as metrics are told
		reads         int    // of the document, since what the neighbour wrote isn't taken for it
	}{
		"nothing differs": {third: "combined;attempts=1", fourth: "combined;attempts=1", shared: 3},
		"credentials":     {bob: true, third: "merged;attempts=1", fourth: "merged;attempts=1", reads: 2},
		"the route":       {route: true, third: "merged;attempts=1", fourth: "merged;attempts=1", reads: 2},
		"parameters":      {query: "?refresh=true", third: "merged;attempts=1", fourth: "merged;attempts=1", reads: 2},
		"the rule":        {reloaded: true, third: "merged;attempts=1", fourth: "merged;attempts=1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "")
				w.put("1", `{"n":0}`)
				var cs []*client
				for i := range 4 {
					credentials := alice
					if c.bob && i == 2 {
						credentials = bob
					}
					cs = append(cs, &client{w: w, sess: identity.Named(credentials, fmt.Append(nil, i))})
					if c.route && i == 2 {
						cs[i].route = bob
					}
					w.warmFor(&client{w: w, sess: identity.Named(credentials, []byte("warm"))}, "1")
				}
				for _, c := range cs {
					c.read("1")
				}
				shared, reads := 0, 0
				w.s.events.Batch = func(changes int) { shared += changes }
				w.s.events.Fetch = func(string) { reads++ }
				results := w.queued(len(cs), func(i int) result {
					target := "/shop/_doc/1"
					if i == 2 {
						target += c.query
					}
					if c.reloaded && i >= 2 {
						w.rules = newWorld(t, "").rules
					}
					return cs[i].send("PUT", target, fmt.Sprintf(`{"n":0,"f%d":1}`, i))
				})
				for i, want := range []string{"guarded;attempts=1", "", c.third, c.fourth} {
					if r := results[i]; r.status != 200 || !strings.HasPrefix(r.outcome, want) {
						t.Errorf("change %d: %v, want %s", i, r, want)
					}
				}
				same(t, w.stored("1"), `{"n":0,"f0":1,"f1":1,"f2":1,"f3":1}`)
				if shared != c.shared || reads != c.reads {
					t.Errorf("%d changes shared writes, want %d; %d reads, want %d", shared, c.shared, reads, c.reads)
				}
			})
		})
	}
}

// What the lane wrote last is good for a write under its guard only. That there is nothing to write, or that a change is refused,
// is decided by the document as it is: somebody else may have written past this proxy since.
func TestWhatIsDecidedIsDecidedOnAFreshRead(t *testing.T) {
	for name, c := range map[string]struct {
		first, between, second, want string
		outcome                      string
	}{
		"that nothing changes":   {`{"t":2,"status":"new"}`, `{"t":3,"status":"new"}`, `{"t":2,"status":"new"}`, `{"t":2,"status":"new"}`, `merged;attempts=1;base=session;overwrote="/t"`},
		"that a path is refused": {`{"t":1,"status":"paid"}`, `{"t":1,"status":"new","x":1}`, `{"t":1,"status":"sent"}`, `{"t":1,"status":"sent","x":1}`, "merged;attempts=1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, sumRule)
				w.put("1", `{"t":1,"status":"new"}`)
				w.warm("1")
				one, two := w.client("one"), w.client("two")
				one.read("1")
				two.read("1")
				w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
					if r.Method == "PUT" {
						w.engine.after = nil
						w.put("1", c.between)
					}
					return nil
				}
				results := w.queued(2, func(i int) result {
					if i == 0 {
						return one.save("1", c.first)
					}
					return two.save("1", c.second)
				})
				has(t, results[0], 200, "guarded")
				has(t, results[1], 200, c.outcome)
				same(t, w.stored("1"), c.want)
			})
		})
	}
}

// A body belongs to its client's connection and is overwritten by the next request as soon as Do has returned.
func TestNothingRemembersABodyAfterItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"n":0}`)
		w.warm("1")
		const clients = 12
		var cs []*client
		for i := range clients {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		for round := range 2 {
			results := w.queued(clients, func(i int) result {
				body := []byte(fmt.Sprintf(`{"n":0,"f%d":%d}`, i, round))
				r := cs[i].sendBody(body)
				for k := range body {
					body[k] = '!'
				}
				return r
			})
			for i, r := range results {
				if r.status != 200 {
					t.Errorf("change %d: %v", i, r)
				}
			}
		}
		for i := range clients {
			if got := gjson.Get(w.stored("1"), fmt.Sprint("f", i)).Raw; got != "1" {
				t.Errorf("f%d is %q in %s", i, got, w.stored("1"))
			}
		}
	})
}

// A part doesn't share a write, and what the engine makes of it isn't known. That its client's view is out of date by then, is.
func TestAPartThatWaitedIsMergedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"l":[]}`)
		var cs []*client
		for i := range 4 {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		conflicts := 0
		w.s.events.Conflict = func(string) { conflicts++ }
		results := w.queued(len(cs), func(i int) result { return cs[i].send("POST", "/shop/_update/1", fmt.Sprintf(`{"doc":{"l":[%d]}}`, i)) })
		for i, r := range results {
			has(t, r, 200, []string{"guarded", "merged"}[min(i, 1)]+";attempts=1")
		}
		same(t, w.stored("1"), `{"l":[0,1,2,3]}`)
		if conflicts != 0 {
			t.Errorf("%d conflicts", conflicts)
		}
	})
}

// A slow engine makes changes wait, and none of them fail: each of its answers takes less than the patience of those who wait, though all
// answers to one change take longer.
func TestASlowEngineMakesChangesWait(t *testing.T) {
	for name, change := range map[string]func(c *client, i int) result{
		"documents": func(c *client, i int) result { return c.save("1", fmt.Sprintf(`{"l":[%d]}`, i)) },
		"parts": func(c *client, i int) result {
			return c.send("POST", "/shop/_update/1", fmt.Sprintf(`{"doc":{"l":[%d]}}`, i))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "")
				w.put("1", `{"l":[]}`)
				var cs []*client
				for i := range 4 {
					cs = append(cs, w.client(fmt.Sprint("c", i)))
					cs[i].read("1")
				}
				w.put("1", `{"l":["another's"]}`) // so that the first change meets a conflict
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if strings.Contains(string(r.Target), "/1?") { // what is asked about the index is asked under a mutex: fake time would stand still
						time.Sleep(retry.Patience * 5 / 8)
					}
					return nil, nil
				}
				conflicts := 0
				w.s.events.Conflict = func(string) { conflicts++ }
				var wg sync.WaitGroup
				for i, c := range cs {
					wg.Go(func() {
						if r := change(c, i); r.status != 200 {
							t.Errorf("change %d: %v", i, r)
						}
					})
				}
				wg.Wait()
				if n := len(gjson.Get(w.stored("1"), "l").Array()); n != len(cs)+1 || conflicts != 1 {
					t.Errorf("%d changes are stored, and %d conflicts were met", n, conflicts)
				}
			})
		})
	}
}

// To merge the changes of many clients takes long on a slow machine. Nobody goes on beside a leader that is at it: the two would only refuse
// each other's writes.
func TestALeaderThatMergesIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "rules:\n- name: r\n  match: {index: [shop]}\n  transform: [{op: default, path: /seen, value: true}]\n")
		w.start(Options{BatchLimit: 4})
		w.put("1", `{"l":[]}`)
		w.warm("1")
		var cs []*client
		for i := range 9 {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		w.s.means.Now = func() time.Time { // each change is merged so slowly
			time.Sleep(retry.Patience * 5 / 8)
			return time.Now()
		}
		conflicts := 0
		w.s.events.Conflict = func(string) { conflicts++ }
		var wg sync.WaitGroup
		for i, c := range cs {
			wg.Go(func() {
				if r := c.save("1", fmt.Sprintf(`{"l":[%d]}`, i)); r.status != 200 {
					t.Errorf("change %d: %v", i, r)
				}
			})
		}
		wg.Wait()
		if n := len(gjson.Get(w.stored("1"), "l").Array()); n != len(cs) || conflicts != 0 {
			t.Errorf("%d changes are stored, and %d conflicts were met", n, conflicts)
		}
	})
}

// A write is stored long before the refresh that its client waits for. Nobody else waits for that.
func TestNobodyWaitsForAnothersRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{}`)
		one, two := w.client("one"), w.client("two")
		one.read("1")
		two.read("1")
		w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
			if strings.Contains(string(r.Target), "wait_for") {
				time.Sleep(time.Second)
			}
			return nil
		}
		var wg sync.WaitGroup
		wg.Go(func() { has(t, one.send("PUT", "/shop/_doc/1?refresh=wait_for", `{"a":1}`), 200, "guarded") })
		synctest.Wait()
		begun := time.Now()
		has(t, two.save("1", `{"b":1}`), 200, "merged")
		if took := time.Since(begun); took != retry.LatePatience {
			t.Errorf("it waited for %v", took)
		}
		wg.Wait()
		same(t, w.stored("1"), `{"a":1,"b":1}`)
	})
}

// Nobody knows yet that the clients see documents whole when they queue up. The first that has to merge finds it out for all.
func TestChangesThatWaitedBeforeTheyWereKnownToBeMergeableShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{}`)
		var cs []*client
		for i := range 8 {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		before := w.engine.writes()
		for i, r := range w.queued(len(cs), func(i int) result { return cs[i].save("1", fmt.Sprintf(`{"f%d":1}`, i)) }) {
			if want := []string{"guarded", "merged", "combined"}[min(i, 2)]; r.status != 200 || !strings.HasPrefix(r.outcome, want) {
				t.Errorf("change %d: %v, want %s", i, r, want)
			}
		}
		if n := w.engine.writes() - before; n != 3 {
			t.Errorf("%d writes", n)
		}
	})
}

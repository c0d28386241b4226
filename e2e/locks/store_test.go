// Package locks_test holds the stores of lock documents to the model, on the real engines, and lets clients of lock services work
// through the real program.
package locks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"optimist/e2e/engine"
	"optimist/internal/es"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/conformance"
	lockengine "optimist/lockrouter/engine"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// eachStore runs the test on the model, and on every engine with each way to change a document that it has.
func eachStore(t *testing.T, test func(t *testing.T, proxies []lockrouter.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		s := memory.New(nil)
		test(t, []lockrouter.Store{s, s})
	})
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		ways := map[string]lockengine.Scripts{"guarded": lockengine.Never}
		if e.Kind.Scripts() {
			ways["scripts"] = lockengine.Always
		} else {
			ways["found out"] = lockengine.Auto
		}
		for name, scripts := range ways {
			t.Run(name, func(t *testing.T) {
				index := e.Index(t)
				test(t, []lockrouter.Store{store(t, e, index, scripts), store(t, e, index, scripts)})
			})
		}
	})
}

// store is one proxy's.
func store(t testing.TB, e *engine.Engine, index string, scripts lockengine.Scripts) *lockengine.Store {
	t.Helper()
	return lockengine.New(lockengine.Options{Upstream: nodes(t, e), Index: index, Scripts: scripts})
}

func nodes(t testing.TB, e *engine.Engine) *upstream.Set {
	t.Helper()
	up, err := upstream.New(upstream.Config{URLs: []string{e.URL}, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Close)
	return up
}

// TestLocksInTheEngine holds the documents of locks to what every store of locks can do.
func TestLocksInTheEngine(t *testing.T) {
	eachStore(t, func(t *testing.T, proxies []lockrouter.Store) {
		conformance.Run(t, "", func(t *testing.T) conformance.Store {
			s := conformance.Store{Queues: true, Documents: true, Repeats: true}
			for _, p := range proxies {
				r := lockrouter.New(lockrouter.Options{Store: p, Foreground: 20 * time.Second, Background: 20 * time.Second})
				t.Cleanup(r.Close)
				s.Proxies = append(s.Proxies, r)
			}
			return s
		})
	})
}

// counter counts requests by their methods.
type counter struct {
	es.Doer
	puts, posts int
}

func (c *counter) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	switch r.Method {
	case http.MethodPut:
		c.puts++
	case http.MethodPost:
		c.posts++
	}
	return c.Doer.Do(ctx, r)
}

// TestALockIsHandedOnWithoutAScript, where its document was written just now, and each time with one request. How often depends
// on how fast the engine answers.
func TestALockIsHandedOnWithoutAScript(t *testing.T) {
	engine.Each(t, engine.Scripted(), func(t *testing.T, e *engine.Engine) {
		c := &counter{Doer: nodes(t, e)}
		s := &scene{t: t, proxies: []lockrouter.Store{lockengine.New(lockengine.Options{Upstream: c, Index: e.Index(t), Scripts: lockengine.Always})}, id: "a"}
		take := func(i int) state.Op {
			owner := fmt.Sprint("w", i)
			return state.Op{Do: state.Acquire, Owner: owner, Rid: owner, Mode: state.Exclusive, Class: state.Foreground, TTL: 60_000}
		}
		last := s.do(0, take(0))
		c.puts, c.posts = 0, 0
		const times = 50
		for i := range times {
			free := state.Op{Do: state.Release, Owner: fmt.Sprint("w", i), Token: last[len(last)-1].Token}
			last = s.do(0, free, take(i+1))
			if len(last) != 2 || last[0].Verdict != state.Released || last[1].Verdict != state.Acquired {
				t.Fatal(i, last)
			}
		}
		if c.puts == 0 || c.puts+c.posts != times {
			t.Errorf("%d hand-overs: %d without a script, %d with one", times, c.puts, c.posts)
		}
	})
}

// scene is where a story is told: a lock document, and the proxies that write it.
type scene struct {
	t       *testing.T
	proxies []lockrouter.Store
	id      string
	last    *state.Doc

	// lease, in ms, is the shortest that a story waits out; a proxy that isn't heard of for as long is taken for dead. Default
	// 100. What a story tells is true only if its own steps take less.
	lease  int64
	began  time.Time
	waited time.Duration
}

// tooSlow is what a story panics with that can't go on because its own steps took longer than its lease.
type tooSlow struct{}

// tell tells the story, and again with longer leases if the machine is too slow for it.
func tell(t *testing.T, proxies []lockrouter.Store, name string, story func(s *scene)) {
	t.Helper()
	told := func(lease int64) (ok bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(tooSlow); !ok {
					panic(r)
				}
			}
		}()
		story(&scene{t: t, proxies: proxies, id: fmt.Sprint(name, " ", lease), lease: lease, began: time.Now()})
		return true
	}
	for lease := int64(100); !told(lease); lease *= 8 {
		if t.Logf("steps took longer than the lease of %d ms", lease); lease > 10_000 {
			t.Fatal("the machine is too slow for any lease")
		}
	}
}

func (s *scene) do(proxy int, ops ...state.Op) []state.Result {
	s.t.Helper()
	c := &state.Call{Lock: "/_lock/global/" + s.id, Kind: state.Global, Proxy: fmt.Sprint("p", proxy), Ops: ops, Bound: 3, Grace: max(s.lease, 100)}
	done := s.proxies[proxy].Do(s.t.Context(), []lockrouter.Change{{ID: s.id, Call: c}})[0]
	if done.Err != nil {
		s.t.Fatal(done.Err)
	}
	s.last = done.Doc
	return done.Results
}

func (s *scene) expect(said []state.Result, want ...state.Verdict) int64 {
	s.t.Helper()
	var got []state.Verdict
	for _, x := range said {
		got = append(got, x.Verdict)
	}
	if d := cmp.Diff(want, got); d != "" {
		if s.lease > 0 && time.Since(s.began)-s.waited > time.Duration(s.lease)*time.Millisecond {
			panic(tooSlow{})
		}
		s.t.Fatalf("%s%+v", d, s.last)
	}
	return said[0].Token
}

func (s *scene) acquire(owner string, ttl int64) state.Op {
	return state.Op{Do: state.Acquire, Owner: owner, Rid: owner + fmt.Sprint(ttl), Mode: state.Exclusive, Class: state.Foreground, TTL: ttl}
}

func (s *scene) wait(owner string, class state.Class) state.Op {
	op := s.acquire(owner, 60_000)
	op.Class, op.Wait, op.Left = class, true, 60_000
	return op
}

func release(owner string, token int64) state.Op {
	return state.Op{Do: state.Release, Owner: owner, Token: token}
}

func renew(owner string, token, ttl int64) state.Op {
	return state.Op{Do: state.Renew, Owner: owner, Token: token, TTL: ttl}
}

// over waits a time out that the story is about.
func (s *scene) over(ms int64) {
	start := time.Now()
	<-time.After(time.Duration(ms) * time.Millisecond)
	s.waited += time.Since(start)
}

func TestStoresTellTheSameStories(t *testing.T) {
	stories := map[string]func(s *scene){
		"of many one gets it": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", 60_000)), state.Acquired)
			s.expect(s.do(1, s.acquire("b", 60_000)), state.Held)
			if again := s.expect(s.do(1, s.acquire("a", 70_000)), state.Reentered); again != a {
				s.t.Errorf("re-entered with token %d, had %d", again, a)
			}
			s.expect(s.do(0, renew("a", a, 60_000)), state.Renewed)
			s.expect(s.do(1, release("b", a)), state.NotOwner)
			s.expect(s.do(1, release("b", 0)), state.NotOwner)
			s.expect(s.do(1, release("a", 0)), state.NoToken)
			s.expect(s.do(1, release("a", a)), state.Released)
			s.expect(s.do(0, release("a", a)), state.Released)
			b := s.expect(s.do(1, s.acquire("b", 60_000)), state.Acquired)
			if b <= a {
				s.t.Errorf("token %d after %d", b, a)
			}
			s.expect(s.do(0, release("a", a)), state.Released)
			s.expect(s.do(0, renew("a", a, 1)), state.Expired)
			s.expect(s.do(0, renew("a", 1<<60, 1)), state.Expired)
			s.expect(s.do(0, s.acquire("c", 60_000)), state.Held)
		},
		"a lock that was never there": func(s *scene) {
			s.expect(s.do(0, renew("a", 7, 60_000)), state.Missing)
			s.expect(s.do(0, release("a", 7)), state.Missing)
		},
		"a lapsed lease is taken over, and its holder changes nothing": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", s.lease)), state.Acquired)
			s.expect(s.do(1, s.wait("b", state.Foreground)), state.Queued)
			s.over(s.lease + 1)
			b := s.expect(s.do(1, s.wait("b", state.Foreground)), state.Acquired)
			if b <= a {
				s.t.Errorf("token %d after %d", b, a)
			}
			s.expect(s.do(0, renew("a", a, 60_000)), state.Expired)
			s.expect(s.do(0, release("a", a)), state.Expired)
			if len(s.last.Holds) != 1 || s.last.Holds[0].Owner != "b" {
				s.t.Errorf("%+v", s.last)
			}
		},
		"a renewal after expiry is refused before anyone took over": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", s.lease)), state.Acquired)
			s.over(s.lease + 1)
			s.expect(s.do(0, renew("a", a, 60_000)), state.Expired)
			s.expect(s.do(1, renew("a", a, 60_000)), state.Expired)
		},
		"a renewed lease doesn't lapse at its first end": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", s.lease)), state.Acquired)
			s.expect(s.do(1, s.wait("b", state.Foreground)), state.Queued)
			s.expect(s.do(0, renew("a", a, 60_000)), state.Renewed)
			s.over(s.lease + 1)
			s.expect(s.do(1, s.wait("b", state.Foreground)), state.Queued)
		},
		"who came first in its class is next, the foreground before": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", 60_000)), state.Acquired)
			s.expect(s.do(0, s.wait("slow", state.Background)), state.Queued)
			s.over(2)
			s.expect(s.do(1, s.wait("quick", state.Foreground)), state.Queued)
			s.expect(s.do(0, release("a", a), s.wait("slow", state.Background)), state.Released, state.Queued)
			s.expect(s.do(1, s.acquire("now", 60_000)), state.Held)
			q := s.expect(s.do(1, s.wait("quick", state.Foreground)), state.Acquired)
			s.expect(s.do(1, release("quick", q)), state.Released)
			s.expect(s.do(0, s.wait("slow", state.Background)), state.Acquired)
		},
		"a hand-over is one call, and a waiter that left isn't handed anything": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", 60_000)), state.Acquired)
			head := s.wait("b", state.Foreground)
			head.Behind = state.Behind{Count: 1, Owner: "c", Rid: "c", Left: 60_000}
			s.expect(s.do(0, head), state.Queued)
			s.expect(s.do(0, release("a", a), head), state.Released, state.Acquired)
			if len(s.last.Queue) != 1 || s.last.Queue[0].Owner != "c" {
				s.t.Errorf("%+v", s.last.Queue)
			}
			s.expect(s.do(0, state.Op{Do: state.Abandon, Rid: head.Rid}, state.Op{Do: state.Leave, Class: state.Foreground,
				Mode: state.Exclusive}), state.Released, state.Left)
			if len(s.last.Holds)+len(s.last.Queue) != 0 {
				s.t.Errorf("%+v", s.last)
			}
		},
		"a proxy that died is passed": func(s *scene) {
			a := s.expect(s.do(0, s.acquire("a", 60_000)), state.Acquired)
			s.expect(s.do(0, s.wait("dead", state.Foreground)), state.Queued)
			s.over(2)
			s.expect(s.do(1, s.wait("b", state.Foreground)), state.Queued)
			s.expect(s.do(1, release("a", a), s.wait("b", state.Foreground)), state.Released, state.Queued)
			s.over(s.lease + 1)
			s.expect(s.do(1, s.wait("b", state.Foreground)), state.Acquired)
		},
	}
	eachStore(t, func(t *testing.T, proxies []lockrouter.Store) {
		for name, story := range stories {
			t.Run(name, func(t *testing.T) { tell(t, proxies, name, story) })
		}
	})
}

// TestTheScriptDoesWhatTheModelDoes sends random calls to the script and holds every document that it writes against the model's.
// Each goes with one that changes nothing: a call by itself is carried out by the proxy, where that knows the document.
func TestTheScriptDoesWhatTheModelDoes(t *testing.T) {
	engine.Each(t, engine.Scripted(), func(t *testing.T, e *engine.Engine) {
		s := store(t, e, e.Index(t), lockengine.Always)
		beside := lockrouter.Change{ID: "beside", Call: &state.Call{Kind: state.Global, Ops: []state.Op{}}}
		run := 0
		rapid.Check(t, func(r *rapid.T) {
			run++
			kind := rapid.SampledFrom([]state.Kind{state.Tree, state.Global, state.Global}).Draw(r, "kind")
			id, d, tokens := fmt.Sprint("run ", run), &state.Doc{}, []int64{0, 1 << 60}
			for range rapid.IntRange(1, 12).Draw(r, "calls") {
				if len(d.Chain) > 0 {
					tokens = append(tokens, d.Chain[len(d.Chain)-1].Token)
				}
				c := &state.Call{Lock: "/x/_lock/tree", Kind: kind, Proxy: rapid.SampledFrom([]string{"p1", "p2"}).Draw(r, "proxy"),
					Ops: rapid.SliceOfN(drawOp(kind, tokens), 0, 5).Draw(r, "ops"), Bound: 2, Grace: rapid.SampledFrom([]int64{1, 20, 10_000}).Draw(r, "grace"),
					Most: 4, Bytes: rapid.SampledFrom([]int64{0, 40, 100}).Draw(r, "bytes")}
				done := s.Do(t.Context(), []lockrouter.Change{{ID: id, Call: c}, beside})[0]
				got, said := done.Doc, done.Results
				if done.Err != nil {
					r.Fatal(done.Err)
				}
				if got.Beat != d.Beat {
					want := d.Clone()
					if _, changed := want.Apply(c, state.Clock{Now: got.Seen}); !changed {
						r.Fatalf("the model changes nothing; the script made %+v", got)
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						call, _ := json.Marshal(c)
						r.Fatalf("model and script differ (-model +script) after %s:\n%s", call, diff)
					}
					d = got
				}
				for _, x := range said {
					if x.Token > 0 {
						tokens = append(tokens, x.Token)
					}
				}
			}
		})
	})
}

func drawOp(kind state.Kind, tokens []int64) *rapid.Generator[state.Op] {
	return rapid.Custom(func(t *rapid.T) state.Op {
		owner := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner")
		op := state.Op{
			Do:    rapid.SampledFrom([]state.Verb{state.Acquire, state.Acquire, state.Acquire, state.Renew, state.Release, state.Abandon, state.Leave}).Draw(t, "do"),
			Owner: owner, Rid: rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "rid"),
			Token:  rapid.SampledFrom(tokens).Draw(t, "token"),
			Path:   rapid.SampledFrom([]string{"/", "/x/", "/x/y/", "/ü/"}).Draw(t, "path"),
			Mode:   rapid.SampledFrom([]state.Mode{state.Exclusive, state.Shared}).Draw(t, "mode"),
			Class:  rapid.SampledFrom([]state.Class{state.Foreground, state.Background}).Draw(t, "class"),
			Note:   rapid.SampledFrom([]string{"", "Save Content"}).Draw(t, "note"),
			Client: rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "client"),
			Size:   rapid.SampledFrom([]int64{0, 10, 12, 30}).Draw(t, "size"),
			TTL:    rapid.SampledFrom([]int64{1, 10, 10_000}).Draw(t, "ttl"),
			Wait:   rapid.Bool().Draw(t, "wait"),
			Age:    rapid.Int64Range(0, 30).Draw(t, "age"),
			Left:   rapid.SampledFrom([]int64{1, 10, 10_000}).Draw(t, "left"),
			Chain:  rapid.SampledFrom([]int64{0, 2, 3}).Draw(t, "chain"),
		}
		if kind == state.Global { // what isn't of a tree has no path, and no readers
			op.Path, op.Mode = "", state.Exclusive
			if rapid.Bool().Draw(t, "anybody") {
				op.Owner = op.Rid
			}
		}
		if rapid.Bool().Draw(t, "others") {
			op.Behind = state.Behind{Count: 2, Owner: "c", Rid: "r4", Age: 3, Left: 50}
		}
		return op
	})
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// scriptNode is the embedded engine with the one script that it needs, carried out by the model, on a clock of its own.
type scriptNode struct {
	*enginetest.Engine
	ahead time.Duration // of everybody else's clock
	delay func() time.Duration

	script sync.Mutex
	ran    int
}

func newScriptNode() *scriptNode {
	return &scriptNode{Engine: newNode(), ahead: 10 * time.Minute, delay: func() time.Duration { return time.Millisecond }}
}

func (n *scriptNode) clock() int64 { return time.Now().Add(n.ahead).UnixMilli() }

func (n *scriptNode) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	time.Sleep(n.delay())
	defer func() { time.Sleep(n.delay()) }()
	_, rest, scripted := strings.Cut(string(r.Target), "/_update/")
	if !scripted {
		return n.Engine.Do(ctx, r)
	}
	n.script.Lock()
	defer n.script.Unlock()
	id, _, _ := strings.Cut(rest, "?")
	for {
		body, done := n.carryOut(ctx, id, gjson.GetBytes(r.Body, "script.params.call").Raw)
		if !done {
			continue // somebody has written in between, without a script
		}
		n.ran++
		res := enginetest.Response(200, string(body))
		if n.After != nil {
			if err := n.After(r, res); err != nil {
				return nil, err
			}
		}
		return res, nil
	}
}

func (n *scriptNode) carryOut(ctx context.Context, id, call string) (body []byte, done bool) {
	was, _ := n.Engine.Do(ctx, &upstream.Request{Own: true, Method: "GET", Target: []byte("/locks/_doc/" + id)})
	d, target := new(state.Doc), "/locks/_create/"+id
	if found := gjson.ParseBytes(was.Payload); found.Get("found").Bool() {
		d, _ = state.Parse([]byte(found.Get("_source").Raw))
		target = fmt.Sprintf("/locks/_doc/%s?if_seq_no=%d&if_primary_term=%d", id, found.Get("_seq_no").Int(), found.Get("_primary_term").Int())
	}
	var c state.Call
	if err := json.Unmarshal([]byte(call), &c); err != nil {
		panic(err)
	}
	if _, changed := d.Apply(&c, state.Clock{Now: n.clock()}); !changed {
		source, _ := json.Marshal(d)
		return fmt.Appendf(nil, `{"result":"noop","get":{"_source":%s}}`, source), true
	}
	source, _ := json.Marshal(d)
	res, err := n.Engine.Do(ctx, &upstream.Request{Own: true, Method: "PUT", Target: []byte(target), Body: source})
	if err == nil && res.Status > 201 {
		return nil, false
	}
	if err != nil { // the node loses answers
		return []byte(`{"result":"updated"}`), true
	}
	a := gjson.ParseBytes(res.Payload)
	return fmt.Appendf(nil, `{"result":"updated","_seq_no":%d,"_primary_term":%d,"get":{"_source":%s}}`,
		a.Get("_seq_no").Int(), a.Get("_primary_term").Int(), source), true
}

func timed(t *testing.T, n *scriptNode) *Store {
	t.Helper()
	s := New(Options{Upstream: n, Index: "locks", Scripts: Always})
	if _, err := s.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.ran = 0
	n.Requests()
	return s
}

func release(results []state.Result, owner string) state.Op {
	return state.Op{Do: state.Release, Owner: owner, Token: results[len(results)-1].Token}
}

func TestWhatThisProcessHasJustChangedNeedsNoScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newScriptNode()
		s := timed(t, n)
		_, results, err := do(t, s, "a", acquire("a"))
		for i := range 20 {
			if err != nil || results[len(results)-1].Verdict != state.Acquired {
				t.Fatal(i, results, err)
			}
			owner, next := fmt.Sprint("w", i), acquire(fmt.Sprint("w", i+1))
			if i == 0 {
				owner = "a"
			}
			next.Rid = fmt.Sprint(i)
			_, results, err = do(t, s, "a", release(results, owner), next)
		}
		if requests := n.Requests(); n.ran != 1 || len(requests) != 22 {
			t.Errorf("%d scripts, %d requests", n.ran, len(requests))
		}
	})
}

func TestALeaseWithoutAScriptIsOfTheEnginesClock(t *testing.T) {
	for _, slow := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			n := newScriptNode()
			s := timed(t, n)
			n.delay = func() time.Duration { return slow }
			_, results, _ := do(t, s, "a", acquire("a"))
			n.delay = func() time.Duration { return time.Millisecond }
			time.Sleep(500 * time.Millisecond)
			sent := n.clock()
			d, results, err := do(t, s, "a", release(results, "a"), acquire("b"))
			if err != nil || results[1].Verdict != state.Acquired {
				t.Fatal(results, err)
			}
			scripts := 1
			if slow > 50*time.Millisecond {
				scripts = 2 // the clock wasn't read well enough
			}
			if n.ran != scripts {
				t.Errorf("%v: %d scripts", slow, n.ran)
			}
			h := d.Holds[0]
			if now := n.clock(); d.Seen > now || d.Seen < sent-2*slow.Milliseconds()-2 {
				t.Errorf("%v: the document was written at %d of a clock that said %d to %d", slow, d.Seen, sent, now)
			}
			if h.Until < sent+h.TTL || h.Until > n.clock()+h.TTL+2*slow.Milliseconds()+3 {
				t.Errorf("%v: the lease ends %d ms after it was asked for", slow, h.Until-sent)
			}
		})
	}
}

func TestWhatIsNotSureIsLeftToTheScript(t *testing.T) {
	for name, c := range map[string]struct {
		ttl    int64
		before func(t *testing.T, n *scriptNode, s *Store, token int64)
		op     func(token int64) state.Op
		want   state.Verdict
	}{
		"a lease that is about to end": {ttl: 300, before: func(*testing.T, *scriptNode, *Store, int64) { time.Sleep(150 * time.Millisecond) },
			op: func(token int64) state.Op { return state.Op{Do: state.Renew, Owner: "a", Token: token} }, want: state.Renewed},
		"a lease that has ended": {ttl: 300, before: func(*testing.T, *scriptNode, *Store, int64) { time.Sleep(350 * time.Millisecond) },
			op: func(token int64) state.Op { return state.Op{Do: state.Renew, Owner: "a", Token: token} }, want: state.Expired},
		"a clock that wasn't read just now": {ttl: 60_000, before: func(*testing.T, *scriptNode, *Store, int64) { time.Sleep(2 * time.Second) },
			op: func(token int64) state.Op { return state.Op{Do: state.Renew, Owner: "a", Token: token} }, want: state.Renewed},
		"a call that changes nothing": {ttl: 60_000, before: func(*testing.T, *scriptNode, *Store, int64) {},
			op: func(int64) state.Op { return acquire("b") }, want: state.Held},
		"a document that others have changed": {ttl: 60_000, before: func(t *testing.T, n *scriptNode, _ *Store, token int64) {
			other := New(Options{Upstream: n, Index: "locks", Scripts: Always})
			if _, results, err := do(t, other, "a", state.Op{Do: state.Release, Owner: "a", Token: token}, acquire("b")); err != nil ||
				results[1].Verdict != state.Acquired {
				t.Fatal(results, err)
			}
			n.ran = 1
		}, op: func(token int64) state.Op { return state.Op{Do: state.Renew, Owner: "a", Token: token} }, want: state.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newScriptNode()
				s := timed(t, n)
				first := acquire("a")
				first.TTL = c.ttl
				_, results, err := do(t, s, "a", first)
				if err != nil || results[0].Verdict != state.Acquired {
					t.Fatal(results, err)
				}
				c.before(t, n, s, results[0].Token)
				if _, results, err = do(t, s, "a", c.op(results[0].Token)); err != nil || results[0].Verdict != c.want {
					t.Error(results, err)
				}
				if n.ran != 2 {
					t.Errorf("%d scripts", n.ran)
				}
			})
		})
	}
}

func TestAWriteWhoseAnswerIsLostIsAnErrorAndTheScriptFindsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newScriptNode()
		s := timed(t, n)
		_, results, _ := do(t, s, "a", acquire("a"))
		lose(n.Engine, func(method, _ string) bool { return method == "PUT" })
		free, next := release(results, "a"), acquire("b")
		if _, _, err := do(t, s, "a", free, next); !errors.Is(err, lockrouter.ErrStore) {
			t.Fatal(err)
		}
		n.After = nil
		d, results, err := do(t, s, "a", free, next)
		if err != nil || results[0].Verdict != state.Released || results[1].Verdict != state.Acquired || len(d.Holds) != 1 || n.ran != 2 {
			t.Errorf("%v %v %d scripts", results, err, n.ran)
		}
	})
}

// TestProxiesWithTheEnginesClockNeverGiveALockTwice has members of three proxies take a lock, now and then forget it or stay too long,
// over a network that is slow at times and loses answers, with and without promised leases.
func TestProxiesWithTheEnginesClockNeverGiveALockTwice(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { timedCrowd(t, seed) }) })
	}
}

func timedCrowd(t *testing.T, seed uint64) {
	n := newScriptNode()
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 99))
	n.delay = func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(50) == 0 {
			return time.Duration(rng.IntN(100)) * time.Millisecond
		}
		return time.Duration(rng.IntN(1500)) * time.Microsecond
	}
	l := &ledger{t: t, ends: map[string]time.Time{}}
	var routers []*lockrouter.Router
	proxies := []int{1, 3}[seed%2]
	for range proxies {
		r := lockrouter.New(lockrouter.Options{Store: New(Options{Upstream: n, Index: "locks", Scripts: Always}), Chain: []int{0, 15}[seed/2%2]})
		defer r.Close()
		routers = append(routers, r)
	}
	request(t, routers[0]) // the index is there
	lose(n.Engine, func(method, _ string) bool {
		mu.Lock()
		defer mu.Unlock()
		return method != "GET" && rng.IntN(60) == 0
	})
	l.play(routers, seed, 1)
	puts := 0
	for _, r := range n.Requests() {
		if strings.HasPrefix(r, "PUT /locks/_doc") {
			puts++
		}
	}
	if proxies == 1 && puts == n.ran {
		t.Error("nothing was written without a script")
	}
	t.Logf("%d grants, %d of them never released, %d scripts, %d writes", l.grants, l.lapses, n.ran, puts)
}

func request(t *testing.T, r *lockrouter.Router) {
	t.Helper()
	if a, err := r.Serve(t.Context(), &lockrouter.Request{Method: "PUT", Path: []byte("/_lock/global/b"), Query: []byte("owner=x")}); err != nil ||
		a.Status != 201 {
		t.Fatal(a, err)
	}
}

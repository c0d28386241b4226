package write

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/rank"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// Three changes share a write. The second can't be merged into what the first makes, and goes alone. Whoever learns from conflicts hears of
// each of them once.
func TestAChangeThatLeavesASharedWriteIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWorld(t, "rules: [{name: r, merge: {paths: {/f: fail}}}]"), &meetings{}
		w.start(Options{Events: m.events()})
		w.put("1", `{"n":1,"f":1}`)
		w.warm("1")
		m.want(t, "warming up", `shop/1 merged {"n":1,"f":1} {"n":1,"f":1,"y":1} {"n":1,"f":1,"x":1}`)
		bodies := []string{`{"n":1,"f":2}`, `{"n":2,"f":1}`, `{"n":1,"f":3}`, `{"n":3,"f":1}`}
		var cs []*client
		for i := range bodies {
			cs = append(cs, w.client(fmt.Sprint(i)))
			cs[i].read("1")
		}
		results := w.queued(len(bodies), func(i int) result { return cs[i].save("1", bodies[i]) })
		for i, want := range []int{200, 200, 409, 200} {
			if results[i].status != want {
				t.Errorf("change %d: %v", i, results[i])
			}
		}
		m.want(t, "a shared write that one change leaves", `shop/1 combined {"n":1,"f":1} {"n":2,"f":1} {"n":1,"f":2}`, `shop/1 refused   `,
			`shop/1 combined {"n":1,"f":1} {"n":3,"f":1} {"n":2,"f":2}`)
	})
}

// However often a shared write is tried, its members' requests hold the memory of one try.
func TestTriesOfASharedWriteTakeTheMemoryOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("x", 200<<10)
		held := func(conflicts int64) (members [3]int64) {
			w := newWorld(t, "rules: [{name: r, match: {index: [shop]}, retry: {max_attempts: 100, backoff: {base_interval: 1ms, max_interval: 1ms}}}]\n")
			w.put("1", `{"n":0,"text":"`+text+`"}`)
			w.warm("1")
			b := budget.New(budget.Options{Limit: 1 << 40})
			var accounts [3]budget.Account
			var cs []*client
			for i := range accounts {
				accounts[i].Open(b, func() budget.Owner { return budget.Owner{} })
				cs = append(cs, w.client(fmt.Sprint(i)))
				cs[i].read("1")
			}
			var n, faster atomic.Int64 // on a slow machine, members may go apart
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != "PUT" {
					return nil, nil
				}
				if n.Add(1) > 1 {
					if k := faster.Add(1); k <= conflicts {
						w.put("1", fmt.Sprintf(`{"n":0,"other":%d,"text":%q}`, 10+k, text))
					}
				}
				return nil, nil
			}
			for i, r := range w.queued(len(cs), func(i int) result {
				ctx := budget.With(t.Context(), &accounts[i])
				return cs[i].sendContext(ctx, "PUT", "/shop/_doc/1", fmt.Sprintf(`{"n":0,"own%d":1,"text":%q}`, i, text))
			}) {
				has(t, r, 200, map[bool]string{true: "guarded", false: "combined"}[i == 0])
			}
			for i := range accounts {
				members[i] = accounts[i].Mark()
			}
			return members
		}
		few, many := held(1), held(12)
		for i := range few {
			if many[i] > few[i]+int64(len(text)) { // what a merge takes depends a little on what memory is there
				t.Errorf("member %d: after one conflict %d bytes, after twelve %d", i, few[i], many[i])
			}
		}
	})
}

// A shared write may end without an answer for one of its members only by a mistake of optimist's own. If it was sent by then, nobody can
// tell whether it was applied.
func TestAWriteThatWasSentAndHasNoAnswerIsUnknown(t *testing.T) {
	w := newWorld(t, "")
	for attempts, want := range []bool{false, true} {
		c := ruled(w.rules.Match("shop", api.Index))
		c.attempts = attempts
		_, err := w.s.finish(c, nil)
		if err == nil || errors.Is(err, ErrUnknownOutcome) != want {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	}
}

// newWorldOfHeld is a world with a count that is summed. held is how many changes the candidates of the last choice held.
func newWorldOfHeld(t *testing.T) (w *world, held *[]int) {
	w, held = newWorld(t, "rules: [{name: r, merge: {paths: {/n: sum}}}]"), new([]int)
	w.store = session.New(session.Options{Rank: func(cs []rank.Candidate, sent rank.Sent) rank.Choice {
		*held = (*held)[:0]
		for _, c := range cs {
			*held = append(*held, c.Changes)
		}
		return rank.Likeliest(cs, sent)
	}})
	w.start(Options{})
	w.put("1", `{"n":0}`)
	w.warm("1")
	return w, held
}

// How many changes a shared write held is known when somebody's base is looked for. A change that the document had already isn't one.
func TestASharedWriteSaysHowManyChangesItHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, held := newWorldOfHeld(t)
		bodies := []string{`{"n":1}`, `{"n":1}`, `{"n":0}`, `{"n":1}`}
		for range bodies {
			w.stranger().read("1")
		}
		for i, r := range w.queued(len(bodies), func(i int) result { return w.stranger().save("1", bodies[i]) }) {
			if r.status != 200 {
				t.Errorf("change %d: %v", i, r)
			}
		}
		last := w.stranger().read("1")
		if w.stranger().save("1", strings.Replace(last, "3", "4", 1)); last != `{"n":3}` || !slices.Contains(*held, 2) {
			t.Errorf("%s, and the candidates' changes are %v", last, *held)
		}
	})
}

// It is known after a split, and after a conflict, too.
func TestASplitWriteSaysHowManyChangesItHeld(t *testing.T) {
	look := func(w *world, n int) {
		for range 2 {
			w.stranger().read("1")
		}
		w.stranger().save("1", fmt.Sprintf(`{"n":%d}`, n+1))
	}
	t.Run("a member that the engine refuses", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, held := newWorldOfHeld(t)
			bodies := []string{`{"n":1}`, `{"n":1}`, `{"n":0,"poison":1}`, `{"n":1}`}
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "PUT" && strings.Contains(string(r.Body), "poison") {
					return answering(400, `{"error":{"type":"mapper_parsing_exception"},"status":400}`), nil
				}
				return nil, nil
			}
			for range bodies {
				w.stranger().read("1")
			}
			w.queued(len(bodies), func(i int) result { return w.stranger().save("1", bodies[i]) })
			look(w, 3)
			t.Log(w.stored("1"), *held)
			if slices.Max(*held) > 1 { // each went alone
				t.Errorf("%v", *held)
			}
		})
	})
	t.Run("a conflict", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, held := newWorldOfHeld(t)
			writes := 0
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if isWrite(r) {
					if writes++; writes == 2 { // the shared one
						w.put("1", `{"n":10}`)
					}
				}
				return nil, nil
			}
			bodies := []string{`{"n":1}`, `{"n":1}`, `{"n":1}`, `{"n":1}`}
			for range bodies {
				w.stranger().read("1")
			}
			w.queued(len(bodies), func(i int) result { return w.stranger().save("1", bodies[i]) })
			w.engine.before = nil
			look(w, 13)
			t.Log(w.stored("1"), *held)
			if slices.Max(*held) != 3 {
				t.Errorf("%v", *held)
			}
		})
	})
}

package write

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"optimist/internal/learn"
	"optimist/internal/session"
)

// meetings collects what is told of conflicts.
type meetings struct {
	mu   sync.Mutex
	list []string
	bare int // overwritten without having been read
}

func (m *meetings) events() Events {
	return Events{Collision: func(c *learn.Conflict) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.list = append(m.list, fmt.Sprintf("%s/%s %s %s %s %s", c.Ref.Index, c.Ref.ID, c.Outcome, c.Base, c.Sent, c.Current))
	}, Blind: func(string, session.Session) { m.bare++ }}
}

func (m *meetings) want(t *testing.T, what string, list ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if fmt.Sprintf("%q", m.list) != fmt.Sprintf("%q", list) {
		t.Errorf("%s: told of %q, want %q", what, m.list, list)
	}
	m.list = nil
}

func TestWhatAMergeJoinedIsTold(t *testing.T) {
	w, m := newWorld(t, "rules: [{name: r, merge: {paths: {/f: fail}}}]"), &meetings{}
	w.start(Options{Events: m.events()})
	a, b := w.client("a"), w.client("b")
	w.put("1", `{"n":1,"f":1}`)
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"n":2,"f":1}`), 200, "guarded")
	m.want(t, "a write that meets nobody")
	has(t, b.save("1", `{"n":3,"f":1}`), 200, "merged")
	m.want(t, "a merge", `shop/1 merged {"n":1,"f":1} {"n":3,"f":1} {"n":2,"f":1}`)

	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"n":3,"f":2}`), 200, "guarded")
	if r := b.save("1", `{"n":3,"f":3}`); r.status != 409 {
		t.Errorf("%v", r)
	}
	m.want(t, "a conflict that a rule lets stand", `shop/1 refused   `)
	if r := a.send("PUT", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"n":9}`); r.status != 409 {
		t.Errorf("%v", r)
	}
	m.want(t, "a conflict with the client's own guard", `shop/1 refused   `)
	a.send("PATCH", "/shop/_doc/1", `{"n":4}`)
	m.want(t, "a patch that meets nobody")

	w.put("2", `{"n":1,"s":"x"}`)
	a.read("2")
	b.read("2")
	a.send("POST", "/shop/_update/2", `{"doc":{"n":2}}`)
	m.want(t, "a part that meets nobody")
	b.send("POST", "/shop/_update/2", `{"doc":{"n":2}}`)
	m.want(t, "a part that is merged", `shop/2 merged {"n":1,"s":"x"} {"n":2,"s":"x"} {"n":2,"s":"x"}`)
	if m.bare != 0 {
		t.Errorf("%d writes without a base", m.bare)
	}
}

// A write that its rule refuses, such as the sale of something that is sold out, has met nobody: `optimist hot` must not list its document.
func TestRefusalOfARuleIsNoConflict(t *testing.T) {
	const rules = `rules: [{name: r, merge: {paths: {/n: sum}}, transform: [{op: refuse, message: sold out, when: candidate.n < 0}]}]`
	w, m := newWorld(t, rules), &meetings{}
	w.start(Options{Events: m.events()})
	a, b := w.client("a"), w.client("b")
	w.put("1", `{"n":1}`)
	a.read("1")
	b.read("1")
	has(t, a.save("1", `{"n":-1}`), 409, "refused")
	m.want(t, "a write that the rule refuses in any case")
	has(t, a.save("1", `{"n":0}`), 200, "guarded")
	has(t, b.save("1", `{"n":0}`), 409, "guarded")
	m.want(t, "a write that the rule refuses only because of another client's write", "shop/1 refused   ")
}

// The changes that share a write meet each other, and each is told what it was merged into.
func TestWhatASharedWriteJoinedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWorld(t, ""), &meetings{}
		w.start(Options{Events: m.events()})
		w.put("1", `{"n":1}`)
		w.warm("1")
		m.want(t, "one merge", `shop/1 merged {"n":1} {"n":1,"y":1} {"n":1,"x":1}`)
		var cs []*client
		for i := range 4 {
			cs = append(cs, w.client(fmt.Sprint(i)))
			cs[i].read("1")
		}
		w.queued(4, func(i int) result { return cs[i].save("1", fmt.Sprintf(`{"n":%d}`, 2+i)) })
		m.want(t, "three changes in one write", `shop/1 combined {"n":1} {"n":3} {"n":2}`, `shop/1 combined {"n":1} {"n":4} {"n":3}`,
			`shop/1 combined {"n":1} {"n":5} {"n":4}`)
	})
}

func TestWhoOverwritesWhatItNeverReadIsTold(t *testing.T) {
	w, m := newWorld(t, ""), &meetings{}
	w.start(Options{Events: m.events()})
	has(t, w.stranger().save("1", `{"n":1}`), 201, "passed")
	if m.bare != 0 {
		t.Error("one who makes a document is told of")
	}
	has(t, w.stranger().save("1", `{"n":2}`), 200, "guarded;attempts=1;base=view")
	w.put("2", `{"n":1}`)
	has(t, w.stranger().save("2", `{"n":2}`), 200, "passed")
	has(t, w.stranger().save("2", `{"n":3}`), 200, "passed")
	if m.bare != 2 {
		t.Errorf("%d writes without a base, want 2", m.bare)
	}
	m.want(t, "writes without a base")
}

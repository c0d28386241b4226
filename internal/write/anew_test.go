package write

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"optimist/internal/base"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// The answer to a write is lost. Before optimist looks, another client deletes the document and makes a new one of the same name. Every
// path that the write touches is there as it was, but the write may have been applied to the document that is gone: it isn't applied to
// the new one.
func TestALostWriteIsNotAppliedToADocumentThatWasMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		before  int // how often the document was written before its client read it; 0: there was none
		sent    string
		made    string // the new document
		applied bool   // the engine applied the write whose answer was lost
	}{
		"a create, applied":     {0, `{"a":2}`, `{"b":7}`, true},
		"a create, not applied": {0, `{"a":2}`, `{"b":7}`, false},
		"a PUT, applied":        {3, `{"a":2,"b":1}`, `{"a":1,"b":7}`, true},
		"a PUT, not applied":    {3, `{"a":2,"b":1}`, `{"a":1,"b":7}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("other", `{}`)
			for range c.before {
				w.put("1", `{"a":1,"b":1}`)
			}
			me := w.client("me")
			me.read("1")
			w.loseFirst(func(r *upstream.Request) {
				if c.applied {
					w.engine.handle(r)
				}
				w.direct("DELETE", "/shop", "") // no engine remembers versions of a deleted index
				w.put("other", `{}`)
				w.put("1", c.made)
			})
			if r := me.save("1", c.sent); !errors.Is(r.err, ErrUnknownOutcome) {
				t.Errorf("got %v", r)
			}
			same(t, w.stored("1"), c.made)
		})
	}
}

// The same, of a document that is the old one: another client has written to it, and the change may be applied twice.
func TestALostWriteIsAppliedToTheSameDocumentOnceMore(t *testing.T) {
	w := newWorld(t, "")
	for range 3 {
		w.put("1", `{"a":1,"b":1}`)
	}
	me := w.client("me")
	me.read("1")
	w.loseFirst(func(*upstream.Request) { w.put("1", `{"a":1,"b":7}`) })
	has(t, me.save("1", `{"a":2,"b":1}`), 200, "merged")
	same(t, w.stored("1"), `{"a":2,"b":7}`)
}

// The answer to a write is lost. Before its repeat arrives, the index is made anew without sequence numbers. The engine refuses the guard
// of the repeat, and so nobody can tell whether the first try was applied: the write isn't sent once more, without a guard.
func TestALostWriteIsNotSentUnguarded(t *testing.T) {
	for name, c := range map[string]struct{ method, target, body string }{
		"a document": {"PUT", "/shop/_doc/1", `{"n":2}`},
		"a part":     {"POST", update1, `{"doc":{"n":2}}`},
		"a delete":   {"DELETE", "/shop/_doc/1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"n":1}`)
			me := w.client("me")
			me.read("1")
			var sent []string
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if !isWrite(r) {
					return nil, nil
				}
				sent = append(sent, string(r.Target))
				switch {
				case len(sent) == 1:
					return nil, lostError
				case strings.Contains(string(r.Target), "if_seq_no="):
					return answering(400, `{"error":{"type":"illegal_argument_exception","reason":"disable_sequence_numbers"},"status":400}`), nil
				}
				return nil, nil
			}
			r := me.send(c.method, c.target, c.body)
			if !errors.Is(r.err, ErrUnknownOutcome) || !strings.HasPrefix(r.outcome, "unknown;attempts=2") || len(sent) != 2 {
				t.Errorf("%v; sent %q", r, sent)
			}
			same(t, w.stored("1"), `{"n":1}`)
		})
	}
}

// remake has the index made anew around optimist, with a document that has the numbers of the old one's first revision. noticed says that
// optimist has found out.
func (w *world) remake(body string, noticed bool) {
	w.t.Helper()
	w.direct("DELETE", "/shop", "")
	w.put("1", body)
	if noticed {
		w.store.DropIndex(session.Credentials{}, "shop")
	}
}

// A write has met a conflict, and the index is made anew before optimist reads the document again. The document then has the numbers that
// the write's base had, and another content.
func TestAnotherDocumentWithTheNumbersOfTheBaseIsNotOverwritten(t *testing.T) {
	for name, c := range map[string]struct {
		sees    func(me *client)
		noticed bool
	}{
		"of what was read":                  {func(me *client) { me.w.put("1", `{"a":1}`); me.read("1") }, false},
		"of what was written, and is known": {func(me *client) { me.read("1"); me.save("1", `{"a":1}`) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			me := w.client("me")
			c.sees(me)
			w.put("1", `{"a":1,"old":1}`)
			w.engine.after = func(_ *upstream.Request, res *upstream.Response) error {
				if res.Status == 409 {
					w.remake(`{"a":1,"new":1}`, c.noticed)
				}
				return nil
			}
			has(t, me.save("1", `{"a":2}`), 200, "merged;attempts=2")
			same(t, w.stored("1"), `{"a":2,"new":1}`)
		})
	}
}

// A write waits for its turn, and the index is made anew meanwhile. The write's numbers would be those of the new document.
func TestAWriteThatWaitedIsNotGuardedByTheNumbersOfAnotherIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			method, body string
			status       int
			outcome      string
			stored       string
		}{
			{"PUT", `{"a":2}`, 200, "merged;attempts=1", `{"a":2,"new":1}`},
			{"DELETE", "", 409, "refused;attempts=0", `{"a":1,"new":1}`},
		} {
			w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, on_delete_conflict: fail}\n")
			w.put("1", `{"a":1}`)
			me, first := w.client("me"), w.client("first")
			me.read("1")
			first.read("1")
			hold, held := w.holdFirst()
			done := make(chan result, 1)
			go first.send("POST", "/shop/_doc/1", `{`)
			<-held
			go func() { done <- me.send(c.method, "/shop/_doc/1", c.body) }()
			w.waiting(1)
			w.remake(`{"a":1,"new":1}`, true)
			close(hold)
			has(t, <-done, c.status, c.outcome)
			same(t, w.stored("1"), c.stored)
		}
	})
}

// Clients have read a document, and its index was made anew around optimist. The first write that is acknowledged there leaves an older
// revision than it was made from. So what another client has read is no base any more, though a document has its numbers again.
func TestTheFirstWriteInAnIndexThatWasMadeAnewShowsThat(t *testing.T) {
	for _, c := range []struct{ method, target, body string }{
		{"PUT", "/shop/_doc/1", `{"a":2}`},
		{"POST", "/shop/_update/1", `{"doc":{"a":2}}`},
	} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {lost: reject}}\n")
		w.put("1", `{"a":0}`)
		w.put("1", `{"a":0}`)
		w.put("1", `{"a":1}`)
		me, other := w.client("me"), w.client("other")
		me.read("1")
		other.read("1")
		w.remake(`{"a":1,"new":1}`, false)
		has(t, me.send(c.method, c.target, c.body), 200, "merged")
		w.put("1", `{"a":3,"new":1}`)
		if r := other.save("1", `{"a":4}`); !errors.Is(r.err, base.ErrLost) {
			t.Errorf("%s: %v", c.method, r)
		}
		same(t, w.stored("1"), `{"a":3,"new":1}`)
	}
}

// What a change is found in already may be read from a node that is cut off: nothing was written, and the index is the same.
func TestAChangeThatIsFoundInAnOlderRevisionShowsNoOtherIndex(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {lost: reject}}\n")
	w.put("1", `{"a":2}`)
	_, old := w.direct("GET", "/shop/_doc/1", "")
	w.put("1", `{"a":1}`)
	me, other := w.client("me"), w.client("other")
	me.read("1")
	other.read("1")
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		switch {
		case r.Method == "PUT":
			return answering(409, `{"error":{"type":"version_conflict_engine_exception"},"status":409}`), nil
		case r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop/_doc/1"):
			return answering(200, old), nil
		}
		return nil, nil
	}
	has(t, me.save("1", `{"a":2}`), 200, "merged")
	w.engine.before = nil
	has(t, other.save("1", `{"a":4}`), 200, "guarded")
}

// An index is deleted around optimist, made anew, and filled again by the client that has filled it before. None of its documents was deleted.
func TestAClientFillsAnIndexThatWasMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		method, target, body string
		status               int
		outcome              string
		stored               string
	}{
		"a PUT":    {"PUT", "/shop/_doc/1", `{"a":2}`, 201, "passed;attempts=2;base=lost;reason=index", `{"a":2}`},
		"a DELETE": {"DELETE", "/shop/_doc/1", "", 404, "passed;attempts=2;base=lost;reason=index", ""},
		"a part":   {"POST", "/shop/_update/1", `{"doc":{"a":2}}`, 404, "", ""},
		"an upsert": {"POST", "/shop/_update/1", `{"doc":{"a":2},"doc_as_upsert":true}`, 201,
			"retried;attempts=2;base=lost;reason=index", `{"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			me := w.client("me")
			has(t, me.save("1", `{"a":1}`), 201, "")
			has(t, me.save("1", `{"a":1}`), 200, "")
			w.direct("DELETE", "/shop", "")
			w.put("other", `{}`)
			has(t, me.send(c.method, c.target, c.body), c.status, c.outcome)
			if c.stored != "" {
				same(t, w.stored("1"), c.stored)
			}
		})
	}
}

// A document that another client has deleted in an index that is the same stays deleted.
func TestADocumentThatWasDeletedInItsIndexIsNotMadeByAStaleWrite(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	w.direct("DELETE", "/shop/_doc/1", "")
	has(t, me.save("1", `{"a":2}`), 409, "guarded;attempts=1;base=session")
}

// The answer to the write is lost, too. It isn't sent again, because the engine may still have it, and it isn't asked again and again.
func TestALostWriteIsNotMadeAgainInAnIndexThatWasMadeAnew(t *testing.T) {
	for _, method := range []string{"PUT", "DELETE"} {
		w := newWorld(t, "")
		me := w.client("me")
		has(t, me.save("1", `{"a":1}`), 201, "")
		w.direct("DELETE", "/shop", "")
		w.put("other", `{}`)
		sent, asked := 0, 0
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if isWrite(r) {
				sent++
				return nil, lostError
			}
			asked++
			return nil, nil
		}
		if r := me.send(method, "/shop/_doc/1", `{"a":2}`); !errors.Is(r.err, ErrUnknownOutcome) || sent != 1 || asked > 3 {
			t.Errorf("%s: %v, sent %d times, asked %d times", method, r, sent, asked)
		}
	}
}

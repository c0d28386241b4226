package write

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// movable is a world in which the alias shop stands for blue. Green has a document "1" with the same numbers as blue's.
func movable(t *testing.T, rules string) *world {
	t.Helper()
	w := newWorld(t, rules)
	w.direct("PUT", "/blue", `{"aliases":{"shop":{}}}`)
	w.direct("PUT", "/green", `{}`)
	w.direct("PUT", "/blue/_doc/1", `{"of":"blue","l":["x"]}`)
	w.direct("PUT", "/green/_doc/1", `{"of":"green","l":["x","g"]}`)
	has(t, w.client("first").send("PUT", "/shop/_doc/other", `{}`), 201, "passed") // now it is known what the name is
	return w
}

// move has the alias stand for green from now on.
func (w *world) move() {
	w.t.Helper()
	status, answer := w.direct("POST", "/_aliases",
		`{"actions":[{"remove":{"index":"blue","alias":"shop"}},{"add":{"index":"green","alias":"shop"}}]}`)
	if status != 200 {
		w.t.Fatal(answer)
	}
}

// push makes green's numbers others than blue's.
func (w *world) push() {
	w.direct("PUT", "/green/_doc/1", w.green())
	w.direct("PUT", "/green/_doc/1", w.green())
}

func (w *world) green() string {
	_, body := w.direct("GET", "/green/_doc/1", "")
	return gjson.Get(body, "_source").Raw
}

// movedCount is a world in which a client has read the count 1 in blue. Then the alias was moved to green, where it is 100.
func movedCount(t *testing.T) (*world, *client) {
	t.Helper()
	w := movable(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n")
	w.direct("PUT", "/blue/_doc/1", `{"n":1}`)
	w.direct("PUT", "/green/_doc/1", `{"n":100}`)
	w.push()
	me := w.client("me")
	me.readBy()
	w.move()
	return w, me
}

// readBy reads the document by the alias, as the door would watch it.
func (c *client) readBy() {
	c.w.t.Helper()
	epoch := c.w.store.Epoch()
	status, body := c.w.direct("GET", "/shop/_doc/1", "")
	ref := doc.Ref{Index: gjson.Get(body, "_index").String(), ID: "1"}
	if status == 404 {
		c.w.store.ReadAbsent(c.sess, ref, epoch)
		return
	}
	rev, ok := revisionIn(body)
	if !ok {
		c.w.t.Fatalf("no revision in %s", body)
	}
	c.w.store.Read(c.sess, ref, rev, epoch)
}

// The alias is moved before the first try, or after it: the patch is made on the document that the name stands for when it is written.
func TestAPatchIsMadeOnTheDocumentThatItsNameStandsFor(t *testing.T) {
	for name, pushed := range map[string]bool{"equal numbers": false, "other numbers": true} {
		t.Run(name, func(t *testing.T) {
			w := movable(t, "")
			if pushed {
				w.push()
			}
			w.move()
			has(t, w.client("p").patch(target1, "merge", `{"p":1}`), 200, "")
			same(t, w.green(), `{"of":"green","l":["x","g"],"p":1}`)
		})
		t.Run(name+", after a try", func(t *testing.T) {
			w := movable(t, "")
			tried := false
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if !tried && r.Method == "PUT" && strings.HasPrefix(string(r.Target), target1) {
					tried = true
					w.direct("PUT", "/blue/_doc/1", `{"of":"blue","l":["y"]}`) // so that it conflicts
					w.direct("PUT", "/green/_doc/1", `{"of":"green","l":["x","g"]}`)
					if pushed {
						w.push()
					}
					res := w.engine.handle(r)
					w.move()
					return res, nil
				}
				return nil, nil
			}
			has(t, w.client("p").patch(target1, "merge", `{"p":1}`), 200, "")
			same(t, w.green(), `{"of":"green","l":["x","g"],"p":1}`)
		})
	}
}

// A client reads, the alias is moved, the client writes: its change is made to the document that the name stands for now.
func TestAChangeFollowsItsName(t *testing.T) {
	for name, pushed := range map[string]bool{"equal numbers, asked again": false, "other numbers": true} {
		for who, of := range map[string]func(w *world) *client{
			"named":    func(w *world) *client { return w.client("me") },
			"inferred": func(w *world) *client { return w.stranger() },
		} {
			for kind, send := range map[string]func(c *client) result{
				"PUT":     func(c *client) result { return c.save("1", `{"of":"blue","l":["x","me"]}`) },
				"_update": func(c *client) result { return c.send("POST", "/shop/_update/1", `{"doc":{"l":["x","me"]}}`) },
			} {
				t.Run(name+", "+who+", "+kind, func(t *testing.T) {
					w := movable(t, "")
					me := of(w)
					me.readBy()
					w.move()
					if pushed {
						w.push()
					} else {
						w.later += 2 * time.Second
					}
					has(t, send(me), 200, "merged")
					same(t, w.green(), `{"of":"green","l":["x","g","me"]}`)
				})
			}
		}
	}
}

// Clients of an inferred session have read before the move, and others after it: no change is lost, in whatever order they write.
func TestTheChangesOfAllClientsOfASessionFollowTheirName(t *testing.T) {
	writes := []string{`{"of":"blue","l":["x","1"]}`, `{"of":"blue","l":["x","2"]}`, `{"of":"green","l":["x","g","3"]}`}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {2, 0, 1}} {
		for _, there := range []bool{true, false} {
			w := movable(t, "")
			w.push()
			us := w.stranger()
			us.readBy()
			us.readBy()
			w.move()
			w.later += 2 * time.Second
			want := []string{"x", "g"}
			if there {
				us.readBy()
			} else {
				w.direct("DELETE", "/green/_doc/1", "")
				order, want = order[:2], []string{"x"}
				if order[1] == 2 || order[0] == 2 {
					continue // nobody has read there
				}
			}
			for _, i := range order {
				if r := us.save("1", writes[i]); r.err != nil || strings.Contains(r.outcome, "passed") {
					t.Errorf("%v: %+v", order, r)
				}
				want = append(want, strconv.Itoa(i+1))
			}
			var got []string
			for _, entry := range gjson.Get(w.green(), "l").Array() {
				got = append(got, entry.Str)
			}
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("%v, there %v: %v", order, there, got)
			}
		}
	}
}

// The client may have read in the other index before the start, or has read there long ago. What it has read since in the index before is
// newer.
func TestAChangeFollowsItsNameToWhereItsClientHasReadLongAgo(t *testing.T) {
	for name, long := range map[string]time.Duration{"before the start": time.Second, "too long ago": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := movable(t, "")
			now := time.Now()
			w.store = session.New(session.Options{Now: func() time.Time { return now }})
			w.start(Options{})
			me, other := w.client("me"), w.client("other")
			if name == "too long ago" {
				w.move()
				me.readBy()
				w.direct("POST", "/_aliases", `{"actions":[{"remove":{"index":"green","alias":"shop"}},{"add":{"index":"blue","alias":"shop"}}]}`)
			}
			now = now.Add(long)
			has(t, w.client("first").send("PUT", "/shop/_doc/other", `{}`), 200, "")
			me.readBy()
			w.move()
			w.push()
			other.readBy()
			has(t, other.save("1", `{"of":"green","l":["x","g","other"]}`), 200, "")
			has(t, me.save("1", `{"of":"blue","l":["x","me"]}`), 200, "merged")
			same(t, w.green(), `{"of":"green","l":["x","g","other","me"]}`)
		})
	}
}

// The index before was forgotten: somebody has deleted it through optimist, for example. The base is lost then.
func TestABaseIsLostIfTheIndexBeforeWasForgotten(t *testing.T) {
	for rules, want := range map[string]string{
		"": "passed;attempts=1;base=lost;reason=index",
		"rules:\n- {name: r, match: {index: [shop]}, base: {lost: reject}}\n": "",
	} {
		for _, me := range []func(w *world) *client{(*world).stranger, func(w *world) *client { return w.client("me") }} {
			w := movable(t, rules)
			me := me(w)
			me.readBy()
			w.move()
			w.store.DropIndex(session.Credentials{}, "blue")
			w.later += 2 * time.Second
			r := me.save("1", `{"of":"me"}`)
			if want == "" {
				if !errors.Is(r.err, base.ErrLost) {
					t.Errorf("%+v", r)
				}
				continue
			}
			has(t, r, 200, want)
			me.readBy()
			w.direct("PUT", "/green/_doc/1", `{"of":"me","g":1}`)
			has(t, me.save("1", `{"of":"me","n":1}`), 200, "merged") // it has read there
			same(t, w.green(), `{"of":"me","g":1,"n":1}`)
		}
	}
}

// Whether the write was applied isn't known: its change isn't merged a second time.
func TestAChangeThatFollowedItsNameIsNotMergedTwice(t *testing.T) {
	w, me := movedCount(t)
	w.later += 2 * time.Second
	lost := false
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" && strings.Contains(string(r.Target), "if_seq_no") && !lost {
			lost = true
			w.engine.handle(r)
			return nil, lostError
		}
		return nil, nil
	}
	if r := me.save("1", `{"n":2}`); !errors.Is(r.err, ErrUnknownOutcome) {
		t.Fatalf("%+v", r)
	}
	r := me.save("1", `{"n":2}`)
	if r.err == nil && strings.Contains(r.outcome, "merged") {
		t.Errorf("%+v, stored %s", r, w.green())
	}
}

// What a client has seen of the document before is no base of its next write once it has written to the other.
func TestAChangeThatFollowedItsNameCountsOnce(t *testing.T) {
	w, me := movedCount(t)
	has(t, me.save("1", `{"n":2}`), 200, "merged")
	has(t, me.save("1", `{"n":3}`), 200, "")
	same(t, w.green(), `{"n":102}`)
}

// A document that isn't in the index for which the name stands now is made there: the engine would make it, too.
func TestADocumentThatIsNotInTheOtherIndexIsMade(t *testing.T) {
	w := movable(t, "")
	w.direct("DELETE", "/green/_doc/1", "")
	me := w.client("me")
	me.readBy()
	w.move()
	has(t, me.save("1", `{"l":["me"]}`), 201, "")
	same(t, w.green(), `{"l":["me"]}`)
}

// The engine accepts the guard in the other index, whose numbers are the same by chance. The write was guarded, and its outcome says so.
func TestAGuardThatTheOtherIndexAcceptsIsToldAsOne(t *testing.T) {
	w := movable(t, "")
	me := w.client("me")
	me.readBy()
	w.move()
	has(t, me.save("1", `{"of":"me"}`), 200, "guarded;attempts=1;base=session;reason=index")
	w.direct("PUT", "/green/_doc/1", `{"of":"me","g":1}`)
	has(t, me.save("1", `{"of":"me","again":1}`), 200, "merged") // from what it wrote
	same(t, w.green(), `{"of":"me","g":1,"again":1}`)
}

// The same, of a write without a base: its session knows where it went.
func TestAPassedWriteFollowsItsName(t *testing.T) {
	w := movable(t, "")
	w.move()
	me := w.client("me")
	has(t, me.save("1", `{"of":"me"}`), 200, "passed;attempts=1;base=none;reason=index")
	w.direct("PUT", "/green/_doc/1", `{"of":"me","g":1}`)
	has(t, me.save("1", `{"of":"me","again":1}`), 200, "merged")
	same(t, w.green(), `{"of":"me","g":1,"again":1}`)
}

// The answer to a write is lost. Before optimist looks, the index is copied, and the alias is moved to the copy. The write may be in the copy
// already: it isn't made there once more.
func TestALostWriteIsNotMadeAgainInACopyOfItsIndex(t *testing.T) {
	for kind, send := range map[string]func(c *client) result{
		"PUT":     func(c *client) result { return c.save("1", `{"n":2}`) },
		"_update": func(c *client) result { return c.send("POST", "/shop/_update/1", `{"doc":{"n":2}}`) },
	} {
		t.Run(kind, func(t *testing.T) {
			w := movable(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n")
			w.direct("PUT", "/blue/_doc/1", `{"n":1}`)
			me := w.client("me")
			me.readBy()
			lost := false
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if !isWrite(r) || lost {
					return nil, nil
				}
				lost = true
				w.engine.handle(r)
				w.direct("PUT", "/green/_doc/1", `{"n":2}`)
				w.push()
				w.move()
				return nil, lostError
			}
			if r := send(me); !errors.Is(r.err, ErrUnknownOutcome) {
				t.Errorf("got %v", r)
			}
			same(t, w.green(), `{"n":2}`)
		})
	}
}

// The numbers that stand for what was carried from another index are no revision that a client could name.
func TestNoClientNamesWhatWasCarried(t *testing.T) {
	w := movable(t, "rules:\n- {name: r, match: {index: [shop]}, base: {explicit: merge}}\n")
	me := w.stranger()
	me.readBy()
	w.move()
	w.later += 2 * time.Second
	w.store.Carry(me.sess, doc.Ref{Index: "blue", ID: "1"}, doc.Ref{Index: "green", ID: "1"})
	for n := range 4 {
		guard := "?if_primary_term=1&if_seq_no=" + strconv.Itoa(n-1<<40)
		has(t, me.send("PUT", target1+guard, `{"of":"blue","l":["x","me"]}`), 400, "guarded;attempts=1;base=explicit;reason=explicit")
	}
	same(t, w.green(), `{"of":"green","l":["x","g"]}`)
}

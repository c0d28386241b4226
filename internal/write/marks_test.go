package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/mark"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// markRules count /n, which may not be done twice, and have writes leave marks.
const markRules = "rules:\n- {name: r, match: {index: [shop]}, write_id: _writes, merge: {paths: {/n: sum}}}\n"

// another is another proxy in front of the same engine, on whose way nothing goes wrong.
func (w *world) another() *world {
	o := &world{t: w.t, engine: &engine{Engine: w.engine.Engine}, rules: w.rules, store: session.New(session.Options{})}
	o.start(Options{})
	return o
}

// unmarked is the document in the engine without its marks, and how many these are.
func (w *world) unmarked(id string) (string, int) {
	w.t.Helper()
	rest, t := mark.Take([]byte(w.stored(id)), "_writes")
	return string(rest), len(t)
}

// count has a client of the world add so much to /n.
func (w *world) count(name string, by int) {
	w.t.Helper()
	me := w.client(name)
	me.read("1")
	was := gjson.Get(w.stored("1"), "n").Int()
	has(w.t, me.save("1", fmt.Sprintf(`{"n":%d}`, was+int64(by))), 200, "")
}

// ways are ways to add 1 to /n of the document "1", which has {"n":5}.
var ways = map[string]func(c *client) result{
	"a document": func(c *client) result { c.read("1"); return c.save("1", `{"n":6}`) },
	"a document that its client got with marks": func(c *client) result {
		was := c.read("1")
		sent, _ := sjson.Set(was, "n", 6)
		return c.save("1", sent)
	},
	"a part":         func(c *client) result { c.read("1"); return c.send("POST", update1, `{"doc":{"n":6}}`) },
	"a patch":        func(c *client) result { return c.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`) },
	"a second write": func(c *client) result { c.read("1"); c.save("1", `{"n":5}`); return c.save("1", `{"n":6}`) },
}

// stories are what happens to a write whose answer is lost.
var stories = map[string]struct {
	applied bool
	then    func(w *world, other *world)
	want    int64 // of /n; 0: nobody can tell, and n is what it is without a second write
	either  int64
}{
	"applied":                    {true, func(_, _ *world) {}, 6, 0},
	"applied, and another wrote": {true, func(_, o *world) { o.count("o", 10) }, 16, 0},
	"applied, and as many as there is room": {true, func(_, o *world) {
		for i := range mark.Most - 1 {
			o.count(fmt.Sprint(i), 10)
		}
	}, 6 + 10*(mark.Most-1), 0},
	"applied, and more": {true, func(_, o *world) {
		for i := range mark.Most {
			o.count(fmt.Sprint(i), 10)
		}
	}, 0, 6 + 10*mark.Most},
	"applied, and somebody wrote past optimist":     {true, func(w, _ *world) { w.put("1", `{"n":70}`) }, 0, 70},
	"applied, and somebody put back what was there": {true, func(w, _ *world) { w.put("1", w.read5) }, 0, 5},
	"applied, and deleted":                          {true, func(w, _ *world) { w.direct("DELETE", target1, "") }, 0, 0},
	"not applied":                                   {false, func(_, _ *world) {}, 6, 0},
	"not applied, and another wrote":                {false, func(_, o *world) { o.count("o", 10) }, 16, 0},
	"not applied, and two others wrote":             {false, func(_, o *world) { o.count("o", 10); o.count("p", 10) }, 26, 0},
	"not applied, and somebody wrote past optimist": {false, func(w, _ *world) { w.put("1", `{"n":70}`) }, 0, 70},
	"not applied, and somebody wrote between":       {false, func(w, o *world) { w.put("1", `{"n":70}`); o.count("o", 10) }, 0, 80},
}

// TestALostAnswerIsFoundInTheDocument: every change counts once, or its client is told that nobody knows.
func TestALostAnswerIsFoundInTheDocument(t *testing.T) {
	for way, send := range ways {
		for story, c := range stories {
			t.Run(way+"/"+story, func(t *testing.T) {
				w := newWorld(t, markRules)
				w.put("1", `{"n":5}`)
				first := w.client("first")
				first.read("1")
				has(t, first.save("1", `{"n":5}`), 200, "guarded") // so that there are marks
				w.read5 = w.stored("1")
				writes := 0
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method == http.MethodGet || strings.Contains(string(r.Target), "optimist-probe") {
						return nil, nil
					}
					if writes++; writes != 1+strings.Count(way, "second") {
						return nil, nil
					}
					if c.applied {
						if res := w.engine.handle(r); res.Status > 201 {
							t.Errorf("%d %s", res.Status, res.Payload)
						}
					}
					c.then(w, w.another())
					return nil, lostError
				}
				r := send(w.client("c"))
				got, _ := w.unmarked("1")
				n := gjson.Get(got, "n").Int()
				switch unknown := errors.Is(r.err, ErrUnknownOutcome); {
				case unknown != (c.want == 0), !unknown && r.status != 200, n != c.want+c.either:
					t.Errorf("%v, and n is %d, of %d or %d", r, n, c.want, c.either)
				}
			})
		}
	}
}

// What comes late is found, too: the first try is applied while the second is under way.
func TestATryThatComesLateCountsOnce(t *testing.T) {
	for way, send := range ways {
		if strings.Contains(way, "second") {
			continue
		}
		w := newWorld(t, markRules)
		w.put("1", `{"n":5}`)
		var late *upstream.Request
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			switch {
			case r.Method == http.MethodGet || strings.Contains(string(r.Target), "optimist-probe"):
			case late == nil:
				copied := *r
				copied.Target, copied.Body = append([]byte(nil), r.Target...), append([]byte(nil), r.Body...)
				late = &copied
				return nil, lostError
			default:
				w.engine.before = nil
				w.engine.handle(late)
			}
			return nil, nil
		}
		r := send(w.client("c"))
		got, marks := w.unmarked("1")
		if r.status != 200 || gjson.Get(got, "n").Int() != 6 || marks != 1 {
			t.Errorf("%s: %v, stored %s with %d marks", way, r, got, marks)
		}
	}
}

// A document that is new, or is written by somebody who hasn't read it, is found by its mark, too.
func TestALostWriteWithoutABaseIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		method, target string
		create         bool
	}{
		"a create":              {"PUT", "/shop/_create/1", true},
		"a create by op_type":   {"PUT", target1 + "?op_type=create", true},
		"a document never read": {"PUT", target1, false},
	} {
		for _, applied := range []bool{true, false} {
			w := newWorld(t, markRules)
			w.put("0", `{}`)
			if !c.create {
				w.put("1", `{"n":1}`)
			}
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != "PUT" {
					return nil, nil
				}
				if applied {
					w.engine.handle(r)
				}
				return nil, lostError
			}
			r := w.client("c").send(c.method, c.target, `{"n":5}`)
			want := map[bool]int{true: 201, false: 200}[c.create]
			if applied && (r.status != want || gjson.Get(r.body, "_seq_no").Int() != gjson.Get(w.get("1"), "_seq_no").Int()) ||
				!applied && !errors.Is(r.err, ErrUnknownOutcome) || len(w.engine.sent) != 0 {
				t.Errorf("%s, applied %v: %v", name, applied, r)
			}
		}
	}
}

// The field is optimist's: what clients send in it changes nothing, and a document that comes back with it or without it loses nothing.
func TestMarksAreNothingToClients(t *testing.T) {
	for _, field := range []string{"", `,"_writes":null`, `,"_writes":["x"]`, `,"_writes":{"a":1}`, "back"} {
		w := newWorld(t, markRules)
		w.put("1", `{"n":1,"a":1}`)
		me, other := w.client("me"), w.client("other")
		for i := range 3 * mark.Most {
			was := me.read("1")
			o := other.read("1")
			sent := fmt.Sprintf(`{"n":%d,"a":%d%s}`, gjson.Get(was, "n").Int()+1, i, field)
			if field == "back" {
				sent, _ = sjson.Set(was, "n", gjson.Get(was, "n").Int()+1)
			}
			oSent, _ := sjson.Set(o, "n", gjson.Get(o, "n").Int()+1)
			has(t, me.save("1", sent), 200, "guarded;attempts=1;base=session")
			has(t, other.save("1", oSent), 200, "merged;attempts=2;base=session")
		}
		got, marks := w.unmarked("1")
		if gjson.Get(got, "n").Int() != 1+6*mark.Most || marks != mark.Most || strings.Count(w.stored("1"), "_writes") != 1 {
			t.Errorf("%q: %s with %d marks", field, got, marks)
		}
	}
	w := newWorld(t, markRules)
	w.put("1", `{"n":1}`)
	me := w.client("me")
	for i := range 5 { // from memory
		r := me.save("1", fmt.Sprintf(`{"n":%d}`, i))
		if i > 0 {
			has(t, r, 200, "guarded;attempts=1;base=view")
		}
		if r.etag == "" && i > 0 {
			t.Errorf("%d: the client has seen all of it: %v", i, r)
		}
	}
	me.read("1")
	if r := me.send("POST", update1, `{"doc":{"n":4,"_writes":[]}}`); gjson.Get(r.body, "result").Str != "noop" {
		t.Errorf("a part that changes nothing: %v", r)
	}
	has(t, me.patch(target1, "merge", `{"_writes":null}`), 200, "guarded")
	if _, marks := w.unmarked("1"); marks != 5 {
		t.Errorf("%d marks", marks)
	}
}

// Without write_id nothing of it is in a document, or in what is asked of the engine.
func TestWithoutARuleThereAreNoMarks(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	has(t, me.save("1", `{"n":2}`), 200, "guarded")
	if got := w.stored("1"); got != `{"n":2}` {
		t.Error(got)
	}
}

// Writes that are made together leave one mark, and each of them is found by it.
func TestAWriteOfManyIsFoundForEachOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, markRules)
		w.put("1", `{"n":0}`)
		w.client("x").read("1")
		w.count("y", 0)
		has(t, w.client("x").save("1", `{"n":0,"x":1}`), 200, "merged") // now it is known that documents are seen whole
		w.put("1", `{"n":0}`)
		const clients = 5
		for i := range clients {
			w.client(fmt.Sprint(i)).read("1")
		}
		hold, held := w.holdFirst()
		results := make(chan result, clients)
		send := func(i int) { results <- w.client(fmt.Sprint(i)).save("1", `{"n":1}`) }
		go send(0)
		<-held
		for i := 1; i < clients; i++ {
			go send(i)
		}
		w.waiting(clients - 1)
		lost := false
		w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
			if r.Method == "PUT" && strings.Contains(string(r.Body), `"n":`+fmt.Sprint(clients)) && !lost {
				lost = true
				return lostError
			}
			return nil
		}
		close(hold)
		for range clients {
			if r := <-results; r.status != 200 {
				t.Error(r)
			}
		}
		got, marks := w.unmarked("1")
		if gjson.Get(got, "n").Int() != clients || !lost || marks != 2 {
			t.Errorf("%s with %d marks, lost %v", got, marks, lost)
		}
	})
}

// A client that leaves has its write's outcome found all the same: its next write builds on it.
func TestAWriteWhoseClientLeftIsFound(t *testing.T) {
	w := newWorld(t, markRules)
	w.put("1", `{"n":5}`)
	me := w.client("me")
	me.read("1")
	ctx, leave := context.WithCancel(t.Context())
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == "PUT" {
			w.engine.after = nil
			leave()
			return lostError
		}
		return nil
	}
	if r := me.sendContext(ctx, "PUT", target1, `{"n":6}`); r.status != 200 {
		t.Errorf("%v", r)
	}
	has(t, me.save("1", `{"n":7}`), 200, "guarded;attempts=1;base=view")
	if got, _ := w.unmarked("1"); got != `{"n":7}` {
		t.Error(got)
	}
}

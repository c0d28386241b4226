package write

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// editsRule counts the writes of a document.
const editsRule = `rules:
- name: shop
  match: {index: [shop]}
  merge: {paths: {/n: sum}}
  transform:
  - {op: default, path: /status, value: new}
  - {op: increment, path: /edits, value: 1}
`

// currentRule keeps a counter that clients don't send.
const currentRule = `rules:
- name: shop
  match: {index: [shop]}
  transform:
  - {op: add, path: /edits, value: {from: current, path: /edits}}
  - {op: increment, path: /edits, value: 1}
`

// Each write is transformed once, however often it is tried, and whatever it is made from.
func TestATransformCountsOnceAWrite(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0,"b":0,"n":5,"edits":10}`)
	me, other := w.client("me"), w.client("other")
	me.read("1")
	other.read("1")
	has(t, me.save("1", `{"a":1,"b":0,"n":6,"edits":10}`), 200, "guarded;attempts=1;base=session")
	same(t, w.stored("1"), `{"a":1,"b":0,"n":6,"edits":11,"status":"new"}`)
	has(t, other.save("1", `{"a":0,"b":1,"n":6,"edits":10}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"a":1,"b":1,"n":7,"edits":12,"status":"new"}`)
	// From memory: what the transform did, and what others did, stays.
	for i := 2; i < 5; i++ {
		has(t, me.save("1", fmt.Sprintf(`{"a":%d,"b":0,"n":6,"edits":10}`, i)), 200, "merged")
		same(t, w.stored("1"), fmt.Sprintf(`{"a":%d,"b":1,"n":7,"edits":%d,"status":"new"}`, i, 11+i))
	}
}

func TestAllThatWritesADocumentIsTransformed(t *testing.T) {
	for name, c := range map[string]struct {
		write func(w *world) result
		want  string
	}{
		"without a base": {func(w *world) result { return w.client("c").save("1", `{"a":1}`) }, `{"a":1,"status":"new","edits":1}`},
		"create":         {func(w *world) result { return w.client("c").send("PUT", "/shop/_create/2", `{"a":1}`) }, `{"a":1,"status":"new","edits":1}`},
		"op_type": {func(w *world) result { return w.client("c").send("POST", "/shop/_doc/2?op_type=create", `{"a":1}`) },
			`{"a":1,"status":"new","edits":1}`},
		"without an id": {func(w *world) result { return w.nobody().send("POST", "/shop/_doc", `{"a":1}`) }, `{"a":1,"status":"new","edits":1}`},
		"explicit guard": {func(w *world) result {
			return w.client("c").send("PUT", target1+"?if_seq_no=0&if_primary_term=1", `{"a":1,"edits":5}`)
		}, `{"a":1,"status":"new","edits":6}`},
		"external version": {func(w *world) result {
			return w.client("c").send("PUT", target1+"?version=9&version_type=external", `{"a":1}`)
		}, `{"a":1,"status":"new","edits":1}`},
		"If-Match": {func(w *world) result {
			return w.client("c").send("PUT", target1, `{"a":1,"edits":5}`, ifMatch(`"0-1"`))
		},
			`{"a":1,"status":"new","edits":6}`},
		"absent": {func(w *world) result { c := w.client("c"); c.read("2"); return c.save("2", `{"a":1}`) },
			`{"a":1,"status":"new","edits":1}`},
		"PATCH":  {func(w *world) result { return w.client("c").patch(target1, "merge", `{"a":2}`) }, `{"a":2,"status":"new","edits":8}`},
		"upsert": {func(w *world) result { return w.client("c").patch("/shop/_doc/2?upsert", "merge", `{"a":2}`) }, `{"a":2,"status":"new","edits":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, editsRule)
			w.put("1", `{"a":0,"edits":7}`)
			r := c.write(w)
			if r.status != 200 && r.status != 201 || strings.Contains(r.outcome, "untransformed") || strings.Contains(r.outcome, "pipeline") {
				t.Fatalf("got %v", r)
			}
			same(t, w.stored(gjson.Get(r.body, "_id").Str), c.want)
		})
	}
}

func TestWhatIsNotTransformedIsSaid(t *testing.T) {
	for name, write := range map[string]func(w *world) result{
		"not JSON":    func(w *world) result { return w.client("c").send("PUT", target1, "a: 1", media("application/yaml")) },
		"broken":      func(w *world) result { return w.client("c").save("1", `{"a":}`) },
		"with a base": func(w *world) result { c := w.client("c"); c.read("1"); return c.save("1", `{"a":}`) },
		"a script":    func(w *world) result { return w.client("c").send("POST", "/shop/_update/1", `{"script":"x"}`) },
		"a coded body": func(w *world) result {
			return w.client("c").send("PUT", target1, "x", wire.Field{Name: []byte("Content-Encoding"), Value: []byte("br")})
		},
		"signed": func(w *world) result {
			ru := w.rules.All()[0]
			return w.nobody().request(&Request{Request: base.Request{Rule: ru}, Reason: outcome.ReasonSigned}, "PUT", target1, `{"a":2}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, editsRule)
			w.put("1", `{"a":0}`)
			if r := write(w); r.err != nil || !strings.Contains(r.outcome, ";untransformed") {
				t.Errorf("got %v", r)
			}
		})
	}
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0}`)
	if r := w.client("c").send("DELETE", target1, ""); strings.Contains(r.outcome, "untransformed") {
		t.Errorf("a delete: %v", r)
	}
}

// request is do with what a test has of a Request.
func (c *client) request(r *Request, method, target, body string) result {
	return c.doRequest(c.w.t.Context(), r, method, target, []byte(body))
}

func TestATransformThatReadsTheStoredDocumentIsGuardedByIt(t *testing.T) {
	for name, c := range map[string]struct {
		write   func(w *world) result
		outcome string
	}{
		"without a base": {func(w *world) result { return w.client("c").save("1", `{"a":1}`) }, "guarded;attempts=1;base=fetched"},
		"read":           {func(w *world) result { c := w.client("c"); c.read("1"); return c.save("1", `{"a":1}`) }, "guarded;attempts=1;base=session"},
		"If-Match":       {func(w *world) result { return w.client("c").send("PUT", target1, `{"a":1}`, ifMatch(`"0-1"`)) }, "guarded;attempts=1;base=if_match"},
		"explicit": {func(w *world) result {
			return w.client("c").send("PUT", target1+"?if_seq_no=0&if_primary_term=1", `{"a":1}`)
		},
			"guarded;attempts=1;base=explicit;reason=explicit"},
		"PATCH": {func(w *world) result { return w.client("c").patch(target1, "merge", `{"a":1}`) }, "guarded;attempts=1;base=none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, currentRule)
			w.put("1", `{"a":0,"edits":7}`)
			has(t, c.write(w), 200, c.outcome)
			same(t, w.stored("1"), `{"a":1,"edits":8}`)
			if last := w.engine.sent[len(w.engine.sent)-1]; last != "PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1" {
				t.Errorf("sent %s", last)
			}
		})
	}
	t.Run("somebody is faster", func(t *testing.T) {
		w := newWorld(t, currentRule)
		w.put("1", `{"a":0,"edits":7}`)
		once := false
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" && !once {
				once = true
				w.put("1", `{"a":0,"edits":20}`)
			}
			return nil, nil
		}
		// The base is what was fetched, so the client is taken to have removed what it didn't send.
		has(t, w.client("c").save("1", `{"a":1}`), 200, "merged;attempts=2;base=fetched")
		same(t, w.stored("1"), `{"a":1,"edits":21}`)
		once = false
		has(t, w.client("d").send("PUT", target1+"?if_seq_no=2&if_primary_term=1", `{"a":5}`), 409, "guarded;attempts=1;base=explicit")
		has(t, w.client("d").send("PUT", target1+"?if_seq_no=0&if_primary_term=1", `{"a":5}`), 409, "refused;attempts=0;base=explicit")
		same(t, w.stored("1"), `{"a":0,"edits":20}`)
	})
	t.Run("nothing there", func(t *testing.T) {
		w := newWorld(t, currentRule)
		has(t, w.client("c").save("1", `{"a":1}`), 201, "guarded;attempts=1;base=fetched")
		same(t, w.stored("1"), `{"a":1,"edits":1}`)
		has(t, w.client("c").send("PUT", "/shop/_create/2", `{"a":1}`), 201, "")
		same(t, w.stored("2"), `{"a":1,"edits":1}`)
		has(t, w.client("c").save("1", `{"a":2}`), 200, "merged;attempts=1;base=view")
		same(t, w.stored("1"), `{"a":2,"edits":2}`)
	})
}

// What a client may not see whole must not be copied from what it does see.
func TestATransformReadsNoFilteredDocument(t *testing.T) {
	for _, read := range []bool{false, true} {
		w := newWorld(t, currentRule)
		w.put("1", `{"a":0,"edits":7}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if strings.Contains(string(r.Target), "optimist-probe") {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`), nil
			}
			return nil, nil
		}
		c := w.client("c")
		if read {
			c.read("1")
		}
		r := c.save("1", `{"a":1}`)
		if r.status != 200 || !strings.Contains(r.outcome, "reason=filtered;untransformed") {
			t.Errorf("got %v", r)
		}
		same(t, w.stored("1"), `{"a":1}`)
	}
}

func TestInAnIndexWithoutSequenceNumbersNoTransformReads(t *testing.T) {
	w := newWorld(t, currentRule)
	w.put("1", `{"a":0,"edits":7}`)
	w.s.catalog.RefusedGuard(catalog.Asker{}, "shop")
	r := w.client("c").save("1", `{"a":1}`)
	if r.status != 200 || !strings.Contains(r.outcome, "passed;attempts=1;base=none;reason=no_seq_no;untransformed") {
		t.Errorf("got %v", r)
	}
	if r := w.client("c").patch(target1, "merge", `{"a":2}`); r.status != 400 || !strings.Contains(r.outcome, "reason=no_seq_no") {
		t.Errorf("got %v", r)
	}
}

const stockRule = `rules:
- name: shop
  match: {index: [shop]}
  merge: {paths: {/stock: sum}}
  transform:
  - {op: min, path: /limit, value: 100}
  - {op: test, path: /status, value: open}
`

func TestATransformThatFailsIsTheClientsAnswer(t *testing.T) {
	for _, how := range []string{"no base", "base", "create", "patch"} {
		for _, c := range []struct {
			sent, kind string
			status     int
			says       []string
		}{
			{`{"status":"closed"}`, "version_conflict_engine_exception", 409, []string{"rule [shop]", "/status", "open", "closed"}},
			{`{"status":"open","limit":"x"}`, "illegal_argument_exception", 400, []string{"rule [shop]", "transform[0] (min)", "/limit", "number", "string"}},
		} {
			w := newWorld(t, stockRule)
			w.put("1", `{"status":"open"}`)
			me := w.client("me")
			var r result
			switch how {
			case "base":
				me.read("1")
				r = me.save("1", c.sent)
			case "create":
				r = me.send("PUT", "/shop/_create/2", c.sent)
			case "patch":
				r = me.patch(target1, "merge", c.sent)
			default:
				r = me.save("1", c.sent)
			}
			if has(t, r, c.status, "refused;attempts=0"); gjson.Get(r.body, "error.type").Str != c.kind || w.engine.writes() != 0 {
				t.Errorf("%s: %v, sent %q", how, r, w.engine.sent)
			}
			for _, word := range c.says {
				if !strings.Contains(gjson.Get(r.body, "error.reason").Str, word) {
					t.Errorf("%s: %s doesn't say %s", how, r.body, word)
				}
			}
		}
	}
}

// A document that a lane has just left is a guess: what it refuses may fit the document as it is.
func TestARefusalIsOfTheDocumentAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, merge: {paths: {/stock: sum}}, transform: [{op: test, path: /open, value: true}]}\n")
		w.put("1", `{"stock":9,"open":true}`)
		w.warm("1")
		closer, first, second := w.client("closer"), w.client("first"), w.client("second")
		for _, c := range []*client{closer, first, second} {
			c.read("1")
		}
		opened := false
		w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
			if r.Method == "PUT" && !opened {
				opened = true
				w.put("1", `{"stock":1,"open":true}`) // behind the lane's back
			}
			return nil
		}
		results := w.queued(3, func(i int) result {
			return []*client{closer, first, second}[i].save("1", []string{`{"stock":8,"open":true}`, `{"stock":9,"open":false}`, `{"stock":8,"open":true}`}[i])
		})
		if results[0].status != 200 || results[1].status != 409 || results[2].status != 200 {
			t.Errorf("got %v", results)
		}
		same(t, w.stored("1"), `{"stock":0,"open":true}`)
	})
}

func TestInASharedWriteEachChangeIsTransformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(stockRule, "value: open}", "value: open}\n  - {op: increment, path: /edits, value: 1}", 1))
		w.put("1", `{"stock":10,"status":"open"}`)
		w.warm("1")
		edits := gjson.Get(w.stored("1"), "edits").Int()
		bodies := []string{`{"stock":9,"status":"open"}`, `{"stock":9,"status":"open"}`, `{"stock":9,"status":"closed"}`, `{"stock":9,"status":"open","limit":"x"}`, `{"stock":8,"status":"open"}`}
		var cs []*client
		for i := range bodies {
			cs = append(cs, w.client(fmt.Sprint("c", i)))
			cs[i].read("1")
		}
		results := w.queued(len(bodies), func(i int) result { return cs[i].save("1", bodies[i]) })
		for i, want := range []int{200, 200, 409, 400, 200} {
			if results[i].status != want {
				t.Errorf("change %d: %v, want %d", i, results[i], want)
			}
		}
		same(t, w.stored("1"), fmt.Sprintf(`{"stock":6,"status":"open","limit":100,"edits":%d}`, edits+3))
	})
}

// What the client is told are the numbers of what it has seen.
func TestTheNumbersOfWhatWasTransformedConflictAsAGuard(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0,"edits":1}`)
	me := w.client("me")
	me.read("1")
	r := me.save("1", `{"a":1,"edits":1}`)
	if has(t, r, 200, "guarded"); gjson.Get(r.body, "_seq_no").Int() != 0 || r.etag != `"0-1"` {
		t.Errorf("told %s %s: those of the base were expected", r.body, r.etag)
	}
	has(t, me.send("PUT", target1+"?if_seq_no=0&if_primary_term=1", `{"a":2,"edits":1}`), 409, "guarded")
	has(t, me.send("PUT", target1, `{"a":2,"edits":1}`, ifMatch(r.etag)), 200, "merged")
	same(t, w.stored("1"), `{"a":2,"edits":3,"status":"new"}`)
	// Where nothing is made of it, they are the engine's.
	w = newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, transform: [{op: default, path: /a, value: 1}]}\n")
	w.put("1", `{"a":0}`)
	me = w.client("me")
	me.read("1")
	if r := me.save("1", `{"a":1}`); gjson.Get(r.body, "_seq_no").Int() != 1 || r.etag != `"1-1"` {
		t.Errorf("told %s %s", r.body, r.etag)
	}
}

func TestAMergeThatChangesNothingIsNotTransformed(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0,"edits":1}`)
	me, other := w.client("me"), w.client("other")
	me.read("1")
	other.read("1")
	other.save("1", `{"a":1,"edits":1}`)
	r := me.save("1", `{"a":1,"edits":1}`)
	if has(t, r, 200, "merged"); gjson.Get(r.body, "result").Str != "noop" {
		t.Errorf("got %v", r)
	}
	same(t, w.stored("1"), `{"a":1,"edits":2,"status":"new"}`)
}

// A transform that counts makes a write that can't be repeated when its answer is lost.
func TestALostWriteIsNotTransformedTwice(t *testing.T) {
	for step, unknown := range map[string]bool{"{op: increment, path: /edits, value: 1}": true, "{op: add, path: /by, value: me}": false} {
		for _, how := range []string{"save", "patch"} {
			w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, transform: ["+step+"]}\n")
			w.put("1", `{"a":0,"b":0,"edits":1}`)
			me := w.client("me")
			me.read("1")
			w.loseFirst(func(*upstream.Request) { w.put("1", `{"a":0,"b":1,"edits":1}`) })
			send := func() result {
				if how == "patch" {
					return me.patch(target1, "merge", `{"a":1}`)
				}
				return me.save("1", `{"a":1,"b":0,"edits":1}`)
			}
			r := send()
			if errors.Is(r.err, ErrUnknownOutcome) != unknown || !unknown && r.status != 200 {
				t.Errorf("%s, %s: %v", step, how, r)
			}
			if unknown && how == "save" {
				if r := send(); r.status != 409 {
					t.Errorf("a repetition after an unknown outcome: %v", r)
				}
			}
		}
	}
}

// A client that patches what it has read, and then writes it whole, has seen its own patch.
func TestASessionHasSeenWhatItPatched(t *testing.T) {
	const rules = "rules:\n- {name: shop, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n"
	for name, c := range map[string]struct {
		patch string
		query string
		whole string
		want  string
	}{
		"its copy has the patch":      {`[{"op":"increment","path":"/n","value":1}]`, "", `{"n":2,"mine":1,"other":0}`, `{"n":12,"mine":1,"other":5}`},
		"it puts the old value back":  {`[{"op":"increment","path":"/n","value":1}]`, "", `{"n":1,"mine":1,"other":0}`, `{"n":11,"mine":1,"other":5}`},
		"it was shown the document":   {`[{"op":"increment","path":"/n","value":1}]`, "?_source=true", `{"n":13,"mine":1,"other":5}`, `{"n":13,"mine":1,"other":5}`},
		"the patch doesn't fit it":    {`[{"op":"test","path":"/other","value":5},{"op":"increment","path":"/n","value":1}]`, "", `{"n":1,"mine":1,"other":0}`, `{"n":12,"mine":1,"other":5}`},
		"only a part of it was shown": {`[{"op":"increment","path":"/n","value":1}]`, "?_source=n", `{"n":3,"mine":0,"other":0}`, `{"n":13,"other":5,"mine":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules)
			w.put("1", `{"n":1,"mine":0,"other":0}`)
			me := w.client("me")
			me.read("1")
			w.put("1", `{"n":11,"mine":0,"other":5}`)
			has(t, me.patch(target1+c.query, "steps", c.patch), 200, "guarded;attempts=1;base=none")
			if r := me.save("1", c.whole); r.status != 200 {
				t.Errorf("got %v", r)
			}
			same(t, w.stored("1"), c.want)
		})
	}
}

// Whose copy a patch was made from isn't known where sessions are inferred: what was read stays as it is.
func TestAPatchLeavesWhatOthersOfItsSessionRead(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":0,"b":0}`)
	one, two := w.stranger(), w.stranger()
	one.read("1")
	has(t, two.patch(target1, "merge", `{"b":1}`), 200, "guarded;attempts=1;base=none")
	has(t, one.save("1", `{"a":1,"b":0}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"a":1,"b":1}`)
}

func TestAPatchThatWasShownWholeIsARead(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0,"edits":0}`)
	for name, c := range map[string]*client{"named": w.client("me"), "inferred": w.stranger()} {
		r := c.patch(target1+"?_source", "merge", `{"b":"`+name+`"}`)
		if r.status != 200 || r.etag == "" {
			t.Fatalf("%s: %v", name, r)
		}
		seen := gjson.Get(r.body, "get._source").Raw
		w.put("1", strings.TrimSuffix(seen, "}")+`,"x":1}`)
		has(t, c.save("1", strings.Replace(seen, `"a":0`, `"a":7`, 1)), 200, "merged;attempts=2;base=session")
		if got := w.stored("1"); gjson.Get(got, "a").Int() != 7 || gjson.Get(got, "x").Int() != 1 {
			t.Errorf("%s: stored %s", name, got)
		}
		w.put("1", `{"a":0,"edits":0}`)
	}
}

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/base"
	"optimist/internal/upstream"
)

// cartRules add numbers, as the rule of a shop does.
const cartRules = "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum, /total: sum}}}\n"

const update1 = "/shop/_update/1"

// bodies records what is sent to the engine of documents, with the bodies.
func (w *world) bodies() *[]string {
	var sent []string
	next := w.engine.before
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if !strings.Contains(string(r.Target), "optimist-probe") && string(r.Target) != "/shop?include_type_name=true" {
			sent = append(sent, strings.TrimSpace(r.Method+" "+string(r.Target)+" "+string(r.Body)))
		}
		if next != nil {
			return next(r)
		}
		return nil, nil
	}
	return &sent
}

// documents are the requests of documents among what was sent.
func documents(sent []string) (of []string) {
	for _, s := range sent {
		if strings.Contains(s, "/1") {
			of = append(of, s)
		}
	}
	return of
}

func TestAPartIsAChangeOfItsPaths(t *testing.T) {
	w := newWorld(t, cartRules)
	w.put("1", `{"lines":["a"],"n":1,"by":"me","note":"x"}`)
	me := w.client("me")
	me.read("1")
	sent := w.bodies()
	first := `{"doc": {"lines":["a","b"], "n":2},  "detect_noop":true}`
	has(t, me.send("POST", update1+"?refresh=true", first), 200, "guarded;attempts=1;base=session")
	if got, want := fmt.Sprint(documents(*sent)), "[POST /shop/_update/1?refresh=true&if_seq_no=0&if_primary_term=1 "+first+"]"; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	me.read("1")
	w.put("1", `{"lines":["a","b","c"],"n":3,"by":"you","note":"x"}`)
	*sent = nil
	r := me.send("POST", update1, `{"doc":{"lines":["a","b","d"],"n":3},"detect_noop":false}`)
	if has(t, r, 200, "merged;attempts=2;base=session"); gjson.Get(r.body, "_seq_no").Int() != 1 || gjson.Get(r.body, "_version").Int() != 4 {
		t.Errorf("it hasn't seen what it was merged into: %v", r)
	}
	same(t, w.stored("1"), `{"lines":["a","b","c","d"],"n":4,"by":"you","note":"x"}`)
	if got := documents(*sent); len(got) != 3 || got[2] != `POST /shop/_update/1?if_seq_no=2&if_primary_term=1 {"doc":{"lines":["a","b","c","d"],"n":4},"detect_noop":false}` {
		t.Errorf("sent %q", got)
	}
}

// A program that cuts a text by its UTF-16 units sends half an emoji. Its part is a change like any other, and takes nothing back.
func TestAPartWithHalfAnEmojiKeepsWhatOthersHaveWritten(t *testing.T) {
	w := newWorld(t, cartRules)
	w.put("1", `{"lines":["a"],"n":1,"title":""}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"lines":["a","b"],"n":3,"title":""}`)
	has(t, me.send("POST", update1, `{"doc":{"lines":["a","c"],"n":2,"title":"so fa\ud83d"}}`), 200, "merged;attempts=2;base=session")
	if got := w.stored("1"); !strings.HasPrefix(got, `{"lines":["a","b","c"],"n":4,"title":"so fa`) {
		t.Errorf("stored %s", got)
	}
}

// What the client has in hand is what it had read, with the part in it: from that its next write is counted, whatever that is.
func TestAfterAPartTheClientHasItsOwnCopyInHand(t *testing.T) {
	for _, others := range []bool{false, true} {
		for name, next := range map[string][3]string{
			"a document": {"PUT", "/shop/_doc/1", `{"l":[1,2,3],"n":3,"x":0}`},
			"a part":     {"POST", update1, `{"doc":{"l":[1,2,3],"n":3}}`},
		} {
			t.Run(fmt.Sprint(name, ", others ", others), func(t *testing.T) {
				w := newWorld(t, cartRules)
				w.put("1", `{"l":[1],"n":1,"x":0}`)
				me := w.client("me")
				me.read("1")
				if others {
					w.put("1", `{"l":[1,9],"n":10,"x":1}`)
				}
				if r := me.send("POST", update1, `{"doc":{"l":[1,2],"n":2}}`); r.status != 200 {
					t.Fatal(r)
				}
				w.direct("POST", update1, `{"doc":{"y":5}}`)
				if r := me.send(next[0], next[1], next[2]); r.status != 200 || !strings.Contains(r.outcome, "merged") {
					t.Errorf("%v", r)
				}
				if want := `{"l":[1,2,3],"n":3,"x":0,"y":5}`; others {
					same(t, w.stored("1"), `{"l":[1,9,2,3],"n":12,"x":1,"y":5}`)
				} else {
					same(t, w.stored("1"), want)
				}
			})
		}
	}
}

// What the engine keeps otherwise than it was sent is read before a change is counted in it.
func TestANumberThatTheEngineRoundsIsRead(t *testing.T) {
	for number, exact := range map[string]bool{"1.5": true, "0.12345678901234567": false, "12345678901234567890": true, "1e-310": false, "-0.0": true} {
		w := newWorld(t, cartRules)
		w.direct("PUT", "/shop", stressIndex)
		w.put("1", `{"d":`+number+`,"n":1}`)
		me := w.client("me")
		me.read("1")
		has(t, me.send("POST", update1, `{"doc":{"n":2}}`), 200, "guarded;attempts=1;base=session")
		sent := w.bodies()
		r := me.save("1", `{"d":`+number+`,"n":3}`)
		if got := documents(*sent); r.status != 200 || (len(got) == 1) != exact {
			t.Errorf("%s: %v, sent %q", number, r, got)
		}
		if got := gjson.Get(w.stored("1"), "n").Raw; got != "3" {
			t.Errorf("%s: stored %s", number, w.stored("1"))
		}
	}
}

func TestAPartThatChangesNothingIsTheEnginesNoop(t *testing.T) {
	w := newWorld(t, cartRules)
	w.put("1", `{"a":1,"n":1}`)
	me := w.client("me")
	me.read("1")
	r := me.send("POST", update1, `{"doc":{"a":1}}`)
	if has(t, r, 200, "guarded;attempts=1;base=session"); gjson.Get(r.body, "result").Str != "noop" {
		t.Error(r)
	}
	w.put("1", `{"a":2,"n":5}`)
	r = me.send("POST", update1+"?filter_path=result", `{"doc":{"a":2,"n":1}}`)
	if has(t, r, 200, "merged;attempts=2;base=view"); r.body != `{"result":"noop"}` {
		t.Error(r)
	}
	same(t, w.stored("1"), `{"a":2,"n":5}`)
	me.read("1")
	w.put("1", `{"a":2,"n":6}`)
	r = me.send("POST", update1, `{"doc":{"a":2,"n":5},"_source":["n"]}`)
	if has(t, r, 200, "merged;attempts=2;base=session"); gjson.Get(r.body, "get._source").Raw != `{"n":6}` {
		t.Error(r)
	}
}

// A client that is shown the document has that in hand, and not its own copy.
func TestWhatAnUpdateShowsIsSeen(t *testing.T) {
	for name, c := range map[string]struct{ query, body, save, want string }{
		"all of it":                       {"?_source=true", `{"doc":{"l":[1,2]}}`, `{"l":[1,9,2],"x":7}`, `{"l":[1,9,2],"x":7}`},
		"all of it by the body":           {"", `{"doc":{"l":[1,2]},"_source":true}`, `{"l":[1,2],"x":1}`, `{"l":[1,2],"x":1}`},
		"nothing":                         {"?_source=false", `{"doc":{"l":[1,2]}}`, `{"l":[1,2],"x":7}`, `{"l":[1,9,2],"x":7}`},
		"all, by lists":                   {"", `{"doc":{"l":[1,2]},"_source":{"includes":[],"excludes":[]}}`, `{"l":[1,2],"x":1}`, `{"l":[1,2],"x":1}`},
		"nothing, by the body":            {"?_source=true", `{"doc":{"l":[1,2]},"_source":false}`, `{"l":[1,2],"x":7}`, `{"l":[1,9,2],"x":7}`},
		"a part":                          {"?_source=l", `{"doc":{"l":[1,2]}}`, `{"l":[1,9,2],"x":0}`, "409"},
		"a part, by the body":             {"", `{"doc":{"l":[1,2]},"_source":{"includes":["l"],"excludes":[]}}`, `{"l":[1,9,2],"x":0}`, "409"},
		"a part, by a key with an escape": {"?_source=true", `{"doc":{"l":[1,2]},"\u005fsource":["l"]}`, `{"l":[1,9,2],"x":0}`, "409"},
		"what passes a filter":            {"?_source=true&filter_path=get._source.l,_seq_no,_primary_term,_version", `{"doc":{"l":[1,2]}}`, `{"l":[1,9,2],"x":0}`, "409"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"l":[1],"x":0}`)
			me := w.client("me")
			me.read("1")
			w.put("1", `{"l":[1,9],"x":1}`)
			if r := me.send("POST", update1+c.query, c.body); r.status != 200 {
				t.Fatal(r)
			}
			r := me.save("1", c.save)
			if c.want == "409" {
				has(t, r, 409, "")
				return
			}
			has(t, r, 200, "")
			same(t, w.stored("1"), c.want)
		})
	}
	w := newWorld(t, "")
	w.put("1", `{"l":[1],"x":0}`)
	me := w.client("me")
	has(t, me.send("POST", update1+"?_source=true", `{"doc":{"x":1}}`), 200, "retried;attempts=1;base=none")
	w.put("1", `{"l":[1,9],"x":1}`)
	has(t, me.send("POST", update1, `{"doc":{"l":[1,2]}}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"l":[1,9,2],"x":1}`)
}

// A client that asks the engine to merge again after conflicts has read the document all the same. The engine would put its part over what
// others have written since.
func TestAPartWhoseClientAsksForRetriesIsMerged(t *testing.T) {
	for name, c := range map[string]struct {
		query, outcome string
		status         int
		others         bool
		want           string
	}{
		"alone":                 {"?retry_on_conflict=5", "guarded;attempts=1;base=session", 200, false, `{"l":[1,2],"x":0}`},
		"another has written":   {"?retry_on_conflict=3", "merged;attempts=2;base=session", 200, true, `{"l":[1,9,2],"x":1}`},
		"never again":           {"?retry_on_conflict=0", "merged;attempts=2;base=session", 200, true, `{"l":[1,9,2],"x":1}`},
		"no number: its engine": {"?retry_on_conflict=x", "passed", 400, true, `{"l":[1,9],"x":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"l":[1],"x":0}`)
			me := w.client("me")
			me.read("1")
			if c.others {
				w.put("1", `{"l":[1,9],"x":1}`)
			}
			has(t, me.send("POST", update1+c.query, `{"doc":{"l":[1,2]}}`), c.status, c.outcome)
			same(t, w.stored("1"), c.want)
		})
	}
}

// Who gives the engine its guard has that. What the client has in hand then is known all the same.
func TestAPartWithItsClientsOwnGuardGoesAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		query, outcome string
		status         int
		others         bool
		want           string
	}{
		"its guard":        {"?if_seq_no=0&if_primary_term=1", "guarded;attempts=1;base=explicit;reason=explicit", 200, false, `{"l":[1,2,3],"x":0,"y":1}`},
		"its guard, stale": {"?if_seq_no=0&if_primary_term=1", "guarded;attempts=1;base=explicit;reason=explicit", 409, true, ""},
		"both":             {"?retry_on_conflict=5&if_seq_no=0&if_primary_term=1", "guarded;attempts=1;base=explicit", 400, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"l":[1],"x":0}`)
			me := w.client("me")
			me.read("1")
			if c.others {
				w.put("1", `{"l":[1],"x":1}`)
			}
			sent := w.bodies()
			has(t, me.send("POST", update1+c.query, `{"doc":{"l":[1,2]}}`), c.status, c.outcome)
			if got := documents(*sent); len(got) != 1 || got[0] != "POST "+update1+c.query+` {"doc":{"l":[1,2]}}` {
				t.Errorf("sent %q", got)
			}
			if c.want == "" {
				return
			}
			w.direct("POST", update1, `{"doc":{"y":1}}`)
			has(t, me.save("1", `{"l":[1,2,3],"x":0}`), 200, "merged")
			same(t, w.stored("1"), c.want)
		})
	}
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {explicit: merge}}\n")
	w.put("1", `{"l":[1],"x":0}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"l":[1,9],"x":1}`)
	has(t, me.send("POST", update1+"?if_seq_no=0&if_primary_term=1", `{"doc":{"l":[1,2]}}`), 200, "merged;attempts=2;base=explicit")
	same(t, w.stored("1"), `{"l":[1,9,2],"x":1}`)
}

func TestAPartByIfMatchIsMerged(t *testing.T) {
	for _, me := range []func(w *world) *client{func(w *world) *client { return w.client("me") }, (*world).stranger} {
		w := newWorld(t, cartRules)
		w.put("1", `{"l":[1],"n":1}`)
		c := me(w)
		c.read("1")
		w.put("1", `{"l":[1,9],"n":10}`)
		r := c.send("POST", update1, `{"doc":{"l":[1,2],"n":2}}`, ifMatch(`"0-1"`))
		has(t, r, 200, "merged;attempts=2;base=if_match")
		same(t, w.stored("1"), `{"l":[1,9,2],"n":11}`)
		w.put("1", `{"l":[1,9,2,8],"n":11}`)
		has(t, c.send("POST", update1, `{"doc":{"l":[1,2,3],"n":3}}`, ifMatch(r.etag)), 200, "merged")
		same(t, w.stored("1"), `{"l":[1,9,2,8,3],"n":12}`)
	}
}

// Nothing is known of what the client has seen, or it has seen no document: the engine merges, and says.
func TestAPartOfWhatNobodyHasReadIsTheEngines(t *testing.T) {
	for name, rules := range map[string]string{"nothing read": "", "by the rule": "rules:\n- {name: r, match: {index: [shop]}, update: engine}\n"} {
		w := newWorld(t, rules)
		w.put("1", `{"l":[1],"x":0}`)
		me := w.client("me")
		if name != "nothing read" {
			me.read("1")
			w.put("1", `{"l":[1,9],"x":1}`)
		}
		sent := w.bodies()
		has(t, me.send("POST", update1, `{"doc":{"l":[1,2]}}`), 200, "retried;attempts=1;base=none")
		if got := documents(*sent); len(got) != 1 || got[0] != "POST "+update1+`?retry_on_conflict=3 {"doc":{"l":[1,2]}}` {
			t.Errorf("%s: sent %q", name, got)
		}
	}
	w := newWorld(t, "")
	me := w.client("me")
	me.read("1")
	has(t, me.send("POST", update1, `{"doc":{"a":1}}`), 404, "retried;attempts=1;base=none")
	has(t, me.save("1", `{"a":1}`), 201, "guarded;attempts=1;base=absent")
}

// A client finds no document, and hears of one elsewhere: it sends a part without an upsert, which counts on a document. Counted from
// nothing, stock would be 19, and the list would have y twice.
func TestAPartWithoutAnUpsertIsNoChangeOfNothing(t *testing.T) {
	for _, me := range []func(w *world) *client{func(w *world) *client { return w.client("me") }, (*world).stranger} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/stock: sum}}}\n")
		c := me(w)
		c.read("1")
		w.put("1", `{"stock":10,"tags":["y"],"by":"you"}`)
		has(t, c.send("POST", update1, `{"doc":{"stock":9,"tags":["y","x"]}}`), 200, "retried;attempts=1;base=none")
		same(t, w.stored("1"), `{"stock":9,"tags":["y","x"],"by":"you"}`)
	}
}

// Two clients found nothing, and both make the document: each has its own in it.
func TestPartsThatMakeTheSameDocument(t *testing.T) {
	for name, send := range map[string]func(c *client, line string) result{
		"doc_as_upsert": func(c *client, line string) result {
			return c.send("POST", update1, `{"doc":{"l":["`+line+`"],"n":1,"`+line+`":1},"doc_as_upsert":true}`)
		},
		"by its query": func(c *client, line string) result {
			return c.send("POST", update1+"?doc_as_upsert=true&_source=true", `{"doc":{"l":["`+line+`"],"n":1,"`+line+`":1}}`)
		},
		"upsert": func(c *client, line string) result {
			own := `{"l":["` + line + `"],"n":1,"` + line + `":1}`
			return c.send("POST", update1, `{"doc":`+own+`,"upsert":`+own+`,"detect_noop":false}`)
		},
		"documents": func(c *client, line string) result { return c.save("1", `{"l":["`+line+`"],"n":1,"`+line+`":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cartRules)
			a, b, c := w.client("a"), w.client("b"), w.stranger()
			for _, x := range []*client{a, b, c} {
				x.read("1")
			}
			r := send(a, "a")
			if has(t, r, 201, "guarded;attempts=1;base=absent"); gjson.Get(r.body, "result").Str != "created" {
				t.Error(r)
			}
			has(t, send(b, "b"), 200, "merged;attempts=2;base=absent")
			has(t, send(c, "c"), 200, "merged;attempts=2;base=absent")
			same(t, w.stored("1"), `{"l":["a","b","c"],"n":3,"a":1,"b":1,"c":1}`)
			has(t, b.send("POST", update1, `{"doc":{"l":["b","b2"],"n":2}}`), 200, "merged")
			if name == "by its query" { // which was shown it all
				return
			}
			same(t, w.stored("1"), `{"l":["a","b","c","b2"],"n":4,"a":1,"b":1,"c":1}`)
		})
	}
}

// An upsert is for where there is no document. If another client has made one meanwhile, the part counts, and nothing of the upsert.
func TestAPartWithAnotherUpsertGoesIntoWhatOthersMade(t *testing.T) {
	transforms := "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}, transform: [{op: remove, path: /never}]}\n"
	for _, rules := range []string{cartRules, transforms} {
		for upsert, want := range map[string][2]string{
			`{"u":1}`:             {`{"u":1,"x":1,"n":2}`, `{"u":1,"x":2,"n":3}`},
			`{"u":2,"x":0,"n":7}`: {`{"u":1,"x":1,"n":2}`, `{"u":1,"x":2,"n":3}`},
		} {
			for _, who := range []func(w *world) *client{(*world).stranger, func(w *world) *client { return w.client("me") }} {
				w := newWorld(t, rules)
				c := who(w)
				c.read("1")
				w.put("1", `{"u":1}`)
				r := c.send("POST", update1, `{"doc":{"x":1,"n":2},"upsert":`+upsert+`}`)
				if same(t, w.stored("1"), want[0]); r.status != 200 || !strings.Contains(r.outcome, "merged") {
					t.Errorf("%v", r)
				}
				if r = c.send("POST", update1, `{"doc":{"x":2,"n":3}}`); r.status != 200 { // it has its own part in hand
					t.Errorf("%v", r)
				}
				same(t, w.stored("1"), want[1])
			}
		}
	}
}

// The client of an upsert that made the document has the upsert in hand.
func TestAfterAnUpsertTheClientHasItInHand(t *testing.T) {
	transforms := "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}, transform: [{op: remove, path: /never}]}\n"
	for _, rules := range []string{cartRules, transforms} {
		for _, query := range []string{"", "?retry_on_conflict=2"} {
			w := newWorld(t, rules)
			me := w.client("me")
			me.read("1")
			if r := me.send("POST", update1+query, `{"doc":{"x":1},"upsert":{"u":1,"n":1}}`); r.status != 201 {
				t.Fatal(r)
			}
			same(t, w.stored("1"), `{"u":1,"n":1}`)
			w.direct("POST", update1, `{"doc":{"n":5,"y":1}}`)
			if r := me.save("1", `{"u":2,"n":2}`); r.status != 200 {
				t.Errorf("%v", r)
			}
			same(t, w.stored("1"), `{"u":2,"n":6,"y":1}`)
		}
	}
}

func TestAPartOfADocumentThatIsGone(t *testing.T) {
	recreates := "rules:\n- {name: r, match: {index: [shop]}, on_missing: recreate}\n"
	transforms := ", transform: [{op: remove, path: /never}]}"
	for name, c := range map[string]struct {
		rules, body string
		status      int
		want        string
	}{
		"it is the engine's 404":              {"", `{"doc":{"a":2}}`, 404, ""},
		"it isn't made again":                 {"", `{"doc":{"a":2},"doc_as_upsert":true}`, 409, ""},
		"unless the rule says so":             {recreates, `{"doc":{"a":2},"upsert":{"u":1}}`, 201, `{"u":1}`},
		"nor without an upsert":               {recreates, `{"doc":{"a":2}}`, 404, ""},
		"transformed, it isn't made again":    {"rules:\n- {name: r, match: {index: [shop]}" + transforms, `{"doc":{"a":2},"doc_as_upsert":true}`, 409, ""},
		"transformed, unless the rule says":   {"rules:\n- {name: r, match: {index: [shop]}, on_missing: recreate" + transforms, `{"doc":{"a":2},"doc_as_upsert":true}`, 201, `{"a":2}`},
		"transformed, it is the engine's 404": {"rules:\n- {name: r, match: {index: [shop]}" + transforms, `{"doc":{"a":2}}`, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"a":1}`)
			me := w.client("me")
			me.read("1")
			w.direct("DELETE", "/shop/_doc/1", "")
			r := me.send("POST", update1, c.body)
			if r.status != c.status || w.stored("1") != c.want {
				t.Errorf("%v, stored %s", r, w.stored("1"))
			}
			_, engines := w.direct("POST", "/shop/_update/none", `{"doc":{}}`)
			if c.status == 404 && gjson.Get(r.body, "error.type").Str != gjson.Get(engines, "error.type").Str {
				t.Errorf("%v", r)
			}
		})
	}
	// Deleted and made again: it is another document, and the change is merged into it, as a whole document's would be.
	w := newWorld(t, cartRules)
	w.put("1", `{"l":[1],"n":1}`)
	me := w.client("me")
	me.read("1")
	w.direct("DELETE", "/shop/_doc/1", "")
	w.put("1", `{"l":[7],"n":5}`)
	has(t, me.send("POST", update1, `{"doc":{"l":[1,2],"n":2}}`), 200, "merged")
	same(t, w.stored("1"), `{"l":[7,2],"n":6}`)
}

// An answer that is lost leaves the part sent once, unless it may be applied twice.
func TestALostAnswerToAPart(t *testing.T) {
	for name, c := range map[string]struct {
		part    string
		applied bool // by the engine, before the answer was lost
		others  bool // wrote since
		status  int
		want    string
	}{
		"a value, applied":      {`{"s":"b"}`, true, false, 0, `{"s":"b","n":1,"l":[1]}`},
		"a value, not applied":  {`{"s":"b"}`, false, false, 200, `{"s":"b","n":1,"l":[1]}`},
		"a value, others wrote": {`{"s":"b"}`, false, true, 200, `{"s":"b","n":1,"l":[1],"x":1}`},
		"a sum, applied":        {`{"n":2}`, true, false, 0, `{"s":"a","n":2,"l":[1]}`},
		"a sum, not applied":    {`{"n":2}`, false, false, 200, `{"s":"a","n":2,"l":[1]}`},
		"a sum, others wrote":   {`{"n":2}`, false, true, 0, `{"s":"a","n":1,"l":[1],"x":1}`},
		"a list, others wrote":  {`{"l":[1,2]}`, false, true, 0, `{"s":"a","n":1,"l":[1],"x":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cartRules)
			w.put("1", `{"s":"a","n":1,"l":[1]}`)
			me := w.client("me")
			me.read("1")
			lost := false
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != http.MethodPost || lost || strings.Contains(string(r.Target), "optimist-probe") {
					return nil, nil
				}
				lost = true
				if c.applied {
					w.engine.handle(r)
				}
				if c.others {
					w.direct("POST", update1, `{"doc":{"x":1}}`)
				}
				return nil, lostError
			}
			r := me.send("POST", update1, `{"doc":`+c.part+`}`)
			if unknown := errors.Is(r.err, ErrUnknownOutcome); unknown != (c.status == 0) || !unknown && r.status != c.status {
				t.Errorf("%v", r)
			}
			same(t, w.stored("1"), c.want)
			if c.status == 0 && strings.Contains(c.part, "n") { // said once more, it doesn't count twice
				before := w.stored("1")
				if r := me.send("POST", update1, `{"doc":`+c.part+`}`); r.status != 409 {
					t.Errorf("again: %v", r)
				}
				same(t, w.stored("1"), before)
			}
		})
	}
}

// The index's pipeline, or what isn't kept of _source, is nothing to a part: nothing else is written back.
func TestAPartIsMergedWhereADocumentIsNot(t *testing.T) {
	for name, at := range map[string][2]string{
		"a pipeline":     {"shop.settings.index.final_pipeline", "p"},
		"part of source": {"shop.mappings._source.excludes.0", "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cartRules)
			w.engine.after = func(r *upstream.Request, res *upstream.Response) (err error) {
				if r.Method == http.MethodGet && strings.HasPrefix(string(r.Target), "/shop?") {
					res.Payload, err = sjson.SetBytes(res.Payload, at[0], at[1])
				}
				return err
			}
			w.put("1", `{"l":[1],"n":1}`)
			me := w.client("me")
			me.read("1")
			w.put("1", `{"l":[1,9],"n":2}`)
			has(t, me.save("1", `{"l":[1,2],"n":2}`), 409, "guarded")
			has(t, me.send("POST", update1, `{"doc":{"l":[1,2],"n":2}}`), 200, "merged;attempts=2;base=session")
			same(t, w.stored("1"), `{"l":[1,9,2],"n":3}`)
		})
	}
}

func TestARuleThatRefusesStaleWritesRefusesStaleParts(t *testing.T) {
	for _, transform := range []string{"", ", transform: [{op: remove, path: /never}]"} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, on_conflict: fail"+transform+"}\n")
		w.put("1", `{"l":[1],"n":1}`)
		me := w.client("me")
		me.read("1")
		has(t, me.send("POST", update1, `{"doc":{"n":2}}`), 200, "guarded;attempts=1;base=session")
		me.read("1")
		w.put("1", `{"l":[1,9],"n":2}`)
		has(t, me.send("POST", update1, `{"doc":{"l":[1,2]}}`), 409, "")
		same(t, w.stored("1"), `{"l":[1,9],"n":2}`)
	}
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {ambiguous: fail}}\n")
	w.put("1", `{"n":1,"l":[1]}`)
	all := w.stranger()
	all.read("1")
	w.put("1", `{"n":2,"l":[1,2]}`)
	all.read("1")
	if r := all.send("POST", update1, `{"doc":{"l":[1,2,3]}}`); !errors.Is(r.err, base.ErrAmbiguous) {
		t.Errorf("%v", r)
	}
	has(t, all.send("POST", update1, `{"doc":{"n":3}}`), 200, "retried;attempts=1;base=none") // the same from either
}

func TestAPartOfALostBase(t *testing.T) {
	for rules, want := range map[string]string{"": "retried;attempts=1;base=lost", "rules:\n- {name: r, match: {index: [shop]}, base: {lost: reject}}\n": ""} {
		w := newWorld(t, rules)
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		w.store.DropIndex([16]byte{}, "shop")
		r := me.send("POST", update1, `{"doc":{"n":2}}`)
		if want != "" {
			has(t, r, 200, want)
		} else if !errors.Is(r.err, base.ErrLost) {
			t.Errorf("%v", r)
		}
	}
}

// The index turns out to have no sequence numbers only by the write: the engine merges then.
func TestAPartThatCantBeGuarded(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":1}`)
	me := w.client("me")
	me.read("1")
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if strings.Contains(string(r.Target), "if_seq_no") {
			return answering(400, `{"error":{"type":"illegal_argument_exception","reason":"index.disable_sequence_numbers"},"status":400}`), nil
		}
		return nil, nil
	}
	has(t, me.send("POST", update1+"?refresh=true", `{"doc":{"n":2}}`), 200, "retried;attempts=2;base=")
	same(t, w.stored("1"), `{"n":2}`)
}

// A client that left has its part written, if it is out, and what it left known.
func TestAPartOfAClientThatLeft(t *testing.T) {
	w := newWorld(t, cartRules)
	w.put("1", `{"l":[1],"n":1}`)
	me := w.client("me")
	me.read("1")
	ctx, leave := context.WithCancel(t.Context())
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == http.MethodPost {
			leave()
		}
		return nil
	}
	_ = me.sendContext(ctx, "POST", update1, `{"doc":{"l":[1,2],"n":2}}`)
	w.engine.after = nil
	w.direct("POST", update1, `{"doc":{"x":1}}`)
	has(t, me.send("POST", update1, `{"doc":{"l":[1,2],"n":2}}`), 200, "") // once more
	same(t, w.stored("1"), `{"l":[1,2],"n":2,"x":1}`)
}

// Of clients that share a session some save documents that they have read, and some set a value of one that they haven't: the reads are the
// former's.
func TestAPartThatNobodyNeedsToReadForTakesNobodysRead(t *testing.T) {
	for name, c := range map[string]struct{ rules, part, outcome, want string }{
		"a value":                {"", `{"status":"open"}`, "retried;attempts=1;base=none", `{"status":"open","l":[1,2],"n":1}`},
		"a value that it kept":   {"", `{"status":"new","note":"x"}`, "guarded;attempts=1;base=session", ""},
		"a number":               {"", `{"n":5}`, "retried;attempts=1;base=none", `{"status":"new","l":[1,2],"n":5}`},
		"a number that is added": {cartRules, `{"n":5}`, "guarded;attempts=1;base=session", ""},
		"a list":                 {"", `{"l":[1,3]}`, "guarded;attempts=1;base=session", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"status":"new","l":[1],"n":1}`)
			all := w.stranger()
			all.read("1")
			has(t, all.send("POST", update1, `{"doc":`+c.part+`}`), 200, c.outcome)
			if c.want == "" {
				return
			}
			has(t, all.save("1", `{"status":"new","l":[1,2],"n":1}`), 200, "merged;attempts=2;base=session")
			same(t, w.stored("1"), c.want)
		})
	}
}

// A client that works alone sets a status back to what it was. Its earlier read, after which it has written, isn't taken for the base: from
// that read, the part would say nothing of the status.
func TestALoneClientSetsAValueBack(t *testing.T) {
	for reads := range 4 {
		t.Run(fmt.Sprintf("%d reads", reads), func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"status":"open","at":0}`)
			for at, status := range []string{"solved", "open", "solved", "open", "waiting", "solved"} {
				all := w.stranger()
				for range reads {
					all.read("1")
				}
				has(t, all.send("POST", update1, fmt.Sprintf(`{"doc":{"status":%q,"at":%d}}`, status, at+1)), 200, "")
				same(t, w.stored("1"), fmt.Sprintf(`{"status":%q,"at":%d}`, status, at+1))
			}
		})
	}
}

// Client A sends a part that the engine merges by itself. Client B changes the document, and somebody looks at it. Then a client sends a part
// whose status is the earlier one. If the engine refused A's part, A still has its first read in hand, and only the time is a change. So it
// is if several more clients made that read. Else A has written, and somebody sets the status back.
func TestARefusedPartUsesUpNoRead(t *testing.T) {
	const back, kept = `{"status":"open","at":3}`, `{"status":"solved","at":3}`
	for name, c := range map[string]struct {
		before func(r *upstream.Request) (*upstream.Response, error)
		after  func(r *upstream.Request, res *upstream.Response) error
		more   int // reads of the first revision
		want   string
	}{
		"refused": {before: func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == http.MethodPost {
				return answering(429, tooManyRequests), nil
			}
			return nil, nil
		}, want: kept},
		"merged":             {want: back},
		"merged, one of six": {more: 5, want: kept},
		"perhaps merged": {after: func(r *upstream.Request, _ *upstream.Response) error {
			if r.Method == http.MethodPost {
				return lostError
			}
			return nil
		}, want: back},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"status":"open","at":0}`)
			all := w.stranger()
			for range 1 + c.more {
				all.read("1")
			}
			w.engine.before, w.engine.after = c.before, c.after
			all.send("POST", update1, `{"doc":{"status":"waiting","at":1}}`)
			w.engine.before, w.engine.after = nil, nil
			w.put("1", `{"status":"solved","at":2}`)
			all.read("1")
			has(t, all.send("POST", update1, `{"doc":{"status":"open","at":3}}`), 200, "")
			same(t, w.stored("1"), c.want)
		})
	}
}

// Client A has read the document, client B sets values by a part, client C reads, and A saves the whole document. A's read is its base,
// although it was reserved for B's part meanwhile.
func TestAPartTakesNoBaseOfAWholeDocument(t *testing.T) {
	for name, c := range map[string]struct{ doc, part, save, want string }{
		"a flag":   {`{"done":false,"title":"x"}`, `{"done":true}`, `{"done":false,"title":"by a"}`, `{"done":true,"title":"by a"}`},
		"a number": {`{"prio":1,"title":"x"}`, `{"prio":2}`, `{"prio":1,"title":"by a"}`, `{"prio":2,"title":"by a"}`},
		"a text":   {`{"status":"open","title":"x"}`, `{"status":"solved"}`, `{"status":"open","title":"by a"}`, `{"status":"solved","title":"by a"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", c.doc)
			all := w.stranger()
			all.read("1")
			has(t, all.send("POST", update1, `{"doc":`+c.part+`}`), 200, "")
			all.read("1")
			has(t, all.save("1", c.save), 200, "merged;attempts=2;base=session")
			same(t, w.stored("1"), c.want)
		})
	}
}

// Nor does it take that of a client which has found no document, though it would make one.
func TestAPartThatMakesADocumentTakesNobodysRead(t *testing.T) {
	w := newWorld(t, "")
	all := w.stranger()
	all.read("1")
	has(t, all.send("POST", update1, `{"doc":{"status":"open"},"doc_as_upsert":true}`), 201, "retried;attempts=1;base=none")
	all.read("1") // for display
	has(t, all.save("1", `{"l":[1]}`), 200, "merged;attempts=2;base=absent")
	same(t, w.stored("1"), `{"status":"open","l":[1]}`)
}

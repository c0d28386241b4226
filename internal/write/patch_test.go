package write

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/patch"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func media(v string) wire.Field {
	return wire.Field{Name: []byte("Content-Type"), Value: []byte(v)}
}

// patch sends a PATCH of the kind that its body is of: "ops" (RFC 6902), "merge" (RFC 7396) or "steps".
func (c *client) patch(target, kind, body string, fields ...wire.Field) result {
	c.w.t.Helper()
	t := map[string]string{"ops": patch.MediaOperations, "merge": patch.MediaMerge, "steps": patch.MediaSteps}[kind]
	return c.send("PATCH", target, body, append([]wire.Field{media(t)}, fields...)...)
}

const target1 = "/shop/_doc/1"

func TestAPatchIsAppliedToTheDocumentAsItIs(t *testing.T) {
	for _, method := range []string{"PATCH /shop/_doc/1", "POST /shop/_patch/1"} {
		for kind, body := range map[string]string{
			patch.MediaOperations:                 `[{"op":"test","path":"/a","value":1},{"op":"add","path":"/l/-","value":3},{"op":"remove","path":"/gone"}]`,
			patch.MediaMerge + "; charset=utf-8":  `{"l":[1,2,3],"gone":null}`,
			"Application/Vnd.optimist-patch+JSON": `[{"op":"append","path":"/l","value":3},{"op":"remove","path":"/gone"}]`,
		} {
			t.Run(method+" "+kind, func(t *testing.T) {
				w := newWorld(t, "")
				m, target, _ := strings.Cut(method, " ")
				w.put("1", `{ "a" : 1.0, "gone":0, "big": 9007199254740993.50,"l":[1,2] }`)
				r := w.client("c").send(m, target+"?refresh=true", body, media(kind))
				has(t, r, 200, "guarded;attempts=1;base=none")
				if got := gjson.Get(r.body, "[_index,_id,_version,result,_seq_no,_primary_term,_shards.successful,forced_refresh]").Raw; got != `["shop","1",2,"updated",1,1,1,true]` {
					t.Errorf("answered %s", r.body)
				}
				same(t, w.stored("1"), `{"a":1,"big":9007199254740993.50,"l":[1,2,3]}`)
				if !strings.HasPrefix(w.stored("1"), `{ "a" : 1.0, "big": 9007199254740993.50,"l":[1,2`) {
					t.Errorf("bytes that the patch doesn't touch were changed: %s", w.stored("1"))
				}
				if want := "PUT /shop/_doc/1?refresh=true&if_seq_no=0&if_primary_term=1"; w.engine.sent[len(w.engine.sent)-1] != want {
					t.Errorf("sent %q", w.engine.sent)
				}
			})
		}
	}
}

// The embedded engine has no types: only where the patch writes to is looked at.
func TestATypedPatchWritesToTheTypedPath(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	var put string
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" {
			put = string(r.Target)
		}
		return nil, nil
	}
	w.client("c").patch("/shop/item/1?routing=r", "merge", `{"a":2}`)
	w.client("c").send("POST", "/shop/item/1/_patch", `{"a":2}`, media(patch.MediaMerge))
	if !strings.HasPrefix(put, "/shop/item/1?if_seq_no=") {
		t.Errorf("written to %q", put)
	}
}

func TestAPatchThatChangesNothingIsNotWritten(t *testing.T) {
	rules := "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: increment, path: /edits, value: 1}]}\n"
	for kind, body := range map[string]string{"ops": `[{"op":"replace","path":"/o","value":{"y":2, "x":1.0}}]`, "merge": `{"o":{"x":1},"none":null}`, "steps": `[]`} {
		w := newWorld(t, rules)
		w.put("1", `{"o":{"x":1,"y":2}}`)
		r := w.client("c").patch(target1, kind, body)
		has(t, r, 200, "guarded;attempts=0;base=none")
		_, update := w.direct("POST", "/shop/_update/1", `{"doc":{"o":{"x":1}}}`)
		if r.body != update {
			t.Errorf("%s: answered %s, the engine's noop is %s", kind, r.body, update)
		}
		if w.engine.writes() != 0 || w.stored("1") != `{"o":{"x":1,"y":2}}` {
			t.Errorf("%s: wrote %q", kind, w.engine.sent)
		}
	}
}

func TestAPatchIsAppliedAgainAfterAConflict(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":1}`)
	left := 3
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" && left > 0 {
			left--
			w.put("1", fmt.Sprintf(`{"n":%d,"x":%d}`, 10*left+1, left))
		}
		return nil, nil
	}
	has(t, w.client("c").patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`), 200, "merged;attempts=4;base=none")
	same(t, w.stored("1"), `{"n":2,"x":0}`)
}

func TestAPatchOfNothingIsAnsweredAsAnUpdateOfIt(t *testing.T) {
	w := newWorld(t, "")
	w.put("0", `{}`)
	for _, q := range []string{"", "?routing=a", "?upsert=false", "?if_seq_no=3&if_primary_term=1"} {
		status, update := w.direct("POST", "/shop/_update/1"+q[:len(q)*boolInt(!strings.Contains(q, "upsert"))], `{"doc":{}}`)
		r := w.client("c").patch(target1+q, "merge", `{"a":1}`)
		if has(t, r, 404, "refused;attempts=0"); r.body != update || status != 404 {
			t.Errorf("%s: answered %s, the engine says %s", q, r.body, update)
		}
	}
	if r := w.client("c").patch("/shop/_doc/1?require_alias=true&upsert=true", "merge", `{"a":1}`); r.status != 404 || !strings.Contains(r.body, "alias") {
		t.Errorf("got %v", r)
	}
}

// TestAPatchThatDemandsAnAliasIsRefusedWithoutOne, also where it would change nothing, and never get to the engine.
func TestAPatchThatDemandsAnAliasIsRefusedWithoutOne(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop, sale]}}\n")
	w.put("1", `{"a":1}`)
	c := w.client("c")
	for _, id := range []string{"1", "none"} {
		_, update := w.direct("POST", "/shop/_update/"+id+"?require_alias=true", `{"doc":{"a":1}}`)
		for _, q := range []string{"?require_alias=true", "?require_alias"} {
			r := c.patch("/shop/_doc/"+id+q, "merge", `{"a":1}`)
			if has(t, r, 404, "refused;attempts=0"); gjson.Get(r.body, "error.reason").Str != gjson.Get(update, "error.reason").Str {
				t.Errorf("%s%s: answered %s, the engine says %s", id, q, r.body, update)
			}
		}
	}
	has(t, c.patch(target1+"?require_alias=false", "merge", `{"a":1}`), 200, "guarded;attempts=0")
	if status, body := w.direct("PUT", "/shop/_alias/sale", ""); status != 200 {
		t.Fatal(body)
	}
	has(t, c.patch("/sale/_doc/1?require_alias=true", "merge", `{"a":1}`), 200, "guarded;attempts=0")
	has(t, c.patch("/sale/_doc/1?require_alias=true", "merge", `{"a":2}`), 200, "guarded;attempts=1")
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestAPatchMakesNoIndexByFailing(t *testing.T) {
	w := newWorld(t, "")
	r := w.client("c").patch(target1, "merge", `{"a":1}`)
	_, engines := w.direct("GET", "/shop/_doc/1", "")
	if has(t, r, 404, "refused;attempts=0"); r.body != engines {
		t.Errorf("got %v, the engine says %s", r, engines)
	}
	if status, _ := w.direct("HEAD", "/shop", ""); status != 404 {
		t.Errorf("the index was made")
	}
	has(t, w.client("c").patch(target1+"?upsert", "merge", `{"a":1}`), 201, "guarded;attempts=1")
}

func TestAnUpsertBeginsFromNothing(t *testing.T) {
	for _, q := range []string{"?upsert=true", "?doc_as_upsert=true&_source=true"} {
		for kind, body := range map[string]string{"ops": `[{"op":"add","path":"/n","value":1}]`, "merge": `{"n":1,"gone":null}`, "steps": `[{"op":"increment","path":"/n","value":1}]`} {
			w := newWorld(t, "")
			w.put("0", `{}`)
			c := w.client("c")
			r := c.patch(target1+q, kind, body)
			if has(t, r, 201, "guarded;attempts=1;base=none"); gjson.Get(r.body, "result").Str != "created" {
				t.Errorf("got %v", r)
			}
			if last := w.engine.sent[len(w.engine.sent)-1]; last != "PUT /shop/_doc/1?op_type=create" {
				t.Errorf("sent %s", last)
			}
			same(t, w.stored("1"), `{"n":1}`)
			has(t, c.patch(target1+q, "steps", `[{"op":"increment","path":"/n","value":1}]`), 200, "guarded;attempts=1;base=none")
			same(t, w.stored("1"), `{"n":2}`)
		}
	}
}

// Of two that make a document, the second patches what the first made.
func TestAnUpsertThatComesSecondPatches(t *testing.T) {
	w := newWorld(t, "")
	w.put("0", `{}`)
	once := false
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" && !once {
			once = true
			w.put("1", `{"n":5}`)
		}
		return nil, nil
	}
	has(t, w.client("c").patch(target1+"?upsert", "steps", `[{"op":"increment","path":"/n","value":1}]`), 200, "merged;attempts=2")
	same(t, w.stored("1"), `{"n":6}`)
}

func TestAPatchUnderTheClientsOwnGuardIsTriedOnce(t *testing.T) {
	for _, how := range []string{"query", "If-Match"} {
		send := func(w *world, seq int, body string) result {
			if how == "query" {
				return w.client("c").patch(fmt.Sprintf("%s?if_seq_no=%d&if_primary_term=1", target1, seq), "merge", body)
			}
			return w.client("c").patch(target1, "merge", body, ifMatch(fmt.Sprintf(`"%d-1"`, seq)))
		}
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {explicit: merge}}\n")
		w.put("1", `{"a":1}`)
		w.put("1", `{"a":2}`)
		r := send(w, 0, `{"a":3}`)
		has(t, r, 409, "refused;attempts=0")
		status, engines := w.direct("POST", "/shop/_update/1?if_seq_no=0&if_primary_term=1", `{"doc":{}}`)
		if want := gjson.Get(engines, "error.reason").Str; status != 409 || gjson.Get(r.body, "error.reason").Str != want {
			t.Errorf("answered %s, the engine says %s", r.body, want)
		}
		has(t, send(w, 1, `{"a":3}`), 200, "guarded;attempts=1")
		// Somebody was faster than the write.
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				w.put("1", `{"a":4}`)
			}
			return nil, nil
		}
		has(t, send(w, 2, `{"a":5}`), 409, "guarded;attempts=1")
		same(t, w.stored("1"), `{"a":4}`)
	}
}

func TestAClientsOwnBoundOnAttemptsCounts(t *testing.T) {
	for bound, attempts := range map[string]int{"0": 1, "2": 3} {
		w := newWorld(t, "")
		w.put("1", `{"n":0}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				w.put("1", `{"n":0}`)
			}
			return nil, nil
		}
		r := w.client("c").patch(target1+"?retry_on_conflict="+bound, "merge", `{"a":1}`)
		if r.status != 409 || !strings.Contains(r.outcome, fmt.Sprintf("attempts=%d", attempts)) || w.engine.writes() != attempts {
			t.Errorf("retry_on_conflict=%s: %v after %d writes", bound, r, w.engine.writes())
		}
	}
}

func TestWhereADocumentIsNotSeenWholeItIsNotPatched(t *testing.T) {
	t.Run("filtered", func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if strings.Contains(string(r.Target), "optimist-probe") {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`), nil
			}
			return nil, nil
		}
		r := w.client("c").patch(target1, "merge", `{"a":2}`)
		if has(t, r, 400, "refused;attempts=0"); !strings.Contains(r.outcome, "reason=filtered") {
			t.Errorf("got %v", r)
		}
		same(t, w.stored("1"), `{"a":1}`)
	})
	t.Run("can't be asked", func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if strings.Contains(string(r.Target), "optimist-probe") {
				return answering(429, tooManyRequests), nil
			}
			return nil, nil
		}
		if r := w.client("c").patch(target1, "merge", `{"a":2}`); !errors.Is(r.err, doc.ErrNotWritten) || w.engine.writes() != 0 {
			t.Errorf("got %v", r)
		}
		w.engine.before = nil
		has(t, w.client("c").patch(target1, "merge", `{"a":2}`), 200, "guarded;attempts=1")
	})
	t.Run("source", func(t *testing.T) {
		w := newWorld(t, "")
		w.direct("PUT", "/shop", `{"mappings":{"_source":{"excludes":["x"]}}}`)
		w.put("1", `{"a":1,"x":1}`)
		r := w.client("c").patch(target1, "merge", `{"a":2}`)
		if has(t, r, 400, "refused;attempts=0"); !strings.Contains(r.outcome, "reason=source") || w.engine.writes() != 0 {
			t.Errorf("got %v", r)
		}
	})
	t.Run("unknown index", func(t *testing.T) {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop?") {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`), nil
			}
			return nil, nil
		}
		r := w.client("c").patch(target1, "merge", `{"a":2}`)
		if has(t, r, 400, "refused;attempts=0"); !strings.Contains(r.outcome, "reason=metadata") || w.engine.writes() != 0 {
			t.Errorf("got %v", r)
		}
	})
}

// A patch goes through an ingest pipeline as it would after an _update; it is not sent through it again after a conflict.
func TestAPatchThroughAPipelineIsTriedOnce(t *testing.T) {
	for rules, attempts := range map[string]int{"": 1, "rules:\n- {name: r, match: {index: [shop]}, pipeline: rerun}\n": 2} {
		w := newWorld(t, rules)
		w.put("1", `{"a":1}`)
		tries := 0
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				if tries++; !strings.Contains(string(r.Target), "pipeline=p") {
					t.Errorf("sent %s", r.Target)
				}
				if tries == 1 {
					w.put("1", `{"a":2}`)
				}
				r.Target = []byte(strings.Replace(string(r.Target), "pipeline=p&", "", 1)) // the embedded engine has none
			}
			return nil, nil
		}
		r := w.client("c").patch(target1+"?pipeline=p", "merge", `{"b":1}`)
		if want := map[int]int{1: 409, 2: 200}[attempts]; r.status != want || tries != attempts {
			t.Errorf("%d tries: %v", tries, r)
		}
	}
}

// A patch and a document that was sent whole don't share a write, nor do different bounds.
// A document that was made, and deleted before it was looked at, must not come back.
// Increments of many clients, in two proxies that know nothing of each other, are all there.

// Who sends a rule's operations as a JSON Patch is told what to send them as.
func TestARulesOperationInAJSONPatchIsToldItsMediaType(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	for op, hint := range map[string]bool{"increment": true, "remove_empty": true, "nonsense": false, "add": false} {
		r := w.client("c").patch(target1, "ops", `[{"op":"`+op+`","path":"/a"}]`)
		if r.status != 400 || strings.Contains(r.body, patch.MediaSteps) != hint {
			t.Errorf("%s: %v", op, r)
		}
	}
}

// The operator's limit counts however many tries a client asks for: each costs the engine a read and a write.
func TestAPatchIsTriedNoMoreOftenThanItsRuleAllows(t *testing.T) {
	for query, want := range map[string]string{
		"?retry_on_conflict=1000000": "attempts=3;", "?retry_on_conflict=2147483647": "attempts=3;", "?retry_on_conflict=1": "attempts=2;",
		"?retry_on_conflict=0": "attempts=1;", "": "attempts=3;",
	} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, retry: {max_attempts: 3}}\n")
		w.put("1", `{"n":0}`)
		w.warm("1")
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" && strings.Contains(string(r.Target), "if_seq_no") {
				w.engine.handle(&upstream.Request{Method: "PUT", Target: []byte(target1), Body: []byte(`{"n":1}`)}) // another client is faster
			}
			return nil, nil
		}
		if r := w.client("c").patch(target1+query, "merge", `{"x":1}`); r.status != 409 || !strings.Contains(r.outcome+";", want) {
			t.Errorf("%s: %d %s", query, r.status, r.outcome)
		}
	}
}

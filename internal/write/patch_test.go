package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func media(v string) wire.Field {
	return wire.Field{Name: []byte("Content-Type"), Value: []byte(v)}
}

// patch sends a PATCH of the kind that its body is of: "ops" (RFC 6902), "merge" (RFC 7396) or "steps".
func (c *client) patch(target, kind, body string, fields ...wire.Field) result {
	c.w.t.Helper()
	t := map[string]string{"ops": mediaOperations, "merge": mediaMerge, "steps": mediaSteps}[kind]
	return c.send("PATCH", target, body, append([]wire.Field{media(t)}, fields...)...)
}

const target1 = "/shop/_doc/1"

func TestAPatchIsAppliedToTheDocumentAsItIs(t *testing.T) {
	for _, method := range []string{"PATCH /shop/_doc/1", "POST /shop/_patch/1", "PATCH /shop/item/1", "POST /shop/item/1/_patch"} {
		for kind, body := range map[string]string{
			mediaOperations:                       `[{"op":"test","path":"/a","value":1},{"op":"add","path":"/l/-","value":3},{"op":"remove","path":"/gone"}]`,
			mediaMerge + "; charset=utf-8":        `{"l":[1,2,3],"gone":null}`,
			"Application/Vnd.optimist-patch+JSON": `[{"op":"append","path":"/l","value":3},{"op":"remove","path":"/gone"}]`,
		} {
			t.Run(method+" "+kind, func(t *testing.T) {
				w := newWorld(t, "")
				m, target, _ := strings.Cut(method, " ")
				if strings.Contains(target, "item") {
					t.Skip("the embedded engine has no types") // the path is looked at below
				}
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
	w.client("c").send("POST", "/shop/item/1/_patch", `{"a":2}`, media(mediaMerge))
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
		if has(t, r, 404, "guarded;attempts=0"); r.body != update || status != 404 {
			t.Errorf("%s: answered %s, the engine says %s", q, r.body, update)
		}
	}
	if r := w.client("c").patch("/shop/_doc/1?require_alias=true&upsert=true", "merge", `{"a":1}`); r.status != 404 || !strings.Contains(r.body, "alias") {
		t.Errorf("got %v", r)
	}
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
	if has(t, r, 404, "guarded;attempts=0"); r.body != engines {
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

func TestWhatAPatchCantBeAppliedToIsNamed(t *testing.T) {
	for _, c := range []struct {
		kind, body, stored string
		status             int
		kindOf             string
		says               []string
	}{
		{"ops", `[{"op":"test","path":"/status","value":"new"}]`, `{"status":"paid"}`, 409, "version_conflict_engine_exception", []string{"/status"}},
		{"steps", `[{"op":"test","path":"/status","value":"new"}]`, `{"status":"paid"}`, 409, "version_conflict_engine_exception", []string{"/status", "new", "paid"}},
		{"ops", `[{"op":"remove","path":"/none"}]`, `{"a":1}`, 400, "illegal_argument_exception", []string{"/none"}},
		{"steps", `[{"op":"increment","path":"/name","value":1}]`, `{"name":"x"}`, 400, "illegal_argument_exception", []string{"/name", "number", "string"}},
		{"ops", `[{"op":"replace","path":"","value":[]}]`, `{"a":1}`, 400, "illegal_argument_exception", []string{"not a JSON object"}},
	} {
		w := newWorld(t, "")
		w.put("1", c.stored)
		r := w.client("c").patch(target1, c.kind, c.body)
		has(t, r, c.status, "guarded;attempts=0")
		if got := gjson.Get(r.body, "error.type").Str; got != c.kindOf || gjson.Get(r.body, "status").Int() != int64(c.status) {
			t.Errorf("%s: %s", c.body, r.body)
		}
		for _, word := range c.says {
			if !strings.Contains(gjson.Get(r.body, "error.reason").Str, word) {
				t.Errorf("%s: %s doesn't say %s", c.body, r.body, word)
			}
		}
		if w.engine.writes() != 0 {
			t.Errorf("%s: wrote %q", c.body, w.engine.sent)
		}
	}
}

func TestWhatIsNoPatchIsRefusedBeforeAnythingIsAsked(t *testing.T) {
	for _, c := range []struct {
		media, query, body string
		status             int
		kind               string
	}{
		{"application/json", "", `{"a":1}`, 415, "media_type_header_exception"},
		{"", "", `{"a":1}`, 415, "media_type_header_exception"},
		{"text/plain", "", `{"a":1}`, 415, "media_type_header_exception"},
		{mediaOperations, "", `[{"op":"add"`, 400, "x_content_parse_exception"},
		{mediaMerge, "", `{"a":`, 400, "x_content_parse_exception"},
		{mediaSteps, "", ``, 400, "x_content_parse_exception"},
		{mediaOperations, "", `{"op":"add"}`, 400, "parsing_exception"},
		{mediaOperations, "", `[{"op":"increment","path":"/n","value":1}]`, 400, "parsing_exception"},
		{mediaOperations, "", `[{"op":"add","path":"n","value":1}]`, 400, "parsing_exception"},
		{mediaMerge, "", `[1]`, 400, "parsing_exception"},
		{mediaSteps, "", `[{"op":"increment","path":"/n","value":1,"when":"true"}]`, 400, "parsing_exception"},
		{mediaSteps, "", `[{"op":"no","path":"/n"}]`, 400, "parsing_exception"},
		{mediaMerge, "?upsert=maybe", `{}`, 400, "illegal_argument_exception"},
		{mediaMerge, "?retry_on_conflict=x", `{}`, 400, "illegal_argument_exception"},
		{mediaMerge, "?op_type=create", `{}`, 400, "illegal_argument_exception"},
		{mediaMerge, "?version=3", `{}`, 400, "action_request_validation_exception"},
		{mediaMerge, "?if_seq_no=3", `{}`, 400, "action_request_validation_exception"},
		{mediaMerge, "?if_seq_no=3&if_primary_term=1&upsert=true", `{}`, 400, "action_request_validation_exception"},
		{mediaMerge, "?if_seq_no=3&if_primary_term=1&retry_on_conflict=1", `{}`, 400, "action_request_validation_exception"},
		{mediaMerge, "?format=yaml", `{}`, 406, "illegal_argument_exception"},
	} {
		w := newWorld(t, "")
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			t.Errorf("%v: %s %s was sent", c, r.Method, r.Target)
			return nil, nil
		}
		r := w.client("c").send("PATCH", target1+c.query, c.body, media(c.media))
		if has(t, r, c.status, "guarded;attempts=0"); gjson.Get(r.body, "error.type").Str != c.kind {
			t.Errorf("%v: %s", c, r.body)
		}
	}
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
		has(t, r, 409, "guarded;attempts=0")
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

func TestAPatchShowsTheDocumentAsAnUpdateDoes(t *testing.T) {
	const source = `{"a":1,"b":{"x":[{"k":1,"l":2},{"l":3}],"y":2},"c":"z"}`
	for _, q := range []string{"_source=true", "_source", "_source=false", "_source=a,c", "_source=b.x.k", "_source=b*", "_source_includes=b.*", "_source_excludes=b.x,c",
		"_source_includes=b&_source_excludes=b.x.l", "_source=none", "_source=true&_source_includes=a", "_source=b&_source_excludes=b"} {
		for _, doc := range []string{`{"n":1}`, `{"a":1}`} {
			for _, routing := range []string{"", "&routing=r"} {
				w := newWorld(t, "")
				w.direct("PUT", "/shop", stressIndex)
				w.direct("PUT", "/shop/_doc/1?"+strings.TrimPrefix(routing, "&"), source)
				w.direct("PUT", "/shop/_doc/2?"+strings.TrimPrefix(routing, "&"), source)
				_, update := w.direct("POST", "/shop/_update/2?"+q+routing, `{"doc":`+doc+`}`)
				r := w.client("c").patch("/shop/_doc/1?"+q+routing, "merge", doc)
				if r.status != 200 {
					t.Fatalf("%s: %v", q, r)
				}
				got, want := gjson.Get(r.body, "get"), gjson.Get(update, "get")
				if got.Get("_source").Raw != want.Get("_source").Raw || got.Get("_routing").Raw != want.Get("_routing").Raw ||
					got.Get("found").Raw != want.Get("found").Raw || got.Get("_seq_no").Raw != gjson.Get(r.body, "_seq_no").Raw && got.Exists() {
					t.Errorf("%s of %s:\ngot  %s\nwant %s", q, doc, got.Raw, want.Raw)
				}
				if whole := strings.HasPrefix(q, "_source") && want.Get("_source.c").Exists() && want.Get("_source.b.x.0.l").Exists() && want.Get("_source.a").Exists(); whole != (r.etag != "") && gjson.Get(r.body, "result").Str != "noop" {
					t.Errorf("%s: ETag %q", q, r.etag)
				}
			}
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
		if has(t, r, 400, "guarded;attempts=0"); !strings.Contains(r.outcome, "reason=filtered") {
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
		if r := w.client("c").patch(target1, "merge", `{"a":2}`); !errors.Is(r.err, ErrNotWritten) || w.engine.writes() != 0 {
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
		if has(t, r, 400, "guarded;attempts=0"); !strings.Contains(r.outcome, "reason=source") || w.engine.writes() != 0 {
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
		if has(t, r, 400, "guarded;attempts=0"); !strings.Contains(r.outcome, "reason=metadata") || w.engine.writes() != 0 {
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

func TestPatchesThatWaitShareOneWrite(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":0}`)
	w.warm("1")
	const clients = 32
	before := w.engine.writes()
	results := w.queued(clients, func(i int) result {
		c := w.client(fmt.Sprint("c", i))
		switch i % 3 {
		case 0:
			return c.patch(target1, "merge", fmt.Sprintf(`{"f%d":1}`, i))
		case 1:
			return c.patch(target1, "ops", fmt.Sprintf(`[{"op":"add","path":"/f%d","value":1}]`, i))
		}
		return c.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`)
	})
	for i, r := range results {
		if r.status != 200 || i > 0 && !strings.HasPrefix(r.outcome, "combined") {
			t.Errorf("patch %d: %v", i, r)
		}
	}
	if n := w.engine.writes() - before; n != 2 {
		t.Errorf("%d writes for %d patches", n, clients)
	}
	if got := gjson.Get(w.stored("1"), "n").Int(); got != 10 {
		t.Errorf("n is %d in %s", got, w.stored("1"))
	}
}

func TestInASharedWriteEachPatchHasItsOwnAnswer(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":0,"name":"x","done":true}`)
	w.warm("1")
	type patch struct{ kind, body string }
	patches := []patch{
		{"steps", `[{"op":"increment","path":"/n","value":1}]`},
		{"steps", `[{"op":"increment","path":"/n","value":1}]`},
		{"steps", `[{"op":"increment","path":"/name","value":1}]`},
		{"ops", `[{"op":"test","path":"/n","value":0}]`},
		{"merge", `{"done":true}`},
		{"steps", `[{"op":"increment","path":"/n","value":1}]`},
		{"ops", `[{"op":"test","path":"/n","value":3},{"op":"replace","path":"/name","value":"y"}]`},
	}
	results := w.queued(len(patches), func(i int) result {
		return w.client(fmt.Sprint("c", i)).patch(target1, patches[i].kind, patches[i].body)
	})
	for i, want := range []struct {
		status int
		result string
	}{{200, "updated"}, {200, "updated"}, {400, ""}, {409, ""}, {200, "noop"}, {200, "updated"}, {200, "updated"}} {
		if r := results[i]; r.status != want.status || gjson.Get(r.body, "result").Str != want.result {
			t.Errorf("patch %d: %v, want %v", i, r, want)
		}
	}
	same(t, w.stored("1"), `{"n":3,"name":"y","done":true}`)
}

// A patch and a document that was sent whole don't share a write, nor do different bounds.
func TestPatchesShareOnlyWithTheirKind(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":0}`)
	w.warm("1")
	reader := w.client("c1")
	reader.read("1")
	results := w.queued(4, func(i int) result {
		switch i {
		case 1:
			return reader.save("1", `{"n":0,"whole":1}`)
		case 2:
			return w.client("c2").patch(target1+"?retry_on_conflict=5", "merge", `{"b":1}`)
		}
		return w.client(fmt.Sprint("c", i)).patch(target1, "merge", fmt.Sprintf(`{"a%d":1}`, i))
	})
	for i, r := range results {
		if r.status != 200 || strings.HasPrefix(r.outcome, "combined") {
			t.Errorf("write %d: %v", i, r)
		}
	}
	same(t, w.stored("1"), `{"n":0,"a0":1,"whole":1,"b":1,"a3":1}`)
}

func TestALostPatchIsRepeatedOnlyWhereThatCountsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		kind, body string
		applied    bool   // the try without an answer
		between    string // what somebody else stores afterwards
		want       string
		unknown    bool
	}{
		"not applied, nobody wrote":               {"steps", `[{"op":"increment","path":"/n","value":1}]`, false, "", `{"n":2,"t":"a","l":[1]}`, false},
		"an increment that was applied":           {"steps", `[{"op":"increment","path":"/n","value":1}]`, true, "", `{"n":2,"t":"a","l":[1]}`, true},
		"an increment that may have been":         {"steps", `[{"op":"increment","path":"/n","value":1}]`, false, `{"n":1,"t":"b","l":[1]}`, `{"n":1,"t":"b","l":[1]}`, true},
		"a value that was set":                    {"merge", `{"t":"z"}`, true, "", `{"n":1,"t":"z","l":[1]}`, true},
		"a value that was not, elsewhere changed": {"merge", `{"t":"z"}`, false, `{"n":5,"t":"a","l":[1]}`, `{"n":5,"t":"z","l":[1]}`, false},
		"a value that somebody else set":          {"ops", `[{"op":"add","path":"/t","value":"z"}]`, false, `{"n":1,"t":"y","l":[1]}`, `{"n":1,"t":"y","l":[1]}`, true},
		"an element that may have been added":     {"ops", `[{"op":"add","path":"/l/0","value":0}]`, false, `{"n":5,"t":"a","l":[1]}`, `{"n":5,"t":"a","l":[1]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"n":1,"t":"a","l":[1]}`)
			once := false
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method != "PUT" || once {
					return nil, nil
				}
				once = true
				if c.applied {
					w.engine.handle(r)
				}
				if c.between != "" {
					w.put("1", c.between)
				}
				return nil, lostError
			}
			r := w.client("c").patch(target1, c.kind, c.body)
			if errors.Is(r.err, ErrUnknownOutcome) != c.unknown || !c.unknown && r.status != 200 || c.unknown && !strings.HasPrefix(r.outcome, "unknown") {
				t.Errorf("got %v", r)
			}
			same(t, w.stored("1"), c.want)
		})
	}
}

// A document that was made, and deleted before it was looked at, must not come back.
func TestALostCreateIsNotMadeAgain(t *testing.T) {
	for _, how := range []string{"save", "patch"} {
		w := newWorld(t, "")
		w.put("0", `{}`)
		c := w.client("c")
		c.read("1")
		lost := false
		w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
			if r.Method == "PUT" && !lost {
				lost = true
				w.direct("DELETE", target1, "")
				return lostError
			}
			return nil
		}
		var r result
		if how == "save" {
			r = c.save("1", `{"a":1}`)
		} else {
			r = c.patch(target1+"?upsert", "merge", `{"a":1}`)
		}
		if !errors.Is(r.err, ErrUnknownOutcome) || w.stored("1") != "" {
			t.Errorf("%s: %v, stored %s", how, r, w.stored("1"))
		}
	}
}

func TestAPatchWhoseClientLeftIsNotSent(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	w.warm("1")
	ctx, leave := context.WithCancel(t.Context())
	before := w.engine.writes()
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "GET" {
			leave()
		}
		return nil, nil
	}
	if r := w.client("c").sendContext(ctx, "PATCH", target1, `{"a":2}`, media(mediaMerge)); r.err == nil || w.engine.writes() != before {
		t.Errorf("got %v after %d writes", r, w.engine.writes()-before)
	}
}

// Increments of many clients, in two proxies that know nothing of each other, are all there.
func TestEveryIncrementCounts(t *testing.T) {
	w := newWorld(t, "")
	other := *w
	other.s = New(Options{Upstream: w.engine, Engine: w.s.engine, Sessions: w.store})
	w.put("1", `{"n":0}`)
	const clients, rounds = 16, 25
	var wg sync.WaitGroup
	for i := range clients {
		c := []*world{w, &other}[i%2].client(fmt.Sprint("c", i))
		wg.Go(func() {
			for range rounds {
				if r := c.patch(target1, "steps", `[{"op":"increment","path":"/n","value":1}]`); r.status != 200 {
					t.Errorf("got %v", r)
				}
			}
		})
	}
	wg.Wait()
	same(t, w.stored("1"), fmt.Sprintf(`{"n":%d}`, clients*rounds))
}

func TestAPatchsAnswerIsFilteredAsTheEngineFilters(t *testing.T) {
	for _, form := range []string{"filter_path=result,_id", "filter_path=-_shards,-_type", "filter_path=none", "filter_path=**.successful", "filter_path=get._source.b.*",
		"filter_path=get", "filter_path=_s*", "filter_path=-get._source.b,get.*", "filter_path=**", "filter_path=*.*", "filter_path=get._source.l.x", "filter_path=-**.x",
		"filter_path=-_shards.*", "filter_path="} {
		for _, doc := range []string{`{"a":1}`, `{"a":2}`} {
			w := newWorld(t, "")
			w.put("1", `{"a":1,"b":{"c":1,"d":[2]},"l":[{"x":1},{"y":2}]}`)
			w.put("2", `{"a":1,"b":{"c":1,"d":[2]},"l":[{"x":1},{"y":2}]}`)
			_, want := w.direct("POST", "/shop/_update/2?_source&"+form, `{"doc":`+doc+`}`)
			r := w.client("c").patch(target1+"?_source&"+form, "merge", doc)
			if got := withoutIDs(r.body); r.status != 200 || got != withoutIDs(want) {
				t.Errorf("%s of %s:\ngot  %s\nwant %s", form, doc, r.body, want)
			}
		}
	}
}

// withoutIDs makes answers about two documents comparable.
func withoutIDs(body string) string {
	for _, name := range []string{"_seq_no", "_id"} {
		for _, v := range []string{"0", "1", "2", "3", `"1"`, `"2"`} {
			body = strings.ReplaceAll(body, `"`+name+`":`+v, `"`+name+`":N`)
		}
	}
	return body
}

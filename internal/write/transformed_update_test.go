package write

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/outbound"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// idleRule transforms in name only.
const idleRule = "rules:\n- {name: shop, match: {index: [shop]}, transform: [{op: remove, path: /never}]}\n"

// randomObject is a small document of few keys, so that two of them meet.
func randomObject(r *rand.Rand, depth int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, key := range []string{"a", "b", "c/d~", "é"} {
		if r.IntN(3) == 0 {
			continue
		}
		if b.Len() > 1 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q:", key)
		values := []string{"1", "2", "1.0", "1.00", "10e-1", "null", "true", `"x"`, `"\u0078"`, "[1,2]", "[1, 2.0]", "[]", "{}"}
		if k := r.IntN(len(values) + 5*(1-min(depth/2, 1))); k < len(values) {
			b.WriteString(values[k])
		} else {
			b.WriteString(randomObject(r, depth+i%2+1))
		}
	}
	b.WriteByte('}')
	return b.String()
}

// TestAnUpdateThatIsTransformedIsTheEnginesOwn compares _update requests that optimist performs with those that the engine does.
func TestAnUpdateThatIsTransformedIsTheEnginesOwn(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	results := map[string]int{}
	for range 1500 {
		stored, part := randomObject(r, 0), randomObject(r, 0)
		body := `{"doc":` + part + `}`
		switch r.IntN(8) {
		case 0:
			body = `{"doc":` + part + `,"detect_noop":false}`
		case 1:
			body = `{"doc":` + part + `,"doc_as_upsert":true}`
		case 2:
			body = `{"doc":` + part + `,"upsert":{"u":1}}`
		case 3:
			body = `{"doc":` + part + `,"_source":true}`
		}
		query := []string{"", "?_source=a", "?refresh=true", "?doc_as_upsert=true", "?retry_on_conflict=2", "?if_seq_no=0&if_primary_term=1"}[r.IntN(6)]
		var got, want result
		var docs [2]string
		absent := r.IntN(5) == 0
		for k := range 2 {
			w := newWorld(t, idleRule)
			w.direct("PUT", "/shop", stressIndex)
			if !absent {
				w.put("1", stored)
			}
			if k == 0 {
				got = w.client("c").send("POST", "/shop/_update/1"+query, body)
			} else {
				want.status, want.body = w.direct("POST", "/shop/_update/1"+query, body)
			}
			docs[k] = w.stored("1")
		}
		uuid := gjson.Get(want.body, "error.index_uuid").Str
		if mine := gjson.Get(got.body, "error.index_uuid").Str; mine != "" && uuid != "" {
			got.body = strings.ReplaceAll(got.body, mine, uuid)
		}
		if got.status != want.status || gjson.Get(got.body, "result").Raw != gjson.Get(want.body, "result").Raw || gjson.Get(got.body, "get._source").Exists() != gjson.Get(want.body, "get._source").Exists() ||
			got.status > 299 && got.body != want.body {
			t.Fatalf("%s into %s %s:\ngot  %v\nwant %v", body, stored, query, got, want)
		}
		if strings.Contains(got.outcome, "untransformed") != (got.status == 400) {
			t.Fatalf("%s: %v", body, got)
		}
		if docs[1] == "" {
			if docs[0] != "" {
				t.Fatalf("%s made %s", body, docs[0])
			}
		} else {
			same(t, docs[0], docs[1])
		}
		results[gjson.Get(got.body, "result").Str]++
		if t.Failed() {
			t.Fatalf("%s into %s %s", body, stored, query)
		}
	}
	if results["noop"] < 10 || results["updated"] < 300 || results["created"] < 50 {
		t.Errorf("results: %v", results)
	}
}

func TestAnUpdateOfAPartIsTransformedAsAWhole(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0,"status":"open","edits":3}`)
	c := w.client("c")
	r := c.send("POST", "/shop/_update/1?_source=edits", `{"doc":{"a":1}}`)
	if has(t, r, 200, "guarded;attempts=1;base=none"); gjson.Get(r.body, "get._source").Raw != `{"edits":4}` {
		t.Errorf("got %v", r)
	}
	same(t, w.stored("1"), `{"a":1,"status":"open","edits":4}`)
	// A noop stays one, and shows what it was asked to, in whatever form.
	for body, shows := range map[string]bool{`{"doc":{"a":1},"_source":false}`: false, `{"doc":{"a":1},"_source":true}`: true} {
		for _, form := range []string{"", "?human=true", "?_source=true&human"} {
			if r := c.send("POST", "/shop/_update/1"+form, body); gjson.Get(r.body, "get._source").Exists() != shows {
				t.Errorf("%s %s: %v", form, body, r)
			}
		}
	}
	if r := c.send("POST", "/shop/_update/1", `{"doc":{"a":1}}`); gjson.Get(r.body, "result").Str != "noop" {
		t.Errorf("got %v", r)
	}
	has(t, c.send("POST", "/shop/_update/2", `{"doc":{"a":1},"upsert":{"b":1}}`), 201, "guarded;attempts=1;base=none")
	same(t, w.stored("2"), `{"b":1,"status":"new","edits":1}`)
	once := false
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "PUT" && !once {
			once = true
			w.put("1", `{"a":1,"edits":9}`)
		}
		return nil, nil
	}
	has(t, c.send("POST", "/shop/_update/1", `{"doc":{"b":1}}`), 200, "merged;attempts=2;base=view")
	same(t, w.stored("1"), `{"a":1,"b":1,"status":"new","edits":10}`)
}

// The index is found to have no sequence numbers only by the write: the client's own request goes instead, or is refused.
func TestWhatCantBeGuardedIsNotPatched(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0}`)
	var last string
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "GET" && !strings.Contains(string(r.Target), "optimist-probe") {
			last = r.Method + " " + string(r.Target) + " " + string(r.Body)
		}
		if r.Method == "PUT" {
			return answering(400, `{"error":{"type":"illegal_argument_exception","reason":"index.disable_sequence_numbers"},"status":400}`), nil
		}
		return nil, nil
	}
	r := w.client("c").send("POST", "/shop/_update/1", `{"doc":{"a":1}}`)
	if r.status != 200 || !strings.Contains(r.outcome, "untransformed") || last != `POST /shop/_update/1?retry_on_conflict=3 {"doc":{"a":1}}` {
		t.Errorf("got %v, sent %s", r, last)
	}
	w.s.catalog.Forget([16]byte{})
	r = w.client("c").patch(target1, "merge", `{"a":2}`)
	if r.status != 400 || !strings.Contains(r.outcome, "reason=no_seq_no") || !strings.HasPrefix(last, "PUT /shop/_doc/1?if_seq_no") {
		t.Errorf("got %v, sent %s", r, last)
	}
	same(t, w.stored("1"), `{"a":1}`)
}

func TestWhatIsNestedTooDeeplyIsTheEngines(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0}`)
	w.put("deep", `{"d":`+strings.Repeat("[", 150)+strings.Repeat("]", 150)+`}`)
	if r := w.client("c").send("POST", "/shop/_update/deep", `{"doc":{"a":1}}`); r.status != 200 || !strings.Contains(r.outcome, "untransformed") {
		t.Errorf("got %v", r)
	}
	if r := w.client("c").patch("/shop/_doc/deep", "merge", `{"a":2}`); r.status != 400 {
		t.Errorf("got %v", r)
	}
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "POST" && len(r.Body) > 1<<20 {
			return answering(400, `{"error":{"type":"x_content_parse_exception"},"status":400}`), nil
		}
		return nil, nil
	}
	deep := strings.Repeat("[", 8<<20)
	for _, body := range []string{`{"doc":{"a":` + deep, `{"doc":{"a":` + deep + strings.Repeat("]", 8<<20) + "}}"} {
		if r := w.client("c").send("POST", "/shop/_update/1", body); r.status != 400 || !strings.Contains(r.outcome, "untransformed") {
			t.Errorf("got %v", r)
		}
		for _, kind := range []string{"ops", "merge", "steps"} {
			if r := w.client("c").patch(target1, kind, body[7:]); r.status != 400 {
				t.Errorf("%s: got %v", kind, r)
			}
		}
	}
}

func TestWhatOnlyTheEngineCanUpdateIsPassedUntransformed(t *testing.T) {
	script := `{"script":{"source":"ctx._source.a = 1"}}`
	for name, c := range map[string]struct {
		query, body, reason string
		before              func(w *world, r *upstream.Request) *upstream.Response
	}{
		"a script":            {"", script, "", nil},
		"a script and a doc":  {"", `{"doc":{"a":1},"script":"x"}`, "", nil},
		"a list of numbers":   {"", `{"doc":{"a":1},"_source":[1]}`, "", nil},
		"a guard in the body": {"", `{"doc":{"a":1},"if_seq_no":0,"if_primary_term":1}`, "", nil},
		"invalid":             {"", `{"doc":{"a":}}`, "", nil},
		"twice":               {"", `{"doc":{"a":1},"doc":{"a":2}}`, "", nil},
		"twice in the doc":    {"", `{"doc":{"a":1,"b":[{"c":1,"\u0063":2}]}}`, "", nil},
		"an unknown key":      {"", `{"dok":{"a":1}}`, "", nil},
		"a version":           {"?version=1", `{"doc":{"a":1}}`, "", nil},
		"a filtered view": {"", `{"doc":{"a":1}}`, "filtered", func(_ *world, r *upstream.Request) *upstream.Response {
			if strings.Contains(string(r.Target), "optimist-probe") {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`)
			}
			return nil
		}},
		"no right to read": {"", `{"doc":{"a":1}}`, "", func(_ *world, r *upstream.Request) *upstream.Response {
			if r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop/_doc/") {
				return answering(403, `{"error":{"type":"security_exception"},"status":403}`)
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, editsRule)
			w.put("1", `{"a":0}`)
			var sent string
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "POST" && !strings.Contains(string(r.Target), "optimist-probe") {
					sent = string(r.Body)
				}
				if c.before != nil {
					return c.before(w, r), nil
				}
				return nil, nil
			}
			r := w.client("c").send("POST", "/shop/_update/1"+c.query, c.body)
			if r.err != nil || !strings.Contains(r.outcome, "untransformed") || sent != c.body || c.reason != "" && !strings.Contains(r.outcome, "reason="+c.reason) {
				t.Errorf("got %v, sent %s", r, sent)
			}
		})
	}
}

// An operator has blocked the index for reads. The engine still takes an _update there. Without the rule's steps it would be another write.
func TestAnUpdateInAnIndexThatIsBlockedForReadsIsNotSentUntransformed(t *testing.T) {
	w := newWorld(t, editsRule)
	w.put("1", `{"a":0}`)
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method == "GET" && strings.HasPrefix(string(r.Target), "/shop/_doc/") {
			return answering(403, `{"error":{"type":"cluster_block_exception"},"status":403}`), nil
		}
		return nil, nil
	}
	r := w.client("c").send("POST", "/shop/_update/1", `{"doc":{"a":1}}`)
	w.engine.before = nil
	if !errors.Is(r.err, doc.ErrNotWritten) || w.stored("1") != `{"a":0}` {
		t.Errorf("got %v, and stored is %s", r, w.stored("1"))
	}
}

// Whoever can't look into the document any more doesn't know either whether its change is in it.
func TestAnUpdateThatMayHaveBeenAppliedIsNotHandedToTheEngine(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: increment, path: /edits, value: 1}]}\n")
	w.put("1", `{"n":1}`)
	deep := `{"n":3,"deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`
	w.loseFirst(func(r *upstream.Request) {
		w.engine.handle(r)
		w.put("1", deep)
	})
	r := w.client("c").send("POST", "/shop/_update/1", `{"doc":{"n":2}}`)
	if !errors.Is(r.err, ErrUnknownOutcome) || w.stored("1") != deep {
		t.Errorf("got %v, and stored is %.20s", r, w.stored("1"))
	}
}

// An _update leaves the lane unsent, because the document can't be read. Then it can be read after all, and optimist makes the _update: what
// the lane said before must not hide the acknowledgement.
func TestAnUpdateThatIsMadeHereAfterAllIsAcknowledged(t *testing.T) {
	w := newWorld(t, "rules: [{name: r, match: {index: [shop]}, transform: [{op: default, path: /t, value: 1}]}]\n")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	reads := 0
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if r.Method != "GET" || !strings.HasPrefix(string(r.Target), target1) {
			return nil, nil
		}
		if reads++; reads > 2 {
			return nil, nil
		}
		w.store.DropIndex(session.Credentials{}, "shop") // so that the base is void, and the lane reads before it writes
		return answering(200, `{"_index":"shop","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"found":true}`), nil
	}
	has(t, me.send("POST", update1, `{"doc":{"a":2}}`), 200, "guarded;attempts=1;base=none")
	same(t, w.stored("1"), `{"a":2,"t":1}`)
}

func TestUpdatesOfAnotherMediaTypeShareNoWrite(t *testing.T) {
	ru := &rule.Rule{}
	alike := func(media string) *change {
		c := ruled(ru)
		c.shareable, c.patch, c.out = true, &patch.Request{}, outbound.Template{Media: []byte(media)}
		return c
	}
	a, b := alike("application/json"), alike("text/plain")
	if s := (&Service{}); s.mayJoin(a, b) || !s.mayJoin(a, a) {
		t.Error("the engine refuses text, and with it what is JSON")
	}
}

// Clients in Python escape what isn't ASCII, and an emoji is two halves then. Clients that cut a text by its UTF-16 units leave
// one half. Only half an emoji in a key is the engine's business.
func TestAPartWithEscapedEmojiIsTransformed(t *testing.T) {
	for body, transformed := range map[string]bool{
		`{"doc":{"name":"\ud83d\ude00 \uD83D\uDE00"}}`:           true,
		`{"doc":{"\ud83d\ude00":{"\ud83d\ude00":1},"name":"x"}}`: true,
		`{"doc":{"name":"\\ud83d, and \\\\ud83d"}}`:              true,
		`{"doc":{"name":"\ud83d"}}`:                              true,
		`{"doc":{"name":"\ude00\ud83d"}}`:                        true,
		`{"doc":{"name":"\ud83dx"}}`:                             true,
		`{"doc":{"name":"\ud83d\\ude00"}}`:                       true,
		`{"doc":{"\ud83d":1}}`:                                   false,
		`{"doc":{"other":[{"\ud83d":1}]}}`:                       false,
	} {
		w := newWorld(t, strings.ReplaceAll(idleRule, "{op: remove, path: /never}", "{op: add, path: /t, value: 1}"))
		w.put("1", `{"😀":{"😀":0,"kept":1},"name":""}`)
		r := w.client("me").send("POST", "/shop/_update/1", body)
		if r.status != 200 || strings.Contains(r.outcome, "untransformed") == transformed {
			t.Errorf("%s: %v", body, r)
		}
		got := w.stored("1")
		if gjson.Get(got, "t").Exists() != transformed || !gjson.Get(got, "😀.kept").Exists() {
			t.Errorf("%s: stored %s", body, got)
		}
		gjson.Get(body, "doc").ForEach(func(k, v gjson.Result) bool {
			if k.Str == "name" && transformed && gjson.Get(got, "name").Str != v.Str {
				t.Errorf("%s: stored %s", body, got)
			}
			return true
		})
	}
}

// A client has sent a part, and optimist has merged it with what another had written. The next part has no known outcome. When the client
// sends that again, nobody knows what it had seen, and what is stored has more in it: the repeat must not be written in its place.
func TestARepeatedPartDoesNotReplaceWhatItsClientHasNeverSeen(t *testing.T) {
	for _, onConflict := range []string{"merge", "fail"} {
		w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, on_conflict: "+onConflict+", transform: [{op: increment, path: /edits, value: 1}]}\n")
		w.direct("PUT", "/shop", stressIndex)
		w.put("1", `{"log":["a"]}`)
		me := w.client("me")
		me.read("1")
		w.put("1", `{"log":["a","b"]}`)
		part := func(log string) result { return me.send("POST", "/shop/_update/1", `{"doc":{"log":`+log+`}}`) }
		first, second := 200, 503
		if onConflict == "fail" {
			first, second = 409, 409
		}
		has(t, part(`["a","m"]`), first, "")
		if onConflict == "fail" {
			has(t, me.send("PATCH", "/shop/_doc/1", `[{"op":"append","path":"/log","value":"m"}]`, media(patch.MediaSteps)), 200, "")
		}
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				return answering(503, `{"status":503}`), nil
			}
			return nil, nil
		}
		has(t, part(`["a","m","n"]`), second, "")
		w.engine.before = nil
		if r := part(`["a","m","n"]`); r.status != 409 {
			t.Errorf("on_conflict %s: %v", onConflict, r)
		}
		if got := gjson.Get(w.stored("1"), "log").Raw; got != `["a","b","m"]` {
			t.Errorf("on_conflict %s: the log is %s", onConflict, got)
		}
	}
}

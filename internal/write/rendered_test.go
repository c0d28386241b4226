package write

import (
	"strings"
	"testing"

	"optimist/internal/upstream"
)

// A noop is answered in the form that the client asked for: whoever asks for one field must find that, and only that.
func TestNoopIsAnsweredInTheFormAskedFor(t *testing.T) {
	for query, want := range map[string]string{
		"":                           `{"_index":"shop","_id":"a b","_version":2,"result":"noop","_shards":{"total":0,"successful":0,"failed":0},"_seq_no":1,"_primary_term":1}`,
		"?filter_path=result":        `{"result":"noop"}`,
		"?filter_path=_s*,-**.total": `{"_shards":{"successful":0,"failed":0},"_seq_no":1}`,
		"?filter_path=none":          `{}`,
		"?pretty&filter_path=_id":    "{\n  \"_id\" : \"a b\"\n}\n",
		"?routing=r&filter_path=_id": `{"_id":"a b"}`,
	} {
		t.Run(query, func(t *testing.T) {
			w := newWorld(t, "")
			routing := ""
			if strings.Contains(query, "routing") {
				routing = "?routing=r"
			}
			w.direct("PUT", "/shop", "")
			me := w.client("me")
			me.send("PUT", "/shop/_create/a%20b"+routing, `{"a":1}`)
			w.put("a%20b"+routing, `{"a":2}`)
			before := w.engine.writes()
			r := me.send("PUT", "/shop/_doc/a%20b"+query, `{"a":2}`)
			has(t, r, 200, "merged")
			if r.body != want {
				t.Errorf("got  %s\nwant %s", r.body, want)
			}
			if query == "" && w.engine.writes() != before+1 {
				t.Errorf("%v", w.engine.sent)
			}
			same(t, w.stored("a%20b"+routing), `{"a":2}`)
		})
	}
}

func TestNoopIsAnsweredPlainlyWhereTheEngineDoesNotRenderIt(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	me.read("1")
	w.put("1", `{"a":2}`)
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if strings.HasPrefix(string(r.Target), "/shop/_update/1?if_seq_no=1") {
			return answering(403, `{}`), nil
		}
		return nil, nil
	}
	r := me.send("PUT", "/shop/_doc/1?pretty", `{"a":2}`)
	has(t, r, 200, "merged")
	if !strings.HasPrefix(r.body, `{"_index":"shop"`) {
		t.Errorf("%v", r)
	}
}

// A delete that others were before is answered without asking the engine, and filtered all the same.
func TestNotFoundIsFilteredAsTheEngineDoes(t *testing.T) {
	for _, filter := range []string{"result", "-_shards", "_i*,**.total", "none", "", "-_shards.total,-_seq_no,-_version", "_shards.failed,_id"} {
		w := newWorld(t, "")
		w.put("1", `{"a":1}`)
		me := w.client("me")
		me.read("1")
		w.direct("DELETE", "/shop/_doc/1", "")
		r := me.send("DELETE", "/shop/_doc/1?filter_path="+filter, "")
		w.put("other", `{}`)
		_, want := w.direct("DELETE", "/shop/_doc/1?filter_path="+filter, "")
		if r.status != 404 || withoutDigits(r.body) != withoutDigits(want) {
			t.Errorf("%s: %d %s, want %s", filter, r.status, r.body, want)
		}
	}
}

// withoutDigits is what of an answer there is, whatever its numbers are.
func withoutDigits(body string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, body)
}

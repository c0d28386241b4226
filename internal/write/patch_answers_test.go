package write

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/patch"
	"optimist/internal/upstream"
)

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
		has(t, r, c.status, "refused;attempts=0")
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
		{patch.MediaOperations, "", `[{"op":"add"`, 400, "x_content_parse_exception"},
		{patch.MediaMerge, "", `{"a":`, 400, "x_content_parse_exception"},
		{patch.MediaSteps, "", ``, 400, "x_content_parse_exception"},
		{patch.MediaOperations, "", `{"op":"add"}`, 400, "parsing_exception"},
		{patch.MediaOperations, "", `[{"op":"increment","path":"/n","value":1}]`, 400, "parsing_exception"},
		{patch.MediaOperations, "", `[{"op":"add","path":"n","value":1}]`, 400, "parsing_exception"},
		{patch.MediaMerge, "", `[1]`, 400, "parsing_exception"},
		{patch.MediaMerge, "", ` null`, 400, "parsing_exception"},
		{patch.MediaMerge, "", ``, 400, "x_content_parse_exception"},
		{patch.MediaMerge, "", `a`, 400, "x_content_parse_exception"},
		{patch.MediaMerge, "", `[1`, 400, "x_content_parse_exception"},
		{patch.MediaSteps, "", `[{"op":"increment","path":"/n","value":1,"when":"true"}]`, 400, "parsing_exception"},
		{patch.MediaSteps, "", `[{"op":"no","path":"/n"}]`, 400, "parsing_exception"},
		{patch.MediaMerge, "?_source=" + strings.Repeat("a*,", 101), `{}`, 400, "illegal_argument_exception"},
		{patch.MediaMerge, "?_source_excludes=" + strings.Repeat("a*,", 101), `{}`, 400, "illegal_argument_exception"},
		{patch.MediaMerge, "?filter_path=" + strings.Repeat("**.a,-b,", 51), `{}`, 400, "illegal_argument_exception"},
		{patch.MediaMerge, "?upsert=maybe", `{}`, 400, "illegal_argument_exception"},
		{patch.MediaMerge, "?retry_on_conflict=x", `{}`, 400, "illegal_argument_exception"},
		{patch.MediaMerge, "?op_type=create", `{}`, 400, "illegal_argument_exception"},
		{patch.MediaMerge, "?version=3", `{}`, 400, "action_request_validation_exception"},
		{patch.MediaMerge, "?if_seq_no=3", `{}`, 400, "action_request_validation_exception"},
		{patch.MediaMerge, "?if_seq_no=3&if_primary_term=1&upsert=true", `{}`, 400, "action_request_validation_exception"},
		{patch.MediaMerge, "?if_seq_no=3&if_primary_term=1&retry_on_conflict=1", `{}`, 400, "action_request_validation_exception"},
		{patch.MediaMerge, "?format=yaml", `{}`, 406, "illegal_argument_exception"},
	} {
		w := newWorld(t, "")
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			t.Errorf("%v: %s %s was sent", c, r.Method, r.Target)
			return nil, nil
		}
		r := w.client("c").send("PATCH", target1+c.query, c.body, media(c.media))
		if has(t, r, c.status, "refused;attempts=0"); gjson.Get(r.body, "error.type").Str != c.kind {
			t.Errorf("%v: %s", c, r.body)
		}
	}
}

func TestAPatchShowsTheDocumentAsAnUpdateDoes(t *testing.T) {
	const source = `{"a":1,"b":{"x":[{"k":1,"l":2},{"l":3}],"y":2},"c":"z"}`
	for _, q := range []string{"_source=true", "_source", "_source=false", "_source=a,c", "_source=b.x.k", "_source=b*", "_source_includes=b.*", "_source_excludes=b.x,c",
		"_source_includes=b&_source_excludes=b.x.l", "_source_includes=a,b.x.k,d.e&_source_excludes=" + strings.Repeat("z,", 1000) + "b.y", "_source=none", "_source=true&_source_includes=a", "_source=b&_source_excludes=b"} {
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

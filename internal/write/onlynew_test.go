package write

import (
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/intake"
	"optimist/internal/patch"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// onlyNewRules are with and without a transform: an _update goes another way under one.
var onlyNewRules = map[string]string{
	"":          "",
	"transform": "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: default, path: /t, value: 1}]}\n",
}

// ask is a change that is asked for.
type ask struct {
	name, method, target, media, body string
	status                            int
	want                              string
}

func (a *ask) send(c *client, more string, fields ...wire.Field) result {
	c.w.t.Helper()
	if a.media != "" {
		fields = append(fields, media(a.media))
	}
	return c.send(a.method, a.target+more, a.body, fields...)
}

// asks are the changes that If-None-Match: * goes with, and what is stored of each where there is no document; "" is nothing.
var asks = []ask{
	{"merge patch", "PATCH", target1, patch.MediaMerge, `{"a":2}`, 404, ""},
	{"steps", "PATCH", target1, patch.MediaSteps, `[{"op":"increment","path":"/a","value":1}]`, 404, ""},
	{"patch that makes it", "PATCH", target1 + "?upsert=true", patch.MediaMerge, `{"a":2}`, 201, `{"a":2}`},
	{"patch that changes nothing", "PATCH", target1, patch.MediaMerge, `{"a":1}`, 404, ""},
	{"delete", "DELETE", target1, "", "", 404, ""},
	{"part", "POST", "/shop/_update/1", "", `{"doc":{"a":2}}`, 404, ""},
	{"part that makes it", "POST", "/shop/_update/1", "", `{"doc":{"a":2},"doc_as_upsert":true}`, 201, `{"a":2}`},
	{"part that makes it by its query", "POST", "/shop/_update/1?doc_as_upsert=true", "", `{"doc":{"a":2}}`, 201, `{"a":2}`},
	{"upsert", "POST", "/shop/_update/1", "", `{"doc":{"a":3},"upsert":{"a":2}}`, 201, `{"a":2}`},
	{"script", "POST", "/shop/_update/1", "", `{"script":"ctx._source.a++"}`, 404, ""},
	{"script with upsert", "POST", "/shop/_update/1", "", `{"script":{"source":"ctx._source.a++"},"upsert":{"a":2},"scripted_upsert":false}`, 201, `{"a":2}`},
}

func TestIfNoneMatchOfAnyDocumentChangesNone(t *testing.T) {
	for name, rules := range onlyNewRules {
		for _, a := range asks {
			t.Run(name+" "+a.name, func(t *testing.T) {
				w := newWorld(t, rules)
				w.put("1", `{"a":1}`)
				r := a.send(w.client("me"), "", noneMatch("*"))
				if r.status != 409 || !strings.Contains(r.body, "version_conflict_engine_exception") ||
					!strings.Contains(r.body, "document already exists (current version [1])") {
					t.Errorf("%v", r)
				}
				has(t, r, 409, "refused;attempts=0")
				if same(t, w.stored("1"), `{"a":1}`); w.engine.writes() != 0 {
					t.Errorf("sent %q", w.engine.sent)
				}
			})
		}
	}
}

func TestIfNoneMatchOfAnyDocumentLetsWhatFindsNone(t *testing.T) {
	for name, rules := range onlyNewRules {
		for _, a := range asks {
			t.Run(name+" "+a.name, func(t *testing.T) {
				w := newWorld(t, rules)
				w.put("0", `{}`)
				r := a.send(w.client("me"), "", noneMatch("*"))
				if r.status != a.status {
					t.Errorf("%v", r)
				}
				want := a.want
				if want != "" && name != "" {
					want = want[:len(want)-1] + `,"t":1}`
				}
				if got := w.stored("1"); want == "" && got != "" {
					t.Errorf("stored %s", got)
				} else if want != "" {
					same(t, got, want)
				}
				if a.method == "DELETE" && (gjson.Get(r.body, "result").Str != "not_found" || w.engine.writes() != 0) {
					t.Errorf("%v, sent %q", r, w.engine.sent)
				}
			})
		}
	}
}

// Whoever makes the document between the look and the write is safe: what is sent is a create.
func TestIfNoneMatchOfAnyDocumentHoldsAgainstWhoIsFaster(t *testing.T) {
	for name, rules := range onlyNewRules {
		for _, a := range asks {
			if a.want == "" {
				continue
			}
			t.Run(name+" "+a.name, func(t *testing.T) {
				w := newWorld(t, rules)
				w.put("0", `{}`)
				made := false
				w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
					if r.Method != "GET" && !made && strings.Contains(string(r.Target), "/1") {
						made = true
						w.put("1", `{"somebody":"else"}`)
					}
					return nil, nil
				}
				r := a.send(w.client("me"), "", noneMatch("*"))
				if r.status != 409 || !made || !strings.Contains(r.body, "document already exists") {
					t.Errorf("%v", r)
				}
				same(t, w.stored("1"), `{"somebody":"else"}`)
			})
		}
	}
}

func TestIfNoneMatchIsRefusedWhereItCantBeKept(t *testing.T) {
	w := newWorld(t, "")
	me := w.client("me")
	for _, a := range asks {
		for _, f := range []wire.Field{ifMatch(`"0-1"`), ifMatch("*")} {
			if r := a.send(me, "", noneMatch("*"), f); !errors.Is(r.err, intake.ErrContradiction) {
				t.Errorf("%s: what must be there and not: %v", a.name, r)
			}
		}
		sep := "?"
		if strings.Contains(a.target, "?") {
			sep = "&"
		}
		for _, guard := range []string{"if_seq_no=0&if_primary_term=1", "version=3&version_type=external"} {
			if r := a.send(me, sep+guard, noneMatch("*")); !errors.Is(r.err, intake.ErrContradiction) {
				t.Errorf("%s: a guard of what is not to be there: %v", a.name, r)
			}
		}
	}
	for _, body := range []string{
		`{"script":"ctx._source.a=1","upsert":{},"scripted_upsert":true}`, // which only the engine can run
		`{"script":"ctx._source.a=1","doc":{"a":1},"upsert":{}}`,          // which no engine takes
		`doc: {a: 1}`, ``,
	} {
		if r := me.send("POST", "/shop/_update/1", body, noneMatch("*")); r.status != 400 || !strings.Contains(r.body, "If-None-Match") {
			t.Errorf("%s: %v", body, r)
		}
	}
	if w.engine.writes() != 0 {
		t.Errorf("sent %q", w.engine.sent)
	}
}

func TestOtherValuesOfIfNoneMatchAreNobodysMatter(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: deaf, match: {index: [shop], ops: [delete]}, base: {from: [session]}}\n- {name: r, match: {index: [shop]}}\n")
	w.put("1", `{"a":1}`)
	me := w.client("me")
	has(t, me.send("PATCH", target1, `{"a":2}`, media(patch.MediaMerge), noneMatch(`"0-1"`)), 200, "guarded")
	has(t, me.send("POST", "/shop/_update/1", `{"doc":{"a":3}}`, noneMatch(`"0-1"`)), 200, "retried")
	if r := me.send("DELETE", target1, "", noneMatch("*")); r.status != 200 {
		t.Errorf("a rule that doesn't look at it: %v", r)
	}
}

func TestNothingIsDeletedOfAnIndexThatIsntThere(t *testing.T) {
	w := newWorld(t, "")
	if r := w.client("me").send("DELETE", target1, "", noneMatch("*")); r.status != 404 || !strings.Contains(r.body, "index_not_found") {
		t.Errorf("%v", r)
	}
}

package intake

import (
	"errors"
	"testing"
	"time"

	"optimist/internal/api"
	"optimist/internal/wire"
)

func TestARequestSaysWhichDocumentUnderWhichConditionsUntilWhen(t *testing.T) {
	json := wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")}
	fresh := wire.Field{Name: []byte("If-None-Match"), Value: []byte(" * ")}
	match := wire.Field{Name: []byte("If-Match"), Value: []byte(`"5-1"`)}
	now := time.Unix(1000, 0)
	type says struct {
		index, id, routing                 string
		onlyNew, pipeline, json, plain, ok bool
		within                             time.Duration
	}
	for name, c := range map[string]struct {
		method, target, body string
		fields               []wire.Field
		want                 says
	}{
		"a PUT":                      {"PUT", "/shop/_doc/1", `{}`, []wire.Field{json}, says{index: "shop", id: "1", json: true, plain: true, ok: true}},
		"encoded names":              {"PUT", "/a%2Fb/_doc/%C3%A9?routing=x%20y", `{}`, nil, says{index: "a/b", id: "é", routing: "x y", json: true, plain: true, ok: true}},
		"what isn't an object":       {"PUT", "/shop/_doc/1", `[]`, []wire.Field{json}, says{index: "shop", id: "1", plain: true, ok: true}},
		"a delete has no body":       {"DELETE", "/shop/_doc/1", ``, nil, says{index: "shop", id: "1", json: true, plain: true, ok: true}},
		"a pipeline":                 {"PUT", "/shop/_doc/1?pipeline=p", `{}`, nil, says{index: "shop", id: "1", pipeline: true, json: true, plain: true, ok: true}},
		"no pipeline":                {"PUT", "/shop/_doc/1?pipeline=_none", `{}`, nil, says{index: "shop", id: "1", json: true, plain: true, ok: true}},
		"a timeout":                  {"PUT", "/shop/_doc/1?timeout=3s", `{}`, nil, says{index: "shop", id: "1", json: true, plain: true, ok: true, within: 3 * time.Second}},
		"an answer without numbers":  {"PUT", "/shop/_doc/1?filter_path=result", `{}`, nil, says{index: "shop", id: "1", json: true, ok: true}},
		"no document":                {"PUT", "/shop/_doc/1", `{}`, []wire.Field{fresh}, says{index: "shop", id: "1", onlyNew: true, json: true, plain: true, ok: true}},
		"no document and a revision": {"PUT", "/shop/_doc/1", `{}`, []wire.Field{fresh, match}, says{}},
		"a create":                   {"PUT", "/shop/_create/1", `{}`, []wire.Field{fresh}, says{index: "shop", id: "1", json: true, plain: true, ok: true}},
		"a create of a revision":     {"PUT", "/shop/_create/1", `{}`, []wire.Field{match}, says{}},
		"a new id for a revision":    {"POST", "/shop/_doc", `{}`, []wire.Field{match}, says{}},
		"of a PUT the engine says so": {"PUT", "/shop/_doc/1?if_seq_no=1&if_primary_term=1", `{}`, []wire.Field{fresh},
			says{index: "shop", id: "1", onlyNew: true, json: true, plain: true, ok: true}},
		"of a PATCH optimist does": {"PATCH", "/shop/_doc/1?if_seq_no=1&if_primary_term=1", `{}`, []wire.Field{fresh}, says{}},
	} {
		var op api.Op
		api.Parse([]byte(c.method), []byte(c.target), &op)
		var w Terms
		err := w.Read(&op, c.fields, []byte(c.body), true, now)
		if !c.want.ok {
			if !errors.Is(err, ErrContradiction) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		got := says{index: w.Name, id: w.Doc.ID, routing: w.Doc.Routing, onlyNew: w.OnlyNew, pipeline: w.Pipeline, json: w.JSON, plain: w.Plain, ok: err == nil}
		if !w.Deadline.IsZero() {
			got.within = w.Deadline.Sub(now)
		}
		if got != c.want || w.Doc.Index != w.Name {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestAWriteThatWaitsForARefreshIsAnsweredLate(t *testing.T) {
	for query, want := range map[string]bool{"": false, "refresh=false": false, "refresh": true, "refresh=true": true, "refresh=wait_for": true} {
		var w Terms
		if err := w.readQuery([]byte(query), time.Now()); err != nil || w.Late != want {
			t.Errorf("%q: %v, %v", query, w.Late, err)
		}
	}
}

package noop

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/outbound"
	"optimist/internal/respond"
	"optimist/internal/upstream"
)

// engine gives the same answer to all, and remembers the last request.
type engine struct {
	status int
	body   string
	target string
}

func (e *engine) Do(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
	e.target = r.Method + " " + string(r.Target)
	if e.status == 0 {
		return nil, errors.New("reset")
	}
	res := &upstream.Response{Payload: []byte(e.body)}
	res.Status = e.status
	return res, nil
}

func write(kind api.Kind, query string) *Case {
	op := &api.Op{Kind: kind, Index: []byte("shop"), ID: []byte("7"), Query: []byte(query)}
	return &Case{Out: &outbound.Template{Op: op, Query: op.Query}, Search: &base.Search{Question: base.Question{
		Request: &base.Request{Op: op},
		Terms:   intake.Terms{Name: "shop", Plain: true, Doc: es.Document{Ref: doc.Ref{Index: "shop", ID: "7"}}},
	}}}
}

func TestTheEngineIsAskedForANoopOnlyInAFormOfItsOwn(t *testing.T) {
	n := doc.Numbers{SeqNo: 4, PrimaryTerm: 2}
	e := &engine{status: 200, body: `{"result":"noop"}`}
	a := Asker{delivery.Sender{Up: e}}
	if got := a.Unchanged(t.Context(), write(api.Index, "refresh=true"), n); got != nil || e.target != "" {
		t.Errorf("asked %s, got %+v", e.target, got)
	}
	got := a.Unchanged(t.Context(), write(api.Index, "refresh=true&filter_path=result"), n)
	if got == nil || string(got.Body) != e.body || e.target != "POST /shop/_update/7?if_seq_no=4&if_primary_term=2&filter_path=result" {
		t.Errorf("asked %s, got %+v", e.target, got)
	}
	if a.Unchanged(t.Context(), write(api.Index, "routing=a&x=1&refresh"), n); !strings.HasSuffix(e.target, "&x=1") {
		t.Errorf("asked %s for a parameter that only the engine may know", e.target)
	}
	e = &engine{status: 400, body: `{"status":400}`}
	if got := (Asker{delivery.Sender{Up: e}}).Unchanged(t.Context(), write(api.Index, "pretty=TRUE"), n); got == nil || got.Status != 400 {
		t.Errorf("the engine's refusal is %+v", got)
	}
	for _, status := range []int{0, 409} {
		if got := (Asker{delivery.Sender{Up: &engine{status: status}}}).Unchanged(t.Context(), write(api.Index, "pretty"), n); got != nil {
			t.Errorf("%d: got %+v, and the plain form is better", status, got)
		}
	}
}

func TestAMissingDocumentIsTheEnginesErrorWhereItGivesOne(t *testing.T) {
	for name, one := range map[string]struct {
		engine  engine
		kind    api.Kind
		noIndex bool
		kindOf  string
		engines bool
	}{
		"the engine's":    {engine{status: 404, body: `{"error":{"type":"document_missing_exception","index_uuid":"u"},"status":404}`}, api.Patch, false, "document_missing_exception", true},
		"another of its":  {engine{status: 404, body: `{"error":{"type":"index_not_found_exception","index_uuid":"u"},"status":404}`}, api.Patch, false, "document_missing_exception", false},
		"made since":      {engine{status: 200, body: `{"result":"noop"}`}, api.Update, false, "document_missing_exception", false},
		"no answer":       {engine{}, api.Update, true, "document_missing_exception", false},
		"PATCH, no index": {engine{}, api.Patch, true, "index_not_found_exception", false},
	} {
		got := Asker{delivery.Sender{Up: &one.engine}}.Missing(t.Context(), write(one.kind, ""), one.noIndex)
		e := gjson.GetBytes(got.Body, "error")
		if got.Status != 404 || e.Get("type").Str != one.kindOf || one.engines != (e.Get("index_uuid").Str == "u") {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
		if asked := strings.HasPrefix(one.engine.target, "POST /shop/_update/7"); asked == (name == "PATCH, no index") {
			t.Errorf("%s: asked %q", name, one.engine.target)
		}
	}
}

func TestAMissingDocumentIsReroutedOnlyIfTheConflictNamesAnother(t *testing.T) {
	const missing = `{"error":{"type":"document_missing_exception","reason":"[7]: document missing","index":"shop","shard":"0"},"status":404}`
	for conflict, want := range map[string]bool{
		`{"error":{"reason":"[7]: version conflict, …","index":"shop","shard":"0"}}`:   false,
		`{"error":{"reason":"[7]: version conflict, …","index":"shop"}}`:               false,
		`{"error":{"reason":"[8]: version conflict, …","index":"shop","shard":"0"}}`:   true,
		`{"error":{"reason":"[7]: version conflict, …","index":"orders","shard":"0"}}`: true,
		`{"error":{"reason":"[7]: version conflict, …","index":"shop","shard":"1"}}`:   true, // by its routing
		`{}`: false, // it can't be told
	} {
		w := write(api.Index, "")
		w.Pipeline = true
		if got := (Asker{delivery.Sender{Up: &engine{status: 404, body: missing}}}).Reroutes(t.Context(), w, doc.Numbers{},
			&respond.Answer{Body: []byte(conflict)}); got != want {
			t.Errorf("%s: %v", conflict, got)
		}
	}
}

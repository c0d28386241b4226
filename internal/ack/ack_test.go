package ack

import (
	"testing"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

func answer(status int, body []byte, fields ...wire.Field) *upstream.Response {
	res := &upstream.Response{Payload: body}
	res.Status, res.Fields = status, fields
	return res
}

func TestAnAcknowledgementIsReadWhateverItsFormAndCoding(t *testing.T) {
	const body = `{"_index":"shop","_id":"1","_version":3,"result":"updated","_seq_no":7,"_primary_term":2}`
	coded := wire.Field{Name: []byte("Content-Encoding"), Value: []byte("gzip")}
	stored := doc.Revision{Numbers: doc.Numbers{SeqNo: 7, PrimaryTerm: 2}, Version: 3}
	for name, c := range map[string]struct {
		res  *upstream.Response
		want Ack
	}{
		"updated":             {answer(200, []byte(body)), Ack{Revision: stored, Numbered: true}},
		"created":             {answer(201, []byte(body)), Ack{Revision: stored, Numbered: true, Created: true}},
		"compressed":          {answer(200, enginetest.Gzip([]byte(body)), coded), Ack{Revision: stored, Numbered: true}},
		"no gzip":             {answer(200, []byte(body), coded), Ack{}},
		"filtered":            {answer(200, []byte(`{"_version":3}`)), Ack{Revision: doc.Revision{Version: 3}}},
		"without an answer":   {answer(201, nil), Ack{Created: true}},
		"of another format":   {answer(200, []byte("---\n_seq_no: 7\n")), Ack{}},
		"one that breaks off": {answer(200, []byte(body[:60])), Ack{Revision: doc.Revision{Version: 3}}},
	} {
		if got := Read(c.res, doc.Ref{}); got.Numbers != c.want.Numbers || got.Version != c.want.Version || got.Created != c.want.Created ||
			got.Numbered != c.want.Numbered || got.Source != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnAcknowledgementOfAnotherDocumentIsOneOfNone(t *testing.T) {
	ref := doc.Ref{Index: "shop", ID: "ü/1"}
	for body, want := range map[string]bool{
		`{"_index":"shop","_id":"ü/1","_version":1}`:       false,
		`{"_index":"shop","_id":"\u00fc\/1","_version":1}`: false,
		`{"_version":1}`: false, // as the client wants it
		`{"_index":"other","_id":"ü/1","_version":1}`:                     true,
		`{"_index":"shop","_id":"2","_version":1}`:                        true,
		`{"_index":"shop","_id":"ü/1","_version":-3,"result":"noop"}`:     true, // an ingest pipeline has dropped it
		`{"_index":"shop","_id":"ü/1","_version":1,"result":"noop"}`:      false,
		`{"_index":"shop","_id":"ü/1","_version":1,"result":"not_found"}`: false,
	} {
		if got := Read(answer(200, []byte(body)), ref).Missed; got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
	if Read(answer(200, []byte(`{"_index":"shop-2","_id":"1"}`)), doc.Ref{ID: "1"}).Missed {
		t.Error("where the index isn't known, any is the document's")
	}
	if Read(answer(200, []byte("{\"_id\":\"\ufffd\"}")), doc.Ref{ID: "\xff"}).Missed {
		t.Error("the engine shows an id that isn't text with another character in it")
	}
}

// Something between optimist and the engine may answer a write with a success, and send nothing on.
func TestASuccessIsAnAcknowledgementIfTheEngineSaysWhatItWrote(t *testing.T) {
	const written, page = `{"_index":"shop","_id":"1","_version":3,"result":"updated"}`, "<html>please log in</html>"
	field := func(name, value string) wire.Field { return wire.Field{Name: []byte(name), Value: []byte(value)} }
	for name, c := range map[string]struct {
		query, body string
		fields      []wire.Field
		want        bool
	}{
		"the engine's":                      {"", written, nil, true},
		"a page":                            {"", page, nil, false},
		"nothing":                           {"", "", nil, false},
		"an object of somebody else":        {"", `{"ok":true}`, nil, false},
		"the answer to a read":              {"", `{"_index":"shop","_id":"1","_version":3,"_seq_no":2,"found":true,"_source":{}}`, nil, false},
		"filtered":                          {"?filter_path=_seq_no", `{}`, nil, true},
		"a page in place of a filtered one": {"?refresh&filter_path=result", page, nil, false},
		"in the client's format":            {"?format=yaml", "---\n_id: 1\n", nil, true},
		"in what the client accepts":        {"", "---\n_id: 1\n", []wire.Field{field("Accept", "application/yaml")}, true},
		"in the format of the body":         {"", "\xbf", []wire.Field{field("Content-Type", "application/cbor")}, true},
		"in JSON, as the body":              {"", page, []wire.Field{field("Content-Type", "application/json"), field("Accept", "*/*")}, false},
	} {
		if got := Is(answer(200, []byte(c.body)), &upstream.Request{Target: []byte("/shop/_doc/1" + c.query), Fields: c.fields}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	coded := wire.Field{Name: []byte("Content-Encoding"), Value: []byte("gzip")}
	for body, want := range map[string]bool{written: true, page: false} {
		if got := Is(answer(200, enginetest.Gzip([]byte(body)), coded), &upstream.Request{}); got != want {
			t.Errorf("%s, compressed: %t", body, got)
		}
	}
}

func TestTheDocumentIsShownOnlyIfItIsThere(t *testing.T) {
	for body, want := range map[string]string{
		`{"get":{"_seq_no":1,"found":true,"_source":{"a":1}}}`: `{"a":1}`,
		`{"get":{"_source":5}}`:                                "",
		`{"result":"noop"}`:                                    "",
		``:                                                     "",
	} {
		if got := Shown(answer(200, []byte(body))); string(got) != want {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// What an engine, or a balancer before it, compresses is read as if it came plain.
func TestARefusalIsReadWhateverItsFormAndCoding(t *testing.T) {
	const json = `{"error":{"root_cause":[{"type":"other","reason":"no"}],"type":"cluster_block_exception","reason":"index [shop] blocked",` +
		`"index":"shop","shard":"2"},"status":403}`
	const text = "---\nerror:\n  root_cause:\n  - type: \"other\"\n    reason: \"no\"\n  type: \"cluster_block_exception\"\n" +
		"  reason: \"index [shop] blocked\"\n  index: \"shop\"\n  shard: \"2\"\nstatus: 403\n"
	coded := wire.Field{Name: []byte("Content-Encoding"), Value: []byte("gzip")}
	form := wire.Field{Name: []byte("Content-Type"), Value: []byte("application/yaml")}
	want := Refusal{Type: "cluster_block_exception", Reason: "index [shop] blocked", Index: "shop", Shard: "2"}
	for name, c := range map[string]struct {
		res  *upstream.Response
		want Refusal
	}{
		"JSON":             {answer(403, []byte(json)), want},
		"compressed":       {answer(403, enginetest.Gzip([]byte(json)), coded), want},
		"YAML":             {answer(403, []byte(text), form), want},
		"compressed YAML":  {answer(403, enginetest.Gzip([]byte(text)), form, coded), want},
		"no gzip":          {answer(403, []byte(json), coded), Refusal{}},
		"a text":           {answer(403, []byte(`{"error":"no","status":403}`)), Refusal{}},
		"a text, in YAML":  {answer(403, []byte("---\nerror: \"no\"\n"), form), Refusal{}},
		"no YAML":          {answer(403, []byte("\t: ["), form), Refusal{}},
		"nothing":          {answer(403, nil), Refusal{}},
		"nothing, in YAML": {answer(403, nil, form), Refusal{}},
	} {
		if got := Why(c.res.Fields, c.res.Payload); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	missing, numbers := enginetest.Gzip([]byte(`{"error":{"type":"document_missing_exception"}}`)), enginetest.Gzip([]byte(`{"error":{"reason":"disable_sequence_numbers"}}`))
	if !SaysMissing(answer(404, missing, coded)) || !RefusesGuard(answer(400, numbers, coded)) {
		t.Error("a compressed refusal isn't read")
	}
}

// TestAConflictNamesItsDocument: the reasons are those of the engines. In a time series, the dimensions and the time follow the id.
func TestAConflictNamesItsDocument(t *testing.T) {
	const conflict = "version_conflict_engine_exception"
	for _, c := range []struct {
		kind, reason, id string
		want             bool
	}{
		{conflict, "[1]: version conflict, required seqNo [2], primary term [1]. but no document was found", "1", true},
		{conflict, "[1]: version conflict, document already exists (current version [2])", "2", false},
		{conflict, "[12]: version conflict, document already exists (current version [1])", "1", false},
		{conflict, "[a]: b]: version conflict, document already exists (current version [1])", "a]: b", true},
		{conflict, "[XZ][{k8s.pod.uid=9}@2026-11-30T00:00:00.000Z]: version conflict, document already exists (current version [1])", "XZ", true},
		{conflict, "[\ufffd]: version conflict, document already exists (current version [1])", "\xff", true},
		{conflict, "[XZ]: version conflict, document already exists (current version [1])", "", true},
		{conflict, "", "1", true},
		{"another_exception", "[2]: version conflict", "1", true},
		{"", "", "1", true},
	} {
		if got := (&Refusal{Type: c.kind, Reason: c.reason}).IsOf(c.id); got != c.want {
			t.Errorf("%s: %s, of %q: %v", c.kind, c.reason, c.id, got)
		}
	}
}

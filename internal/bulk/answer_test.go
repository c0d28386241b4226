package bulk

import (
	"encoding/json"
	"testing"
	"time"
)

// readResult reads an element of an answer.
func readResult(element string) (Result, bool) {
	var s Summary
	of := s.read([]byte(`{"took":1,"items":[` + element + `]}`))
	res, said, ok := of.next(false)
	if ok {
		res.alone(&said)
	}
	return res, ok
}

// The engine's answer for an item becomes that to a request for it alone, and back.
func TestAnswersOfItemsAreThoseOfRequestsAndBack(t *testing.T) {
	it := Item{Verb: "index", Index: "shop", ID: "1"}
	for element, alone := range map[string]string{
		`{"index":{"_index":"shop","_id":"1","_version":2,"result":"updated","_seq_no":1,"_primary_term":1,"status":200}}`: `{"_index":"shop","_id":"1","_version":2,"result":"updated","_seq_no":1,"_primary_term":1}`,
		`{"index":{"_index":"shop","_id":"1","status":409,"error":{"type":"x","reason":"y"}}}`:                             `{"error":{"root_cause":[{"type":"x","reason":"y"}],"type":"x","reason":"y"},"status":409}`,
		`{"index":{"_index":"shop","_id":"1","status":500,"error":{}}}`:                                                    `{"error":{"root_cause":[{}]},"status":500}`,
		`{"update":{"_index":"store","_id":null,"status":400,"error":{}}}`:                                                 `{"error":{"root_cause":[{}]},"status":400}`, // of another action
	} {
		res, ok := readResult(element)
		if !ok || string(res.Body) != alone || !json.Valid(res.Body) {
			t.Errorf("%s: %s", element, res.Body)
		}
		it.place, it.action = res.place, res.action
		if got, failed := it.AppendItem(nil, res); string(got) != element || failed != (res.Status > 299) {
			t.Errorf("%s became %s", element, got)
		}
	}
}

// An error of optimist's own names the document as the engine would.
func TestAnErrorNamesTheTypeWhereTheEngineHasTypes(t *testing.T) {
	const failure = `"status":404,"error":{"type":"x"}}}`
	for _, c := range []struct {
		of   Defaults
		want string
	}{
		{Defaults{Index: "shop"}, `{"update":{"_index":"shop","_id":"1",` + failure},
		{Defaults{Index: "shop", Types: true}, `{"update":{"_index":"shop","_type":"_doc","_id":"1",` + failure},
		{Defaults{Index: "shop", Types: true, Type: "t"}, `{"update":{"_index":"shop","_type":"t","_id":"1",` + failure},
	} {
		it, ok, err := NewReader([]byte(`{"update":{"_id":"1"}}`+"\n"+`{"doc":{}}`+"\n"), c.of).Next()
		if !ok || err != nil {
			t.Fatal(err)
		}
		got, _ := it.AppendItem(nil, Result{Status: 404, Body: []byte(`{"error":{"type":"x"},"status":404}`)})
		if string(got) != c.want {
			t.Errorf("%+v: %s", c.of, got)
		}
	}
}

func TestTheStatusIsTakenOutWhereverItStands(t *testing.T) {
	for element, want := range map[string]string{
		`{"index":{"status":201,"_id":"1"}}`: `{"_id":"1"}`, `{"index":{"_id":"1","status":201}}`: `{"_id":"1"}`, `{"index":{"status":201}}`: `{}`,
		`{"index":{"a":1,"status":201,"b":2}}`: `{"a":1,"b":2}`,
	} {
		if res, ok := readResult(element); !ok || string(res.Body) != want || res.Status != 201 {
			t.Errorf("%s: %s", element, res.Body)
		}
	}
	for _, element := range []string{``, `{}`, `7`, `{"index":{"status":200}`, `{"index":{"status":200},"b":1}`, `[]`, `{"index":1}`, `{"index":{}}`, `{"index":{"status":"x"}}`, `{"index":{"_id":"1"}}`} {
		if res, ok := readResult(element); ok {
			t.Errorf("%s: %+v", element, res)
		}
	}
}

// What isn't the engine's answer, of a balancer say, is an error of each item.
func TestAnswersThatArentTheEnginesAreErrorsOfTheItems(t *testing.T) {
	it := Item{Verb: "create", Index: "shop"}
	for _, body := range []string{"", "<html>\"", "[]", `{"error":"gone"}`, `{"error":null}`, `null`} {
		got, failed := it.AppendItem(nil, Result{Status: 502, Body: []byte(body)})
		var item map[string]struct {
			Status int
			Error  map[string]any
		}
		if err := json.Unmarshal(got, &item); err != nil || !failed || item["create"].Status != 502 || item["create"].Error["type"] == nil {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}

func TestASummaryIsWrittenAsTheEngineDoes(t *testing.T) {
	for want, s := range map[string]Summary{
		`{"errors":true,"took":12,"items":[`:                 {Took: 12 * time.Millisecond, Failed: true, Ingest: -1},
		`{"took":0,"ingest_took":3,"errors":false,"items":[`: {TookFirst: true, Ingest: 3},
	} {
		if got := s.Append(nil); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

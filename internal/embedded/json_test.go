package embedded

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNumbersAreWrittenAnewAsJavaDoes(t *testing.T) {
	for in, want := range map[string]string{
		"1": "1", "-0": "0", "0": "0", "12345678901234567890123": "12345678901234567890123",
		"1.0": "1.0", "1.10": "1.1", "-0.0": "-0.0", "1e3": "1000.0", "1E7": "1.0E7", "12345678.9": "1.23456789E7", "9999999.5": "9999999.5",
		"0.001": "0.001", "0.0001": "1.0E-4", "1.5e-10": "1.5E-10", "1e400": `"Infinity"`, "-1e400": `"-Infinity"`, "0.1234567890123456789": "0.12345678901234568",
	} {
		n, _, err := parseJSON([]byte(in))
		if err != nil {
			t.Fatal(in, err)
		}
		if got := string(appendScalar(nil, n)); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)) }
	if _, _, err := parseJSON(deep(limits.Depth)); err != nil {
		t.Error(err)
	}
	if _, _, err := parseJSON(deep(limits.Depth + 1)); err == nil {
		t.Error("deeper than the limit")
	}
}

// FuzzParse holds the parser to encoding/json, which it is stricter than in three things: members that stand twice, depth, and
// text that isn't UTF-8.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,"\u00e9\ud83c\udf4f\/"],"b":null}`, `[]`, `{"a":1,"a":2}`, `01`, `"\x"`, "\"\x01\"", ` {} x`, `tru`, `1.`, `-`, ``, "\"\xf1\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, rest, err := parseJSON(b)
		valid := json.Valid(b)
		strict := err != nil && (strings.Contains(err.Error(), "Duplicate field") || strings.Contains(err.Error(), "nesting depth") ||
			strings.Contains(err.Error(), "Invalid UTF-8") && !utf8.Valid(b))
		if got := err == nil && len(rest) == 0; got != valid && !strict {
			t.Fatalf("%q: parsed %t, valid %t: %v", b, got, valid, err)
		}
		if err != nil || len(rest) > 0 {
			return
		}
		if !utf8.Valid(b) {
			t.Fatalf("%q isn't UTF-8, and is taken", b)
		}
		if !json.Valid(compact(n)) || !json.Valid(appendValue(nil, n, "\n")) {
			t.Fatalf("%q is not valid any more when written", b)
		}
	})
}

// FuzzHandle looks for requests that the engine can't stand.
func FuzzHandle(f *testing.F) {
	f.Add("PUT", "/i/_doc/1?if_seq_no=1&if_primary_term=1", []byte(`{"a":1}`))
	f.Add("POST", "/_bulk?refresh", []byte("{\"index\":{\"_index\":\"i\"}}\n{}\n{\"delete\":{\"_index\":\"i\",\"_id\":\"x\"}}\n"))
	f.Add("GET", "/i/_search?sort=a:desc&filter_path=-**.a", []byte(`{"query":{"bool":{"must":[{"range":{"a":{"gte":"now-1d/d"}}}]}},"sort":[{"a":"asc"}]}`))
	f.Add("POST", "/i/_update/1?pretty", []byte(`{"doc":{"a":{"b":[]}},"doc_as_upsert":true}`))
	f.Add("PUT", "/%3Ci-%7Bnow%2Fd%7D%3E", []byte(`{"settings":{"index":{"a.b":1}},"mappings":{"properties":{"a":{"type":"long"}}},"aliases":{"x":{}}}`))
	f.Add("POST", "/_aliases", []byte(`{"actions":[{"add":{"index":"i*","alias":"a"}}]}`))
	f.Add("POST", "/_mget", []byte(`{"docs":[{"_index":"i","_id":"1","_source":{"includes":["a"]}}]}`))
	f.Add("POST", "/i/_delete_by_query", []byte(`{"query":{"terms":{"_id":["1"]}}}`))
	f.Fuzz(func(t *testing.T, method, target string, body []byte) {
		e := New(Options{})
		e.Handle(&Request{Method: "PUT", Target: "/i/_doc/1", ContentType: "application/json", Body: []byte(`{"a":1,"b":{"c":"x"}}`)})
		r := e.Handle(&Request{Method: method, Target: target, ContentType: "application/json", Body: body})
		if r.Status < 200 || r.Status > 599 {
			t.Fatal(r.Status)
		}
		plain := utf8.ValidString(target) && utf8.Valid(body) && !strings.Contains(target, "%")
		if strings.Contains(r.ContentType, "json") && len(r.Body) > 0 && plain && !json.Valid(bytes.TrimSpace(r.Body)) {
			t.Fatalf("%s %s %s: %s", method, target, body, r.Body)
		}
	})
}

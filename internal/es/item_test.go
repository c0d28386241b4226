package es

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
)

func TestItemIsReadWhateverItsOrderAndSpaces(t *testing.T) {
	it := ParseItem([]byte("{ \"_source\" : {\"_seq_no\":1,\"a\":\"}\\\"\",\"b\":[{},[1]]} ,\n\t\"_index\":\"shop\",\"_version\": 7, \"found\":true,\"x\":null," +
		"\"_primary_term\":2 , \"_seq_no\":9223372036854775807 }\n"))
	if !it.Numbered || it.SeqNo != 9223372036854775807 || it.PrimaryTerm != 2 || it.Version != 7 || !it.Found || it.Missing || string(it.Index) != "shop" ||
		string(it.Source) != `{"_seq_no":1,"a":"}\"","b":[{},[1]]}` {
		t.Errorf("%+v %s", it, it.Source)
	}
	it = ParseItem([]byte(`{"_index":"shop","result":"created","found":false,"_seq_no":"1","_primary_term":1.5}`))
	if it.Numbered || it.Found || !it.Missing || string(it.Result) != "created" || it.Source != nil {
		t.Errorf("%+v", it)
	}
}

func TestItemThatBreaksOffIsNoItem(t *testing.T) {
	whole := `{"_index":"shop","_source":{"a":[1,"x"]},"_seq_no":12,"_primary_term":1}`
	for n := range len(whole) - 1 {
		it := ParseItem([]byte(whole[:n]))
		if it.Source != nil && !gjson.ValidBytes(it.Source) {
			t.Errorf("%s: %s", whole[:n], it.Source)
		}
	}
	for _, body := range []string{"", "[]", "null", `"a"`, "{", "{}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"_source":{"a":1]}`, `{,}`, `{"_source":"\`} {
		if it := ParseItem([]byte(body)); it.Numbered {
			t.Errorf("%s: %+v", body, it)
		}
	}
}

// FuzzItem compares with a parser that knows all of JSON.
func FuzzItem(f *testing.F) {
	f.Add(`{"_seq_no":1,"_primary_term":2,"_version":3,"_source":{"a":"\\\"","b":[1,{"c":null}]},"found":true}`)
	f.Add(`{"_index":"i","_seq_no" : -1 , "_source" : [ ] }`)
	f.Fuzz(func(t *testing.T, body string) {
		it := ParseItem([]byte(body)) // whatever it is, it must not panic
		if !gjson.Valid(body) || strings.Count(body, "_source") > 1 || strings.Contains(body, "\\u") {
			return
		}
		want := gjson.Get(body, "_source")
		if !gjson.Parse(body).IsObject() || !want.IsObject() {
			want.Raw = ""
		}
		if string(it.Source) != want.Raw {
			t.Errorf("%s: %s, not %s", body, it.Source, want.Raw)
		}
	})
}

func BenchmarkItem(b *testing.B) {
	body := []byte(`{"_index":"shop","_id":"1","_version":7,"_seq_no":6,"_primary_term":1,"found":true,"_source":{"name":"` +
		strings.Repeat("tea ", 200) + `","stock":10,"tags":["a","b"]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if it := ParseItem(body); !it.Numbered {
			b.Fatal(it)
		}
	}
}

func TestElementsAreThoseOfTheArrayAlone(t *testing.T) {
	for body, want := range map[string]string{
		`{"took":1,"hits":{"total":{"hits":[9]},"hits":[{"_id":"]"}, 2 ,[3]],"max":1}}`: `{"_id":"]"}|2|[3]|`,
		`{"hits":{"hits":[]}}`: "", `{"hits":[1]}`: "", `{"a":1}`: "", ``: "", `{"hits":{"hits":[1,2`: "", `{"hits":{"hits":[1,,2]}}`: "1|",
	} {
		got := ""
		for e := range Elements([]byte(body), "hits", "hits") {
			got += string(e) + "|"
		}
		if got != want {
			t.Errorf("%s: %s", body, got)
		}
	}
	it := ParseItem([]byte(`{"_id":"a\"\u00e9","_routing":"r"}`))
	if it.ID() != `a"é` || it.Routing() != "r" {
		t.Errorf("%q %q", it.ID(), it.Routing())
	}
}

// Results is Elements and ParseItem in one pass.
func TestResultsAreReadInOnePass(t *testing.T) {
	for answer, want := range map[string]string{
		`{"took":1,"errors":false,"items":[]}`:                                        ``,
		`{"took":1,"items":{"index":{}}}`:                                             ``,
		`{"error":{"items":[{"index":{"_id":"1"}}]},"status":400}`:                    ``,
		`{"items":[{"index":{"_id":"1"}},{"delete":{"_id":"2"}}]}`:                    `index 1;delete 2;`,
		`{"a":[{"index":{"_id":"1"}}]}`:                                               ``,
		"{\n\"items\":[\t{ \"index\" : {} } ,{\"create\":{\"_id\":\"\\\"]}\"} } ]\r}": `index ;create "]};`,
		`{"a":[{"index":{"_id":"0"}}],"items":[{"index":{"_id":"1"}}]}`:               `index 1;`,
		`{"items":[{"index":{"_id":"1"}},{"delete":{"_id":"2"`:                        `index 1;`,
		`{"items":[{"index":{"_id":"1"}},7,{"delete":{"_id":"2"}}]}`:                  `index 1;`,
		`{"items":[{"index":{"_id":"1"},"b":2},{"delete":{"_id":"2"}}]}`:              ``,
		`{"items"`: ``, `{"items":`: ``, `{"items":[`: ``, `{"items":[{`: ``, `{"items":[{"index":`: ``, `[`: ``, ``: ``,
	} {
		got := ""
		for verb, it := range Results([]byte(answer)) {
			got += string(verb) + " " + it.ID() + ";"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"took":1,"items":[{"index":{"_index":"a","_id":"1","_version":3,"result":"created"}},{"update":{"error":{"type":"x"}}}]}`))
	f.Add([]byte(`{"items":[{"delete":{"_id":"1"}} , {"index":{}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if !jsontext.Valid(answer) {
			for range Results(answer) { // it ends, and doesn't panic
			}
			return
		}
		var want []Item
		for element := range Elements(answer, "items") {
			s := jsontext.Scan(element)
			if !s.IsObject() || !s.Next() || s.Comma >= 0 || s.Text()[0] != '{' {
				break
			}
			want = append(want, ParseItem(s.Text()))
		}
		k := 0
		for _, it := range Results(answer) {
			if k == len(want) || !reflect.DeepEqual(it, want[k]) {
				t.Fatalf("%s: item %d is %+v", answer, k, it)
			}
			k++
		}
		if k != len(want) {
			t.Fatalf("%s: %d items, want %d", answer, k, len(want))
		}
	})
}

func TestAnAcknowledgementSaysWhichIndexAndWhatWasDone(t *testing.T) {
	for body, want := range map[string]bool{
		`{"_index":"i","_id":"1","_version":2,"result":"updated","_seq_no":1}`: true,
		"\t{ \"result\" : \"noop\", \"_index\" : \"i\" }\n":                    true,
		`{"_index":"i","result":"updated","_shards":{"total":`:                 true, // it is read no further than that
		`{"_index":"i","_id":"1","found":true}`:                                false,
		`{"_index":"","result":"updated"}`:                                     false,
		`{"_index":"i","result":""}`:                                           false,
		`{"_index":"i","get":{"result":"updated"}}`:                            false,
		`["_index","result"]`:                                                  false,
		`{"_index":"i","res`:                                                   false,
		``:                                                                     false,
	} {
		if got := IsResult([]byte(body)); got != want {
			t.Errorf("%s: %t", body, got)
		}
	}
}

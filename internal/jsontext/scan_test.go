package jsontext

import (
	"encoding/json"
	"testing"
)

func scanned(text string) (parts []string, whole bool) {
	s := Scan([]byte(text))
	for s.Next() {
		parts = append(parts, text[s.Key:s.KeyEnd]+string(s.Text()))
		if s.Comma >= 0 && text[s.Comma] != ',' {
			parts = append(parts, "no comma at all")
		}
	}
	return parts, s.Whole()
}

func TestMembersAndElementsAreFoundWhereTheyStand(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `[]`, ` [ ] `: `[]`, `{"a":1}`: `["\"a\"1"]`, " { \"a\" :\t1 , \"b\\\"\":\"}\" } ": `["\"a\"1","\"b\\\"\"\"}\""]`,
		`[1, {"a":[2]},"]"]`: `["1","{\"a\":[2]}","\"]\""]`, `{"a":{"b":"}"},"a":[]}`: `["\"a\"{\"b\":\"}\"}","\"a\"[]"]`,
	} {
		parts, whole := scanned(text)
		if parts == nil {
			parts = []string{}
		}
		if got, _ := json.Marshal(parts); string(got) != want || !whole {
			t.Errorf("%s: %s, %v", text, got, whole)
		}
	}
}

func TestWhatBreaksOffIsReadAsFarAsItIsSure(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `1`: 0, `"{}"`: 0, `{`: 0, `{"a"`: 0, `{"a":`: 0, `{"a":1`: 0, `{"a":"1"`: 1, `{"a":[1]`: 1, `{"a":1,`: 1, `{"a":1,}`: 1, `{"a":1}x`: 1, `{"a":1]`: 1,
		`{a:1}`: 0, `{"a" 1}`: 0, `[1`: 0, `[1,`: 1, `[1,]`: 1, `[,1]`: 0, `["a`: 0, `[1}`: 1, `{"a":1 "b":2}`: 1, `[] []`: 0,
	} {
		if parts, whole := scanned(text); len(parts) != want || whole {
			t.Errorf("%s: %q, %v", text, parts, whole)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range []string{`{"a":1,"b":[{"c":"\\\""}]}`, `[1,"]",{}]`, `{"a":1,}`, ` { } `, `{"\u0061":"x\\"}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		parts, whole := scanned(string(text))
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch isObject := json.Unmarshal(text, &object) == nil && object != nil; {
		case !isObject && (json.Unmarshal(text, &array) != nil || array == nil):
		case !whole || isObject && len(parts) < len(object) || !isObject && len(parts) != len(array):
			t.Fatalf("%q: %q, %v", text, parts, whole)
		}
	})
}

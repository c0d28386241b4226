package rewrite

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The cases of RFC 7396, appendix A, and what it says nothing of: bytes.
func TestMergePatch(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		// The document of section 3.
		{`{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}`,
			`{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}`,
			`{"title":"Hello!","author":{"givenName":"John"},"tags":["example"],"content":"This will be unchanged","phoneNumber":"+01-123-456-7890"}`},
		// What isn't named keeps its bytes, and what is set is spelled as in the patch.
		{` { "a" : 1.0 , "b" : { "c" : 1e1 , "d":2 } } `, `{"b":{"d": 3.00 ,"e":{ }}}`, ` { "a" : 1.0 , "b" : { "c" : 1e1 , "d":3.00,"e":{ } } } `},
		{`{"a":1}`, `{}`, `{"a":1}`},
		{`{"a":1}`, `{"b":null}`, `{"a":1}`},
		{`{"n":9007199254740993}`, `{"m":9007199254740993.0}`, `{"n":9007199254740993,"m":9007199254740993.0}`},
		{`{"a":{"x":1}}`, `{"a":{"y":[{"z":null}]}}`, `{"a":{"x":1,"y":[{"z":null}]}}`},
		{`{}`, `{"a":[{"z":null}],"b":null,"c":{ "d" : null , "e" : {"f":null,"g":1}}}`, `{"a":[{"z":null}],"c":{ "e" : {"g":1}}}`},
		// Duplicate keys: the last is meant, and a removal takes all.
		{`{"a":1,"a":2}`, `{"a":3}`, `{"a":1,"a":3}`},
		{`{"a":1,"b":0,"a":2}`, `{"a":null}`, `{"b":0}`},
		{`{}`, `{"a":1,"a":null}`, `{}`},
		{`{}`, `{"a":null,"a":1}`, `{"a":1}`},
		{`{}`, `{"o":{"a":1,"a":null,"b":1}}`, `{"o":{"b":1}}`},
		// Keys by their content.
		{`{"\u0061":{"b":1}}`, `{"a":{"\u0062":2}}`, `{"\u0061":{"b":2}}`},
	} {
		got, err := MergePatch([]byte(c[0]), []byte(c[1]), Limits{})
		if err != nil || string(got) != c[2] {
			t.Errorf("%s with %s: %v\n got %s\nwant %s", c[0], c[1], err, got, c[2])
		}
	}
}

// mergePatchModel is the pseudo code of RFC 7396, section 2.
func mergePatchModel(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := map[string]any{}
	if o, ok := target.(map[string]any); ok {
		for k, v := range o {
			merged[k] = v
		}
	}
	for k, v := range p {
		if v == nil {
			delete(merged, k)
			continue
		}
		merged[k] = mergePatchModel(merged[k], v)
	}
	return merged
}

func TestMergePatchIsWhatTheRFCsModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := write(t, any(genObject(3).Draw(t, "doc")))
		patch := write(t, genValue(3).Draw(t, "patch"))
		if rapid.Bool().Draw(t, "of the same object") {
			_, patch, doc = genDocs(t)
		}
		got, err := MergePatch(doc, patch, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if want := mergePatchModel(decode(t, doc), decode(t, patch)); !alike(decode(t, got), want) {
			t.Fatalf("%s with %s became %s", doc, patch, got)
		}
		again, err := MergePatch(got, patch, Limits{})
		if err != nil || string(again) != string(got) {
			t.Fatalf("%s with %s became %s, and then %s (%v)", doc, patch, got, again, err)
		}
	})
}

func TestMergePatchIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		doc, patch string
		limits     Limits
		want       error
	}{
		"document too deep": {nested(101), `{}`, Limits{}, ErrTooDeep},
		"patch too deep":    {`{}`, nested(101), Limits{}, ErrTooDeep},
		"result too large":  {`{"a":"` + strings.Repeat("x", 60) + `"}`, `{"b":"` + strings.Repeat("x", 60) + `"}`, Limits{Bytes: 100}, ErrTooLarge},
		"many values":       {`{}`, `[1,2,3]`, Limits{Values: 3}, ErrTooLarge},
	} {
		if _, err := MergePatch([]byte(c.doc), []byte(c.patch), c.limits); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var syntax *SyntaxError
	if _, err := MergePatch([]byte(`{`), []byte(`{}`), Limits{}); !errors.As(err, &syntax) {
		t.Error(err)
	}
	if _, err := MergePatch([]byte(`{}`), nil, Limits{}); !errors.As(err, &syntax) {
		t.Error(err)
	}
}

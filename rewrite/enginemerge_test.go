package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/rewrite/edit"
)

func TestAPartIsMergedAsTheEngineMergesIt(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		{`{"a":{"b":1,"c":2}}`, `{"a":{"b":3}}`, `{"a":{"b":3,"c":2}}`},
		{`{"a":1}`, `{"a":null}`, `{"a":null}`},
		{`{}`, `{"a":{"b":null}}`, `{"a":{"b":null}}`},
		{`{"a":[1,2]}`, `{"a":[2]}`, `{"a":[2]}`},
		{`{"a":{"b":1}}`, `{"a":[]}`, `{"a":[]}`},
		{`{"a":null}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		{`{"a.b":1}`, `{"a":{"b":2}}`, `{"a.b":1,"a":{"b":2}}`},
		// What stays the same keeps its bytes beside what changes.
		{` { "x" : 1.0, "o" : {"a":[ 1 ]} , "y":1} `, `{"x":1.00,"o":{"a":[1]},"y":2}`, ` { "x" : 1.0, "o" : {"a":[ 1 ]} , "y":2} `},
		// Numbers are what Java makes of them.
		{`{"a":1}`, `{"a":1.0}`, `{"a":1.0}`},
		{`{"a":-0}`, `{"a":0}`, ""},
		{`{"a":-0.0}`, `{"a":0.0}`, `{"a":0.0}`},
		{`{"a":10e-1}`, `{"a":1.0}`, ""},
		{`{"a":0.1}`, `{"a":0.10000000000000000001}`, ""},
		{`{"a":1e400}`, `{"a":2e400}`, ""},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, `{"a":9007199254740992}`},
		{`{"a":[1.0,{"b":2.50}]}`, `{"a":[1.00,{"b":2.5}]}`, ""},
		{`{"a":{"b":[{"c":1,"d":2}]}}`, `{"a":{"b":[{"d":2,"c":1}]}}`, ""},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, `{"a":[2,1]}`},
		// Keys and strings by their content, and as they are spelled where they are new.
		{`{"\u0061":"\u00e9"}`, `{"a":"é"}`, ""},
		{`{"a/b":1,"m~n":1}`, `{"a\/b":2,"m~n":3}`, `{"a/b":2,"m~n":3}`},
		{`{"\ud800":1}`, `{"\udc00":2}`, `{"\ud800":1,"\udc00":2}`},
		{`{"a":1,"a":2}`, `{"a":2}`, ""},
		{`{"a":1}`, `{}`, ""},
	} {
		want := c[2]
		if want == "" {
			want = c[0] // a noop
		}
		doc := []byte(c[0])
		got, err := edit.EngineMerge(doc, []byte(c[1]), Limits{})
		if err != nil || string(got) != want || (&got[0] == &doc[0]) != (c[2] == "") {
			t.Errorf("%s with %s: %v\n got %s\nwant %s", c[0], c[1], err, got, want)
		}
	}
}

func TestAPartThatIsNoObjectIsRefused(t *testing.T) {
	for _, c := range [][2]string{{`[]`, `{}`}, {`{}`, `[]`}, {`{}`, `null`}} {
		if got, err := edit.EngineMerge([]byte(c[0]), []byte(c[1]), Limits{}); !errors.Is(err, ErrNotObject) {
			t.Errorf("%s with %s: %s, %v", c[0], c[1], got, err)
		}
	}
	var syntax *SyntaxError
	if _, err := edit.EngineMerge([]byte(`{}`), []byte(`{"a"}`), Limits{}); !errors.As(err, &syntax) {
		t.Error(err)
	}
	if _, err := edit.EngineMerge([]byte(`{}`), []byte(nested(DefaultDepth+1)), Limits{}); !errors.Is(err, ErrTooDeep) {
		t.Error(err)
	}
}

// javaOf writes a value as Java's maps, lists and numbers have it, so that two are equal there if their texts are.
func javaOf(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var list []string
		for k, e := range v {
			list = append(list, strconv.Quote(k)+":"+javaOf(e))
		}
		return "{" + strings.Join(sorted(list), ",") + "}"
	case []any:
		var list []string
		for _, e := range v {
			list = append(list, javaOf(e))
		}
		return "[" + strings.Join(list, ",") + "]"
	case fmt.Stringer: // a number as it was spelled
		s := v.String()
		if strings.ContainsAny(s, ".eE") {
			f, _ := strconv.ParseFloat(s, 64)
			return fmt.Sprintf("double %x", math.Float64bits(f))
		}
		return "int " + strings.ReplaceAll(s, "-0", "0")
	}
	return fmt.Sprintf("%T %v", v, v)
}

// engineModel is the engine's own loop, and whether it finds a change.
func engineModel(doc, part map[string]any) (changed bool) {
	for k, v := range part {
		old, there := doc[k]
		o, ok1 := old.(map[string]any)
		p, ok2 := v.(map[string]any)
		switch {
		case there && ok1 && ok2:
			changed = engineModel(o, p) || changed
			continue
		case !there || javaOf(old) != javaOf(v):
			changed = true
		}
		doc[k] = v
	}
	return changed
}

func TestPartsAreMergedAsTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, part, other := genDocs(t)
		if rapid.Bool().Draw(t, "of the same document") {
			doc = other
		}
		before := bytes.Clone(doc)
		got, err := edit.EngineMerge(doc, part, Limits{})
		if err != nil || !bytes.Equal(doc, before) {
			t.Fatalf("%v, %s", err, doc)
		}
		want, _ := spelled(t, doc).(map[string]any)
		change, _ := spelled(t, part).(map[string]any)
		changed := engineModel(want, change)
		if javaOf(spelled(t, got)) != javaOf(want) || changed == (&got[0] == &doc[0]) {
			t.Fatalf("%s with %s\n got %s\nwant %v, changed %v", doc, part, got, want, changed)
		}
		if again, err := edit.EngineMerge(got, part, Limits{}); err != nil || &again[0] != &got[0] {
			t.Fatalf("%s with %s became %s, and then %s", doc, part, got, again)
		}
	})
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

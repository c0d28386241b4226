package glob

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"optimist/internal/jsontext"
)

// Each expectation is what the real engines answer: the conformance case asks them the same.
func TestFiltersKeepWhatTheEnginesKeep(t *testing.T) {
	cases, err := os.ReadFile("../../e2e/conformance/cases/filterpath.yaml")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)PUT /\{index}/_doc/(\d)\n +body: '(.+)'`).FindAllSubmatch(cases, -1) {
		docs[string(m[1])] = `{"_index":"i", "_source": ` + string(m[2]) + ` }`
	}
	rows := regexp.MustCompile(`(?m)GET /\{index}/_doc/(\d)\?filter_path=(\S+)\n +expect: \{status: 200, body: '(.+)'}$`).FindAllSubmatch(cases, -1)
	if all := strings.Count(string(cases), "filter_path="); len(rows) != all || all < 60 {
		t.Fatalf("%d of %d expectations are read", len(rows), all)
	}
	for _, m := range rows {
		value, err := url.QueryUnescape(string(m[2]))
		if err != nil {
			t.Fatal(err)
		}
		f := ParseFilter(value)
		if got := string(f.Append(nil, []byte(docs[string(m[1])]))); got != string(m[3]) {
			t.Errorf("%s: %s, want %s", value, got, m[3])
		}
	}
}

func TestAFilterKeepsTheBytesOfWhatItKeeps(t *testing.T) {
	const value = `{"a" : 1, "b":{"c":1e400,"d":[ ]},"\u0065":[{"c":3},{"f\"":4}],"g":{}}`
	for _, c := range []struct{ filter, want string }{
		{"", value},
		{"a", `{"a":1}`},
		{"-b,-e", `{"a":1,"g":{}}`},
		{"-**.c", `{"a":1,"b":{"d":[]},"\u0065":[{"f\"":4}],"g":{}}`},
		{"b,-b.d", `{"b":{"c":1e400}}`},
		{"e.f*", `{"\u0065":[{"f\"":4}]}`},
		{"none", `{}`},
	} {
		f := ParseFilter(c.filter)
		if got := string(f.Append([]byte("> "), []byte(value))); got != "> "+c.want {
			t.Errorf("%s: %s, want %s", c.filter, got, c.want)
		}
	}
}

func TestWhatIsNotJSONStaysAsItIs(t *testing.T) {
	f := ParseFilter("a.b,-a.c")
	for _, text := range []string{"", "{", `{"a"`, `{"a":`, `{"a":{`, `{"a":{"b":1,`, `{"a":"`, `{"a":[{"b":1}`, "no such index\n[", `{a:1}`, "{,}", "[,"} {
		if got := string(f.Append(nil, []byte(text))); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Each pair of stars doubled the comparisons, at each level: 30 of them, and a document of 30 levels, kept the engine busy for
// minutes.
func TestManyStarsInAFilterCostNoMoreThanOneComparisonForEachPart(t *testing.T) {
	const levels = 90
	value := []byte(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
	for _, pattern := range []string{
		strings.Repeat("**.", levels) + "a", strings.Repeat("**.a.", levels) + "none", "-" + strings.Repeat("**.", levels) + "none",
		strings.Repeat("**.*.", levels) + "none", strings.Repeat("**.none,", levels) + "-" + strings.Repeat("**.**.", levels) + "a",
	} {
		f := ParseFilter(pattern)
		w := walk{rules: &f, value: value}
		if _, end := w.append(0, f.top()); end != len(value) {
			t.Fatalf("%.20s: ended at %d", pattern, end)
		}
		if bound := levels * (len(f.include.parts) + len(f.exclude.parts)); w.steps < levels || w.steps > bound {
			t.Errorf("%.20s: %d comparisons, at most %d are needed", pattern, w.steps, bound)
		}
	}
}

// FuzzFilter: what a filter leaves of JSON is JSON, of which it takes nothing more.
func FuzzFilter(f *testing.F) {
	f.Add("a.**.b,-c", `{"a":{"x":{"b":[1,{"b":2}]}},"c":"\\"}`)
	f.Add(`**,-x\.y`, ` {"x.y":[ [] ],"\u0078.y":{} , "z" : [ {"x":{"y":1}} , 2 ]} `)
	f.Fuzz(func(t *testing.T, patterns, value string) {
		filter := ParseFilter(patterns)
		once := filter.Append(nil, []byte(value))
		if !json.Valid([]byte(value)) || value[jsontext.SkipSpace([]byte(value), 0)] != '{' {
			return
		}
		if twice := filter.Append(nil, once); !json.Valid(once) || string(twice) != string(once) {
			t.Errorf("%q of %q: %q, then %q", patterns, value, once, twice)
		}
	})
}

// An answer of the engine may be nested without end: a filter that goes down by recursion overflows the stack, which ends the process.
func TestWhatIsNestedWithoutEndStaysAsItIs(t *testing.T) {
	f := ParseFilter("-a")
	for _, piece := range []string{"[", `{"b":`} {
		deep := bytes.Repeat([]byte(piece), 16<<20/len(piece))
		if got := f.Append(nil, deep); !bytes.Equal(got, deep) {
			t.Errorf("%s and so on becomes %d bytes of %d", piece, len(got), len(deep))
		}
	}
	nested := func(depth int) []byte {
		return []byte(strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth))
	}
	if got := f.Append(nil, []byte(`{"a":1,"b":`+string(nested(jsontext.MaxNesting-1))+"}")); len(got) != len(`{"b":}`)+len(nested(jsontext.MaxNesting-1)) {
		t.Errorf("what the engines take isn't filtered: %d bytes", len(got))
	}
}

// Each escaped dot was a text of its own, as long as all before it: 20,000 of them in one parameter took 400 MB, one after the other.
func TestEscapedDotsAreReadInOnePiece(t *testing.T) {
	value := strings.Repeat(`a\.`, 20_000)
	if n := testing.AllocsPerRun(3, func() { ParseFilter(value) }); n > 100 {
		t.Errorf("%.0f allocations", n)
	}
	f := ParseFilter(`a\.b\.c.d`)
	if got := string(f.Append(nil, []byte(`{"a.b.c":{"d":1,"e":2}}`))); got != `{"a.b.c":{"d":1}}` {
		t.Error(got)
	}
}

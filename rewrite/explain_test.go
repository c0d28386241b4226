package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// told is a decision in one line, as the tests have it: path verdict [strategy rule] base sent current → result.
func told(d *Decision) string {
	side := func(b []byte) string {
		if b == nil {
			return "-"
		}
		return string(b)
	}
	text := d.Path + " " + d.Verdict.String()
	if d.Both {
		text += " by " + d.Strategy.String()
		if d.Rule != "" {
			text += " of " + d.Rule
		}
		if d.Unfit {
			text += " (unfit)"
		}
	}
	text += fmt.Sprintf(": %s, %s, %s", side(d.Base), side(d.Sent), side(d.Current))
	if d.Verdict == Conflict {
		return text
	}
	return text + " = " + side(d.Result)
}

func TestExplainTellsEveryDecision(t *testing.T) {
	for _, c := range []struct {
		name                string
		rules               []PathRule
		def                 Strategy
		base, sent, current string
		want                []string
	}{
		{
			"who changed what", nil, Sent,
			`{"a":1,"b":1,"c":1,"d":1,"e":1}`, `{"a":2,"b":1,"c":2,"d":2,"e":1}`, `{"a":1,"b":2,"c":2,"d":3,"e":1}`,
			[]string{"/a taken: 1, 2, 1 = 2", "/b kept: 1, 1, 2 = 2", "/c same: 1, 2, 2 = 2", "/d overwritten by sent: 1, 2, 3 = 2"},
		},
		{
			"what came and went", nil, Sent,
			`{"a":1,"b":1,"x":{"u":1,"v":2}}`, `{"b":1,"c":3,"x":{"u":1,"v":2}}`, `{"a":1,"d":4,"x":{"v":5,"w":6}}`,
			[]string{"/a taken: 1, -, 1 = -", "/d kept: -, -, 4 = 4", "/x/v kept: 2, 2, 5 = 5", "/x/w kept: -, -, 6 = 6", "/x/u kept: 1, 1, - = -",
				"/b kept: 1, 1, - = -", "/c taken: -, 3, - = 3"},
		},
		{
			"numbers", []PathRule{{Path: "/n", Strategy: Sum}, {Path: "/*/seen", Strategy: Max}}, Sent,
			`{"n":10,"u":{"seen":1}}`, `{"n":9,"u":{"seen":5}}`, `{"n":7,"u":{"seen":3}}`,
			[]string{"/n calculated by sum of /n: 10, 9, 7 = 6", "/u/seen calculated by max of /*/seen: 1, 5, 3 = 5"},
		},
		{
			"a sum of texts", []PathRule{{Path: "/n", Strategy: Sum}}, Sent,
			`{"n":"a"}`, `{"n":"b"}`, `{"n":"c"}`,
			[]string{`/n conflict by sum of /n (unfit): "a", "b", "c"`},
		},
		{
			"a sum of objects", []PathRule{{Path: "/n", Strategy: Sum}}, Sent,
			`{"n":{"x":1}}`, `{"n":{"x":2}}`, `{"n":{"x":3}}`,
			[]string{`/n/x conflict by sum of /n (unfit): 1, 2, 3`},
		},
		{
			"a rule that holds for what is below", []PathRule{{Path: "/a", Strategy: Current}, {Path: "/a/b/c", Strategy: Fail}}, Sent,
			`{"a":{"x":1,"b":{"c":1,"d":1}}}`, `{"a":{"x":2,"b":{"c":1,"d":2}}}`, `{"a":{"x":3,"b":{"c":9,"d":3}}}`,
			[]string{"/a/x kept by current of /a: 1, 2, 3 = 3", "/a/b/c kept: 1, 1, 9 = 9", "/a/b/d kept by current of /a: 1, 2, 3 = 3"},
		},
		{
			"lists", []PathRule{{Path: "/tags", Strategy: Union}}, Sent,
			`{"tags":["a"],"log":[1],"own":[1]}`, `{"tags":["a","b"],"log":[1,2],"own":[1,2]}`, `{"tags":["a","c"],"log":[1,3],"own":[1]}`,
			[]string{`/tags combined by union of /tags: ["a"], ["a","b"], ["a","c"] = ["a","c","b"]`, "/log combined: [1], [1,2], [1,3] = [1,3,2]",
				"/own taken: [1], [1,2], [1] = [1,2]"},
		},
		{
			"lists whose edits overlap", []PathRule{{Path: "/l", Strategy: Current}}, Sent,
			`{"l":[1,2],"m":[1,2]}`, `{"l":[8,7,6],"m":[8,7,6]}`, `{"l":[5,4,3,2],"m":[5,4,3,2]}`,
			[]string{
				"/l combined: [1,2], [8,7,6], [5,4,3,2] = [5,4,3,7,6]", "/l/0 kept by current of /l: 1, 8, 5 = 5", "/l/3 taken: 2, 7, 2 = 7",
				"/m combined: [1,2], [8,7,6], [5,4,3,2] = [8,4,3,7,6]", "/m/0 overwritten by sent: 1, 8, 5 = 8", "/m/3 taken: 2, 7, 2 = 7",
			},
		},
		{
			"elements by their key", []PathRule{{Path: "/lines", Strategy: ByKey, Key: "sku"}, {Path: "/lines/*/n", Strategy: Sum}}, Sent,
			`{"lines":[{"sku":"a","n":1},{"sku":"b","n":1}]}`, `{"lines":[{"sku":"a","n":2},{"sku":"c","n":1}]}`,
			`{"lines":[{"sku":"b","n":1},{"sku":"a","n":5}]}`,
			[]string{`/lines combined by by_key of /lines: [{"sku":"a","n":1},{"sku":"b","n":1}], [{"sku":"a","n":2},{"sku":"c","n":1}], ` +
				`[{"sku":"b","n":1},{"sku":"a","n":5}] = [{"sku":"a","n":6},{"sku":"c","n":1}]`,
				`/lines/0 taken: {"sku":"b","n":1}, -, {"sku":"b","n":1} = -`, `/lines/1 taken: -, {"sku":"c","n":1}, - = {"sku":"c","n":1}`,
				"/lines/1/n calculated by sum of /lines/*/n: 1, 2, 5 = 6"},
		},
		{
			"every strategy in elements by their key", []PathRule{
				{Path: "/v", Strategy: ByKey, Key: "k"}, {Path: "/v/*/sum", Strategy: Sum}, {Path: "/v/*/min", Strategy: Min},
				{Path: "/v/*/max", Strategy: Max}, {Path: "/v/*/set", Strategy: Union}, {Path: "/v/*/log", Strategy: Append},
				{Path: "/v/*/w", Strategy: ByKey, Key: "k"}, {Path: "/v/*/w/*/n", Strategy: Sum}}, Sent,
			`{"v":[{"k":1,"sum":3,"min":3,"max":3,"set":["a"],"log":[1],"w":[{"k":1,"n":1}]},{"k":2}]}`,
			`{"v":[{"k":1,"sum":1,"min":2,"max":5,"set":["a","b"],"log":[1,2],"w":[{"k":1,"n":2}]},{"k":2}]}`,
			`{"v":[{"k":3},{"k":1,"sum":2,"min":1,"max":4,"set":["c"],"log":[1,3],"w":[{"k":0},{"k":1,"n":4}]}]}`,
			[]string{
				`/v combined by by_key of /v: [{"k":1,"sum":3,"min":3,"max":3,"set":["a"],"log":[1],"w":[{"k":1,"n":1}]},{"k":2}], ` +
					`[{"k":1,"sum":1,"min":2,"max":5,"set":["a","b"],"log":[1,2],"w":[{"k":1,"n":2}]},{"k":2}], ` +
					`[{"k":3},{"k":1,"sum":2,"min":1,"max":4,"set":["c"],"log":[1,3],"w":[{"k":0},{"k":1,"n":4}]}] = ` +
					`[{"k":3},{"k":1,"sum":0,"min":1,"max":5,"set":["c","b"],"log":[1,3,2],"w":[{"k":0},{"k":1,"n":5}]}]`,
				`/v/1 kept: {"k":2}, {"k":2}, - = -`,
				"/v/1/sum calculated by sum of /v/*/sum: 3, 1, 2 = 0",
				"/v/1/min calculated by min of /v/*/min: 3, 2, 1 = 1",
				"/v/1/max calculated by max of /v/*/max: 3, 5, 4 = 5",
				`/v/1/set combined by union of /v/*/set: ["a"], ["a","b"], ["c"] = ["c","b"]`,
				"/v/1/log combined by append of /v/*/log: [1], [1,2], [1,3] = [1,3,2]",
				`/v/1/w combined by by_key of /v/*/w: [{"k":1,"n":1}], [{"k":1,"n":2}], [{"k":0},{"k":1,"n":4}] = [{"k":0},{"k":1,"n":5}]`,
				"/v/1/w/1/n calculated by sum of /v/*/w/*/n: 1, 2, 4 = 5",
			},
		},
		{
			"an element that the client moved, and one in it", []PathRule{
				{Path: "/l", Strategy: ByKey, Key: "k"}, {Path: "/l/*/n", Strategy: Sum}, {Path: "/l/*/w", Strategy: ByKey, Key: "k"}}, Sent,
			`{"l":[{"k":1,"n":1,"w":[{"k":1,"m":1,"x":1},{"k":2}]},{"k":2}]}`,
			`{"l":[{"k":2},{"k":1,"n":2,"w":[{"k":2},{"k":1,"m":2}]}]}`,
			`{"l":[{"k":1,"n":5,"w":[{"k":1,"m":3,"x":1},{"k":2}]},{"k":2}]}`,
			[]string{
				`/l combined by by_key of /l: [{"k":1,"n":1,"w":[{"k":1,"m":1,"x":1},{"k":2}]},{"k":2}], ` +
					`[{"k":2},{"k":1,"n":2,"w":[{"k":2},{"k":1,"m":2}]}], [{"k":1,"n":5,"w":[{"k":1,"m":3,"x":1},{"k":2}]},{"k":2}] = ` +
					`[{"k":2},{"k":1,"n":6,"w":[{"k":2},{"k":1,"m":2}]}]`,
				"/l/0/n calculated by sum of /l/*/n: 1, 2, 5 = 6",
				`/l/0/w combined by by_key of /l/*/w: [{"k":1,"m":1,"x":1},{"k":2}], [{"k":2},{"k":1,"m":2}], [{"k":1,"m":3,"x":1},{"k":2}] = ` +
					`[{"k":2},{"k":1,"m":2}]`,
				"/l/0/w/0/m overwritten by sent: 1, 2, 3 = 2",
				"/l/0/w/0/x taken: 1, -, 1 = -",
			},
		},
		{
			"an element that the client moved, where the merge fails", []PathRule{
				{Path: "/l", Strategy: ByKey, Key: "k"}, {Path: "/l/*/n", Strategy: Sum}, {Path: "/l/*/s", Strategy: Fail}}, Sent,
			`{"l":[{"k":1,"n":1,"s":1},{"k":2}]}`, `{"l":[{"k":2},{"k":1,"n":2,"s":2}]}`, `{"l":[{"k":1,"n":5,"s":3},{"k":2}]}`,
			[]string{
				`/l combined by by_key of /l: [{"k":1,"n":1,"s":1},{"k":2}], [{"k":2},{"k":1,"n":2,"s":2}], [{"k":1,"n":5,"s":3},{"k":2}] = -`,
				"/l/0/n calculated by sum of /l/*/n: 1, 2, 5 = -",
				"/l/0/s conflict by fail of /l/*/s: 1, 2, 3",
			},
		},
		{
			"a set that others took out of an element", []PathRule{
				{Path: "/v", Strategy: ByKey, Key: "k"}, {Path: "/v/*/set", Strategy: Union}}, Sent,
			`{"v":[{"k":1,"set":["a"]}]}`, `{"v":[{"k":1,"set":["a","b"]}]}`, `{"v":[{"k":1}]}`,
			[]string{
				`/v combined by by_key of /v: [{"k":1,"set":["a"]}], [{"k":1,"set":["a","b"]}], [{"k":1}] = [{"k":1,"set":["b"]}]`,
				`/v/0/set combined by union of /v/*/set: ["a"], ["a","b"], - = ["b"]`,
			},
		},
		{
			"one element of a list", nil, Fail,
			`{"l":[{"a":1,"b":1},2]}`, `{"l":[{"a":2,"b":1},2]}`, `{"l":[{"a":3,"b":1},2]}`,
			[]string{`/l combined: [{"a":1,"b":1},2], [{"a":2,"b":1},2], [{"a":3,"b":1},2] = -`, "/l/0/a conflict by fail: 1, 2, 3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := NewMerger(c.def, c.rules)
			if err != nil {
				t.Fatal(err)
			}
			_, list, _ := m.Explain([]byte(c.base), []byte(c.sent), []byte(c.current))
			var got []string
			for i := range list {
				got = append(got, told(&list[i]))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

// TestExplainMergesAsMergeDoes: looking changes nothing, and what is told is what was done.
func TestExplainMergesAsMergeDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDocs(t)
		m := anyRules.Draw(t, "merger")
		want, wantErr := m.Merge(base, sent, current)
		got, list, err := m.Explain(base, sent, current)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || string(got.Doc) != string(want.Doc) || got.Changed != want.Changed ||
			!slices.Equal(got.Overwritten, want.Overwritten) {
			t.Fatalf("Explain merges %s (%v), Merge %s (%v)", got.Doc, err, want.Doc, wantErr)
		}
		var overwritten, conflicts []string
		for i := range list {
			switch d := &list[i]; d.Verdict {
			case Overwritten:
				overwritten = append(overwritten, d.Path)
			case Conflict:
				conflicts = append(conflicts, d.Path)
			}
		}
		named := want.Overwritten
		var refused *ConflictError
		if errors.As(wantErr, &refused) {
			named, overwritten = refused.Paths, conflicts
		}
		slices.Sort(overwritten)
		named = slices.Sorted(slices.Values(named))
		if wantErr == nil || refused != nil {
			if !slices.Equal(slices.Compact(overwritten), slices.Compact(named)) {
				t.Fatalf("decisions name %q, the merge %q\n%s\n%s\n%s", overwritten, named, base, sent, current)
			}
		}
		if wantErr == nil {
			checkResults(t, list, want.Doc)
		} else if i := slices.IndexFunc(list, func(d Decision) bool { return d.Result != nil }); i >= 0 {
			t.Fatalf("a merge that failed (%v) has a result: %s", wantErr, told(&list[i]))
		}
	})
}

// checkResults compares what the decisions say that there is with the merged document, as far as their paths lead through objects: an
// element may have another place in there.
func checkResults(t *rapid.T, list []Decision, merged []byte) {
	for i := range list {
		d := &list[i]
		if d.Verdict == Taken && !sameOrGone(t, d.Result, d.Sent) {
			t.Fatalf("%s\n%s", told(d), merged)
		}
		if there, ok := belowObjects(merged, d.Path); ok && string(there) != string(d.Result) {
			t.Fatalf("%s is %s\n%s", told(d), there, merged)
		}
	}
}

// belowObjects is the value at a path; ok is false where that leads through an array.
func belowObjects(doc []byte, path string) (value []byte, ok bool) {
	var parsed tree.Tree
	if err := parsed.Parse(doc, tree.Limits{}); err != nil {
		return nil, false
	}
	v := parsed.Root()
	tokens, _ := jsontext.SplitPointer(path)
	for _, token := range tokens {
		if v.Kind() == tree.Array {
			return nil, false
		}
		v = v.Get(token)
	}
	return bytes.Clone(v.Raw()), true
}

func sameOrGone(t *rapid.T, a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	p, err := Diff(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return len(p) == 0
}

func TestExplainIsBounded(t *testing.T) {
	var base, sent strings.Builder
	base.WriteString(`{"x":0`)
	sent.WriteString(`{"x":0`)
	for i := range 3 * MaxDecisions {
		fmt.Fprintf(&base, `,"k%d":0`, i)
		fmt.Fprintf(&sent, `,"k%d":1`, i)
	}
	m, _ := NewMerger(Sent, nil)
	_, list, err := m.Explain([]byte(base.String()+"}"), []byte(sent.String()+"}"), []byte(base.String()+"}"))
	if err != nil || len(list) != MaxDecisions {
		t.Fatalf("%d decisions, %v", len(list), err)
	}
}

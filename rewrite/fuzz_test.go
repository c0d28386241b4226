package rewrite

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// fuzzLimits are small, so that what the fuzzer finds in a few bytes reaches them.
var fuzzLimits = Limits{Depth: 20, Bytes: 1 << 16, Values: 1 << 12, Cells: 64}

var fuzzDocs = []string{
	`{}`, `{"a":1}`, `{"a":1.0,"b":[1,2,{"c":"\u00e9\ud800"}],"a":-0}`, ` { "l" : [ 3 , 1 , 2 ] , "t" : [ "x" ] } `,
	`{"l":[{"k":1,"n":1},{"k":2,"n":1e400}],"o":{"a/b":null,"m~n":{}}}`, `{"l":[{"k":2},{"k":1,"n":12345678901234567890}],"n":0.10}`,
	`{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":[],"m":0,"\u0061":1}`,
}

// known reports whether err is one of those that a document may cause.
func known(err error) bool {
	var syntax *SyntaxError
	return errors.As(err, &syntax) || errors.Is(err, ErrTooDeep) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNotObject)
}

func FuzzDiffApply(f *testing.F) {
	for _, a := range fuzzDocs {
		for _, b := range fuzzDocs {
			f.Add([]byte(a), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		p, err := edit.Diff(a, b, fuzzLimits)
		if err != nil {
			if !known(err) {
				t.Fatal(err)
			}
			return
		}
		got, err := p.Apply(a, Limits{})
		if err != nil {
			t.Fatalf("%q %q: %v", a, b, err)
		}
		rest, err := Diff(got, b)
		if err != nil || len(rest) != 0 {
			t.Fatalf("%q became %q instead of %q: %v", a, got, b, err)
		}
		again, err := ParsePatch(p.AppendJSON(nil))
		if err != nil {
			t.Fatalf("%s: %v", p.AppendJSON(nil), err)
		}
		if same, err := again.Apply(a, Limits{}); err != nil || !bytes.Equal(same, got) {
			t.Fatalf("%s: %q, %v", p.AppendJSON(nil), same, err)
		}
	})
}

func FuzzPatch(f *testing.F) {
	for _, p := range []string{
		`[]`, `[{"op":"add","path":"/a","value":1}]`, `[{"op":"remove","path":"/b/0"},{"op":"test","path":"","value":{}}]`,
		`[{"op":"move","from":"/a","path":"/b/-"},{"op":"copy","from":"/b","path":"/b/0"}]`, `[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/1","value":2}]`,
		`[{"op":"copy","from":"","path":"/a"},{"op":"copy","from":"","path":"/a"},{"op":"move","from":"/a/a","path":"/l"}]`,
		`[{"op":"add","path":"/~0~1","value":"\ud800"}]`, `[{"op":"test","path":"/a","value":1.0}]`, `{"op":1}`, `[{"op":"add","path":"~"}]`,
	} {
		for _, d := range fuzzDocs {
			f.Add([]byte(d), []byte(p))
		}
	}
	f.Fuzz(func(t *testing.T, doc, patch []byte) {
		p, err := edit.ParsePatch(patch, fuzzLimits)
		var bad *PatchError
		if err != nil {
			if !known(err) && !errors.As(err, &bad) {
				t.Fatal(err)
			}
			return
		}
		before := bytes.Clone(doc)
		got, err := p.Apply(doc, fuzzLimits)
		if !bytes.Equal(doc, before) {
			t.Fatal("the document itself was changed")
		}
		var failed *TestError
		switch {
		case err != nil && !known(err) && !errors.As(err, &bad) && !errors.As(err, &failed):
			t.Fatal(err)
		case err != nil:
			return
		}
		var tr tree.Tree
		if err := tr.Parse(got, fuzzLimits); err != nil && !errors.Is(err, ErrTooLarge) {
			t.Fatalf("%q with %s became %q: %v", doc, patch, got, err)
		}
	})
}

func FuzzMerge(f *testing.F) {
	for i, a := range fuzzDocs {
		for j, b := range fuzzDocs {
			f.Add([]byte(a), []byte(b), []byte(fuzzDocs[(i+j)%len(fuzzDocs)]), byte(i*8+j))
		}
	}
	var mergers []*Merger
	for _, def := range []Strategy{Sent, Current, Fail} {
		mergers = append(mergers, mustMerger(f, def).Within(fuzzLimits))
		for _, s := range []Strategy{Sum, Max, Union, Append, ByKey} {
			rule := PathRule{Path: "/*", Strategy: s}
			if s == ByKey {
				rule.Key = "k"
			}
			mergers = append(mergers, mustMerger(f, def, rule, PathRule{Path: "/*/*/n", Strategy: Sum}, PathRule{Path: "/o/*", Strategy: Min}).Within(fuzzLimits))
		}
	}
	f.Fuzz(func(t *testing.T, base, sent, current []byte, which byte) {
		m := mergers[int(which)%len(mergers)]
		res, err := m.Merge(base, sent, current)
		var conflict *ConflictError
		if err != nil {
			if !known(err) && !errors.As(err, &conflict) {
				t.Fatal(err)
			}
			return
		}
		if !json.Valid(res.Doc) || res.Changed == bytes.Equal(res.Doc, current) {
			t.Fatalf("%q %q %q became %q", base, sent, current, res.Doc)
		}
		if nothing, err := m.Merge(base, base, current); err != nil || nothing.Changed {
			t.Fatalf("no change of %q changed %q: %q, %v", base, current, nothing.Doc, err)
		}
		if into, err := m.Merge(base, sent, base); err == nil {
			if p, err := Diff(into.Doc, sent); err != nil || len(p) != 0 {
				t.Fatalf("%q changed to %q became %q", base, sent, into.Doc)
			}
		}
		if _, err := m.Repeatable(base, sent, current); err != nil {
			t.Fatal(err)
		}
	})
}

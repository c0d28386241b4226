package rewrite

import (
	"testing"

	"pgregory.net/rapid"
)

func TestApplyOfDiffGivesTheOtherDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, _ := genDocs(t)
		var opts []DiffOption
		if rapid.Bool().Draw(t, "with tests") {
			opts = append(opts, WithTests)
		}
		p, err := Diff(a, b, opts...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Apply(a)
		if err != nil {
			t.Fatalf("%v\n%s\n%s\n%s", err, a, b, p.AppendJSON(nil))
		}
		if !sameDoc(t, got, b) {
			t.Fatalf("%s\n%s\n%s\n%s", a, b, p.AppendJSON(nil), got)
		}
		again, err := ParsePatch(p.AppendJSON(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got2, err := again.Apply(a); err != nil || string(got2) != string(got) {
			t.Fatalf("read back, the patch does something else: %v\n%s", err, p.AppendJSON(nil))
		}
		if d, _ := Measure(a, b); (d.Edits == 0) != (len(p) == 0) {
			t.Fatalf("distance %d, but the patch is %s", d.Edits, p.AppendJSON(nil))
		}
	})
}

var anyRules = rapid.Custom(func(t *rapid.T) *Merger {
	def := rapid.SampledFrom([]Strategy{Sent, Sent, Current}).Draw(t, "default")
	paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/a", "/b", "/*", "/a/*", "/c", "/*/*", "/c/*/a", "/*/*/a"}), 0, 4,
		rapid.ID[string]).Draw(t, "rule paths")
	var rules []PathRule
	for _, p := range paths {
		r := PathRule{Path: p, Strategy: rapid.SampledFrom([]Strategy{Sent, Current, Sum, Max, Min, Union, Append, ByKey}).Draw(t, "strategy")}
		if r.Strategy == ByKey {
			r.Key = "a"
		}
		rules = append(rules, r)
	}
	m, err := NewMerger(def, rules)
	if err != nil {
		t.Fatal(err)
	}
	return m
})

func TestMergeOfNoChangeIsCurrentByteForByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, _, current := genDocs(t)
		m := anyRules.Draw(t, "merger")
		res, err := m.Merge(base, base, current)
		if err != nil || res.Changed || string(res.Doc) != string(current) {
			t.Fatalf("%v %v\n%s", res.Changed, err, res.Doc)
		}
	})
}

func TestMergeIntoTheBaseGivesWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, sent, _ := genDocs(t)
		m := anyRules.Draw(t, "merger")
		res, err := m.Merge(base, sent, base)
		if err != nil || len(res.Overwritten) > 0 || !sameDoc(t, res.Doc, sent) {
			t.Fatalf("%v %q\n%s\n%s\n%s", err, res.Overwritten, base, sent, res.Doc)
		}
	})
}

func TestMergeIsJSONAndKeepsWhatTheClientDidNotTouch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDocs(t)
		m := anyRules.Draw(t, "merger")
		res, err := m.Merge(base, sent, current)
		if _, conflict := err.(*ConflictError); conflict {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		decode(t, res.Doc)
		if same := string(res.Doc) == string(current); same == res.Changed {
			t.Fatalf("changed %v\n%s\n%s", res.Changed, current, res.Doc)
		}
	})
}

package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/rewrite/tree"
)

func TestApplyOfDiffGivesTheOtherDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, _ := genDocs(t)
		p, err := Diff(a, b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Apply(a, Limits{})
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
		if got2, err := again.Apply(a, Limits{}); err != nil || string(got2) != string(got) {
			t.Fatalf("read back, the patch does something else: %v\n%s", err, p.AppendJSON(nil))
		}
		if (len(p) == 0) != sameDoc(t, a, b) {
			t.Fatalf("the patch is %s", p.AppendJSON(nil))
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

// What both sides have done to a value is a conflict under fail whoever comes first, and also if both have done the same.
func TestFailTreatsBothSidesAlike(t *testing.T) {
	m := mustMerger(t, Fail)
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDocs(t)
		if rapid.Bool().Draw(t, "equal") {
			current = sent
		}
		_, err := m.Merge(base, sent, current)
		_, turned := m.Merge(base, current, sent)
		if (err == nil) != (turned == nil) {
			t.Fatalf("base    %s\nsent    %s\ncurrent %s\n%v, and the other way round %v", base, sent, current, err, turned)
		}
	})
}

// members returns the key and the value of each member of a document, as they are spelled.
func members(t tb, doc []byte) (list [][2]string) {
	var tr tree.Tree
	if err := tr.Parse(doc, Limits{}); err != nil {
		t.Fatal(err)
	}
	for c := tr.Root().FirstOfAll(); c.Exists(); c = c.NextOfAll() {
		list = append(list, [2]string{string(c.Member()[:c.KeyLen()]), string(c.Raw())})
	}
	return list
}

func TestMembersThatTheClientLeftAloneKeepTheirBytesAndOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDocs(t)
		res, err := anyRules.Draw(t, "merger").Merge(base, sent, current)
		if err != nil {
			return // a strategy that can't be applied
		}
		before, after := decode(t, base).(map[string]any), decode(t, sent).(map[string]any)
		left := members(t, res.Doc)
		for _, m := range members(t, current) {
			key := strings.TrimPrefix(decode(t, []byte(m[0])).(string), "string ")
			if !alike(get(before, key), get(after, key)) {
				continue
			}
			for len(left) > 0 && left[0] != m {
				left = left[1:]
			}
			if len(left) == 0 {
				t.Fatalf("%s: %s is not in its place in\n%s\nfrom\n%s\n%s\n%s", m[0], m[1], res.Doc, base, sent, current)
			}
		}
	})
}

// share splits what differs between two documents into two that each have a part of it.
func share(t *rapid.T, base, edited any) (a, b any) {
	o, ok := base.(object)
	e, ok2 := edited.(object)
	if !ok || !ok2 {
		if rapid.Bool().Draw(t, "whose") {
			return edited, base
		}
		return base, edited
	}
	var x, y object
	for _, m := range o {
		if i := e.find(m.key); i >= 0 {
			p, q := share(t, m.val, e[i].val)
			x, y = append(x, member{m.key, p}), append(y, member{m.key, q})
			continue
		}
		if rapid.Bool().Draw(t, "who removes") {
			x = append(x, m)
		} else {
			y = append(y, m)
		}
	}
	for _, m := range e {
		if o.find(m.key) < 0 {
			if rapid.Bool().Draw(t, "who adds") {
				x = append(x, m)
			} else {
				y = append(y, m)
			}
		}
	}
	return x, y
}

func TestDisjointEditsGiveTheSameInEitherOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyRules.Draw(t, "merger")
		o := any(genObject(3).Draw(t, "base"))
		whole := genEdit(t, o, rapid.IntRange(1, 6).Draw(t, "edits"))
		x, y := share(t, o, whole)
		base, a, b := write(t, o), write(t, x), write(t, y)
		ab, err := m.Merge(base, a, b)
		ba, err2 := m.Merge(base, b, a)
		if err != nil || err2 != nil || len(ab.Overwritten)+len(ba.Overwritten) > 0 {
			t.Fatalf("%v %v %q %q", err, err2, ab.Overwritten, ba.Overwritten)
		}
		if !sameDoc(t, ab.Doc, ba.Doc) || !sameDoc(t, ab.Doc, write(t, whole)) {
			t.Fatalf("base %s\na    %s\nb    %s\na onto b %s\nb onto a %s", base, a, b, ab.Doc, ba.Doc)
		}
	})
}

// The elements of both sides are apart if something that neither touches lies between them.
func TestDisjointArrayEditsGiveTheSameInEitherOrder(t *testing.T) {
	m := mustMerger(t, Sent)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 4)
		front, back := part.Draw(t, "front"), part.Draw(t, "back")
		front2, back2 := part.Draw(t, "front edited"), part.Draw(t, "back edited")
		doc := func(f, b []int) []byte {
			l := append(append(slices.Clone(f), 99), b...)
			return fmt.Appendf(nil, `{"l":%s}`, listOf(l))
		}
		base, a, b := doc(front, back), doc(front2, back), doc(front, back2)
		ab, err := m.Merge(base, a, b)
		ba, err2 := m.Merge(base, b, a)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if want := doc(front2, back2); keepsSeparator(front, front2, back, back2) && (!sameDoc(t, ab.Doc, want) || !sameDoc(t, ba.Doc, want)) {
			t.Fatalf("base %s\na    %s\nb    %s\na onto b %s\nb onto a %s", base, a, b, ab.Doc, ba.Doc)
		}
	})
}

// keepsSeparator reports whether both scripts keep the 99 in the middle. A longest common subsequence may do without it,
// where more elements of one half are found in the other.
func keepsSeparator(front, front2, back, back2 []int) bool {
	for _, l := range [2][2][]int{{join(front, back), join(front2, back)}, {join(front, back), join(front, back2)}} {
		found := false
		for _, p := range canonicalLCS(anys(l[0]), anys(l[1])) {
			found = found || l[0][p[0]] == 99
		}
		if !found {
			return false
		}
	}
	return true
}

func join(f, b []int) []int { return append(append(slices.Clone(f), 99), b...) }

// What Repeatable lets through overwrites nobody, and where it lets the same change through again, that changes nothing.
func TestARepeatableChangeMayBeAppliedTwice(t *testing.T) {
	repeated := 0
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDocs(t)
		m := anyRules.Draw(t, "merger")
		ok, err := m.Repeatable(base, sent, current)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		once, err := m.Merge(base, sent, current)
		if err != nil || len(once.Overwritten) > 0 {
			t.Fatalf("%v, overwritten %q: a path that the change touches is not as in the base", err, once.Overwritten)
		}
		if again, _ := m.Repeatable(base, sent, once.Doc); again {
			twice, err := m.Merge(base, sent, once.Doc)
			if err != nil || !sameDoc(t, twice.Doc, once.Doc) {
				t.Fatalf("%v\nbase    %s\nsent    %s\ncurrent %s\nonce    %s\ntwice   %s", err, base, sent, current, once.Doc, twice.Doc)
			}
		}
		if !sameDoc(t, base, sent) {
			repeated++
		}
	})
	if repeated == 0 {
		t.Error("no change was repeatable: the test has seen nothing")
	}
}

func TestMergeOfTheSameChangeTwiceIsOnceForScalars(t *testing.T) {
	m := mustMerger(t, Sent)
	rapid.Check(t, func(t *rapid.T) {
		flat := rapid.MapOf(genKey, genValue(0))
		doc := func(name string) []byte {
			var o object
			for k, v := range flat.Draw(t, name) {
				o = append(o, member{k, v})
			}
			slices.SortFunc(o, func(a, b member) int { return strings.Compare(a.key, b.key) })
			return write(t, o)
		}
		base, sent, current := doc("base"), doc("sent"), doc("current")
		once, err := m.Merge(base, sent, current)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := m.Merge(base, sent, once.Doc)
		if err != nil || twice.Changed || len(twice.Overwritten) > 0 {
			t.Fatalf("%v\n%s\n%s", err, once.Doc, twice.Doc)
		}
	})
}

package merge

import (
	"bytes"
	"slices"
	"strings"

	"optimist/internal/jsontext"
	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// A Decision is the result for one value that the client, another client, or both had changed. A missing value is nil.
type Decision struct {
	// Path is a JSON Pointer into current, or into sent where current has no such value. The index of an element is that in current, or, of
	// one that only sent has, that in sent.
	Path                string
	Base, Sent, Current []byte
	// Result is what is there after the merge. Placed says whether it is known: below an array that was merged it may not be.
	Result  []byte
	Placed  bool
	Verdict Verdict
	// Both says that both sides had changed the value, so that Strategy decided. Rule is the path that gave it; empty for the default.
	Both     bool
	Strategy Strategy
	Rule     string
	// Unfit says that the rule's strategy can't be applied to the values, and so decided like Fail.
	Unfit bool
}

// MaxDecisions bounds how many decisions Explain returns.
const MaxDecisions = 1000

// Explain is Merge with its decisions, parents before their members and otherwise in the order of the work. A *ConflictError comes with
// decisions, too. They are copies. It costs several times as much as Merge.
func (m *Merger) Explain(base, sent, current []byte) (Result, []Decision, error) {
	var a account
	res, err := m.merge(base, sent, current, &a)
	if err != nil {
		return res, a.list, err
	}
	var doc tree.Tree
	if err := doc.Parse(res.Doc, m.limits); err != nil {
		return res, a.list, err // can't be: it was just made
	}
	for i := range a.list {
		d := &a.list[i]
		switch {
		case !a.inArray[i]:
			d.Result, d.Placed = below(doc.Root(), d.Path), true
		case d.Verdict == Taken || d.Verdict == Overwritten:
			d.Result, d.Placed = d.Sent, true
		case d.Verdict == Kept || d.Verdict == Agreed:
			d.Result, d.Placed = d.Current, true
		}
	}
	return res, a.list, nil
}

// below is a copy of the value at a path that leads through objects only, nil where there is none.
func below(v tree.Value, path string) []byte {
	tokens, _ := jsontext.SplitPointer(path)
	for _, token := range tokens {
		v = v.Get(token)
	}
	return bytes.Clone(v.Raw())
}

// An account is the observer that collects decisions.
type account struct {
	list    []Decision
	inArray []bool // of each decision, whether its path leads through an array
}

// note adds a decision about the value at the trail. It goes before those about what is below it.
func (a *account) note(trail tree.Trail, v Verdict, of sides) *Decision {
	if len(a.list) >= MaxDecisions {
		return new(Decision)
	}
	d := Decision{Path: trail.Pointer(maxPathBytes), Verdict: v,
		Base: bytes.Clone(of.b.Raw()), Sent: bytes.Clone(of.s.Raw()), Current: bytes.Clone(of.c.Raw())}
	in := slices.ContainsFunc(trail, func(p tree.Place) bool { return !p.Member.Exists() })
	at := len(a.list)
	for at > 0 && strings.HasPrefix(a.list[at-1].Path, d.Path+"/") {
		at--
	}
	a.list, a.inArray = slices.Insert(a.list, at, d), slices.Insert(a.inArray, at, in)
	return &a.list[at]
}

func (a *account) decided(r *run, v Verdict, both bool, of sides, sc scope) {
	if v == Kept && !both && of.b.Equal(of.c) {
		return // nobody changed it
	}
	if d := a.note(r.trail, v, of); both {
		r.byRule(d, sc)
	}
}

func (a *account) edited(r *run, of sides) {
	switch {
	case of.b.Equal(of.s):
		a.untouched(r, of.b, of.c)
	case of.b.Equal(of.c):
		a.note(r.trail, Taken, of)
	default:
		a.note(r.trail, Combined, of)
	}
}

// untouched notes what somebody else changed.
func (a *account) untouched(r *run, b, c tree.Value) {
	if !b.Exists() {
		a.note(r.trail, Kept, sides{c: c})
		return
	}
	w := diff.Walk{Whole: true, Trail: r.trail}
	w.Visitor = theirs{a, &w}
	w.Value(c, b) // in this order, so that what is still there comes first
}

// theirs notes the differences of a walk from current to the base.
type theirs struct {
	a *account
	w *diff.Walk
}

func (t theirs) Edit(c, b tree.Value)                  { t.a.note(t.w.Trail, Kept, sides{b, b, c}) }
func (t theirs) Unaligned(tree.Value, tree.Value, int) {}
func (t theirs) Element(tree.Value, tree.Value, bool)  {}
func (t theirs) Enough() bool                          { return len(t.a.list) >= MaxDecisions }

// byRule notes which strategy decided about a value that both sides changed, and which rule gave it.
func (r *run) byRule(d *Decision, sc scope) {
	n := r.decisive(sc)
	d.Both, d.Strategy, d.Rule = true, n.strategy, n.path
	d.Unfit = !n.strategy.anyValue() && d.Verdict != Calculated && d.Verdict != Combined
}

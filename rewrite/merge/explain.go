package merge

import (
	"bytes"
	"slices"
	"strings"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// A Decision is the result for one value that the client, another client, or both had changed. A missing value is nil.
type Decision struct {
	// Path is a JSON Pointer into current, or into sent where current has no such value, or into the base where neither has. The index of
	// an element is that in the same document.
	Path                string
	Base, Sent, Current []byte
	// Result is what is there after the merge; nil, too, where the merge failed.
	Result  []byte
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
		for i := range a.list {
			a.list[i].Result = nil
		}
	}
	return res, a.list, err
}

// An account collects the decisions of a merge. The value that a call is about is at the run's trail. A nil account collects nothing.
type account struct {
	list []Decision
	cur  []tree.Value // of each decision, the value of current; none once its result is known
}

// merged notes what became of the values in c. It is called for an element of current that goes elsewhere, once what becomes of it is
// spliced; and at the end for all of current, unless there are conflicts.
func (a *account) merged(r *run, c tree.Value) {
	if a == nil {
		return
	}
	from, to := c.Span()
	for i, v := range a.cur {
		d := &a.list[i]
		if !v.Exists() {
			if d.Result == nil && (d.Verdict == Taken || d.Verdict == Overwritten) {
				d.Result = d.Sent
			}
			continue
		}
		if start, end := v.Span(); start >= from && end <= to {
			d.Result, a.cur[i] = r.result(v), tree.Value{}
		}
	}
}

// note adds a decision about the value at the trail, before the decisions about the values below that.
func (a *account) note(trail tree.Trail, v Verdict, of sides) *Decision {
	if len(a.list) >= MaxDecisions {
		return new(Decision)
	}
	d := Decision{Path: trail.Pointer(maxPathBytes), Verdict: v,
		Base: bytes.Clone(of.b.Raw()), Sent: bytes.Clone(of.s.Raw()), Current: bytes.Clone(of.c.Raw())}
	at := len(a.list)
	for at > 0 && strings.HasPrefix(a.list[at-1].Path, d.Path+"/") {
		at--
	}
	a.list, a.cur = slices.Insert(a.list, at, d), slices.Insert(a.cur, at, of.c)
	return &a.list[at]
}

// decided notes a value that is settled as a whole, by sc's strategy if both sides changed it.
func (a *account) decided(r *run, by ruling, of sides, sc scope) {
	if a == nil || by.verdict == Kept && !by.both && of.b.Equal(of.c) {
		return // nobody changed it
	}
	d := a.note(r.trail, by.verdict, of)
	d.Result = bytes.Clone(by.made)
	if by.both {
		r.byRule(d, sc)
	}
}

// edited notes an array before its edits are carried out one by one.
func (a *account) edited(r *run, of sides) {
	switch {
	case a == nil:
	case of.b.Equal(of.s):
		a.untouched(r, of.b, of.c)
	case of.b.Equal(of.c):
		a.note(r.trail, Taken, of)
	default:
		a.note(r.trail, Combined, of)
	}
}

// untouched notes what somebody else changed of a value that the client left alone.
func (a *account) untouched(r *run, b, c tree.Value) {
	switch {
	case a == nil:
		return
	case !b.Exists():
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

package rewrite

import (
	"bytes"
	"fmt"
	"strings"
)

// A Verdict is what a merge made of one value.
type Verdict uint8

// The verdicts.
const (
	Kept        Verdict = iota // current's: only somebody else changed it, or the strategy says so
	Taken                      // the client's: only it changed it
	Agreed                     // both made it the same
	Overwritten                // the client's, by strategy Sent; somebody else's value is gone
	Conflict                   // nobody's: the merge failed
	Calculated                 // by Sum, Max or Min
	Combined                   // an array with the edits of both, one by one or by Union, Append or ByKey
)

var verdictNames = [...]string{"kept", "taken", "same", "overwritten", "conflict", "calculated", "combined"}

// String is the verdict in a word.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// A Decision is what became of one value that the client, somebody else, or both had changed. A value that isn't there is nil.
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
	// Unfit says that the rule's strategy can't be applied to what is there, so that it decided like Fail.
	Unfit bool
}

// MaxDecisions bounds how many decisions Explain tells.
const MaxDecisions = 1000

// Explain is Merge with what was decided, parents before what is below them and otherwise in the order of the work. With a *ConflictError
// the decisions are told, too. They are copies. It costs several times as much as Merge.
func (m *Merger) Explain(base, sent, current []byte) (Result, []Decision, error) {
	var t trace
	res, err := m.merge(base, sent, current, &t)
	if err != nil {
		return res, t.list, err
	}
	var doc tree
	if err := doc.parse(res.Doc, m.limits.withDefaults()); err != nil {
		return res, t.list, err // can't be: it was just made
	}
	for i := range t.list {
		d := &t.list[i]
		switch {
		case !t.inArray[i]:
			d.Result, d.Placed = doc.below(d.Path), true
		case d.Verdict == Taken || d.Verdict == Overwritten:
			d.Result, d.Placed = d.Sent, true
		case d.Verdict == Kept || d.Verdict == Agreed:
			d.Result, d.Placed = d.Current, true
		}
	}
	return res, t.list, nil
}

// below is a copy of the value at a path that leads through objects only, nil where there is none.
func (t *tree) below(path string) []byte {
	tokens, _ := splitPointer(path)
	at := int32(0)
	for _, token := range tokens {
		if !t.is(at, kindObject) {
			return nil
		}
		if at = t.find(at, []byte(token), false, none); at == none {
			return nil
		}
	}
	return bytes.Clone(t.raw(at))
}

// A trace collects decisions.
type trace struct {
	list    []Decision
	inArray []bool // of each decision, whether its path leads through an array
}

// note adds a decision about the value at the trail. It goes before those about what is below it.
func (r *run) note(v Verdict, b, s, c int32) *Decision {
	t := r.trace
	if len(t.list) >= MaxDecisions {
		return new(Decision)
	}
	d := Decision{Path: pointer(r.trail), Verdict: v, Base: copyOf(&r.base, b), Sent: copyOf(&r.sent, s), Current: copyOf(&r.cur, c)}
	in := false
	for _, p := range r.trail {
		in = in || p.index != none
	}
	at := len(t.list)
	for at > 0 && strings.HasPrefix(t.list[at-1].Path, d.Path+"/") {
		at--
	}
	t.list, t.inArray = append(t.list, d), append(t.inArray, in)
	copy(t.list[at+1:], t.list[at:])
	copy(t.inArray[at+1:], t.inArray[at:])
	t.list[at], t.inArray[at] = d, in
	return &t.list[at]
}

func copyOf(t *tree, i int32) []byte {
	if i == none {
		return nil
	}
	return bytes.Clone(t.raw(i))
}

// judged notes the verdict about one value as a whole.
func (r *run) judged(v verdict, b, s, c int32, sc scope) {
	if same(&r.base, b, &r.sent, s) {
		if !same(&r.base, b, &r.cur, c) {
			r.note(Kept, b, s, c)
		}
		return
	}
	var d *Decision
	switch {
	case v == takes:
		r.note(Taken, b, s, c)
		return
	case v == overwrite:
		d = r.note(Overwritten, b, s, c)
	case v == conflicts:
		d = r.note(Conflict, b, s, c)
	case same(&r.sent, s, &r.cur, c):
		r.note(Agreed, b, s, c)
		return
	default:
		d = r.note(Kept, b, s, c)
	}
	r.decidedBy(d, sc)
}

// applied notes a value that both changed, and that a strategy for numbers or arrays has dealt with.
func (r *run) applied(st Strategy, b, s, c int32, sc scope) {
	v := Calculated
	if st >= Union {
		v = Combined
	}
	r.decidedBy(r.note(v, b, s, c), sc)
}

// edited notes an array whose edits are carried out one by one.
func (r *run) edited(b, s, c int32) {
	switch {
	case same(&r.base, b, &r.sent, s):
		r.theirs(b, c)
	case same(&r.base, b, &r.cur, c):
		r.note(Taken, b, s, c)
	default:
		r.note(Combined, b, s, c)
	}
}

// overlapped notes who wins where edits of an array overlap: the last that was noted is the array.
func (r *run) overlapped(v verdict, sc scope) {
	if n := len(r.trace.list); n < MaxDecisions {
		d := &r.trace.list[n-1]
		switch v {
		case overwrite:
			d.Verdict = Overwritten
		case conflicts:
			d.Verdict = Conflict
		default:
			d.Verdict = Kept
		}
		r.decidedBy(d, sc)
	}
}

// theirs notes what somebody else changed in a value that the client left alone.
func (r *run) theirs(b, c int32) {
	if same(&r.base, b, &r.cur, c) {
		return
	}
	if !r.base.is(b, kindObject) || !r.cur.is(c, kindObject) {
		d := r.note(Kept, b, none, c)
		d.Sent = d.Base
		return
	}
	r.base.prepare(b)
	r.cur.prepare(c)
	for m := r.cur.firstChild(c); m != none; m = r.cur.nextChild(c, m) {
		if key, esc := r.cur.keyText(m); !r.cur.shadowed(m) {
			r.theirMember(r.base.find(b, key, esc, none), m)
		}
	}
	for m := r.base.firstChild(b); m != none; m = r.base.nextChild(b, m) {
		if key, esc := r.base.keyText(m); !r.base.shadowed(m) && r.cur.find(c, key, esc, none) == none {
			r.trail = append(r.trail, place{&r.base, m, none})
			d := r.note(Kept, m, none, none)
			d.Sent = d.Base
			r.trail = r.trail[:len(r.trail)-1]
		}
	}
}

// theirMember is theirs for member m of current.
func (r *run) theirMember(b, m int32) {
	r.trail = append(r.trail, place{&r.cur, m, none})
	r.theirs(b, m)
	r.trail = r.trail[:len(r.trail)-1]
}

// decidedBy notes which strategy decided about the value at the trail, and which rule gave it.
func (r *run) decidedBy(d *Decision, sc scope) {
	d.Both, d.Strategy = true, r.strategy(sc)
	if sc.rule != 0 {
		n := &r.m.rules[sc.rule]
		d.Rule = n.path
		d.Unfit = !n.strategy.anyValue() && d.Verdict != Calculated && d.Verdict != Combined
		return
	}
	broad, special := r.above()
	if broad != 0 {
		d.Rule = r.m.rules[broad].path
	}
	before := r.m.def
	if broad != 0 {
		before = r.m.rules[broad].strategy
	}
	if special != 0 && d.Strategy == Fail && before != Fail {
		d.Rule, d.Strategy, d.Unfit = r.m.rules[special].path, r.m.rules[special].strategy, true
	}
}

// above finds the rules that a value without one of its own has its strategy from: the deepest on the way to it, or at it, that holds for
// what is below, and the deepest behind that which is for numbers or arrays only.
func (r *run) above() (broad, special int32) {
	if len(r.m.rules) <= 1 {
		return 0, 0
	}
	states := []int32{0}
	for _, p := range r.trail {
		var next []int32
		for _, at := range states {
			n := &r.m.rules[at]
			if to := r.literal(n, p); to != 0 {
				next = append(next, to)
			}
			if n.star != 0 {
				next = append(next, n.star)
			}
		}
		for _, at := range next {
			if n := &r.m.rules[at]; n.ends && n.strategy.anyValue() {
				broad, special = at, 0
				break
			} else if n.ends {
				special = at
				break
			}
		}
		states = next
	}
	return broad, special
}

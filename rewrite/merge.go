package rewrite

import "bytes"

// A Merger merges with one set of strategies. It is immutable and safe for concurrent use.
type Merger struct {
	def    Strategy
	rules  []ruleNode
	limits Limits
}

// NewMerger returns a Merger that decides by the rules, and by def where none of them matches; def is Sent, Current or
// Fail. The error is a *RuleError.
func NewMerger(def Strategy, paths []PathRule) (*Merger, error) {
	rules, err := compileRules(def, paths)
	if err != nil {
		return nil, err
	}
	return &Merger{def: def, rules: rules}, nil
}

// WithLimits returns a Merger with the same strategies and other limits.
func (m *Merger) WithLimits(l Limits) *Merger {
	c := *m
	c.limits = l
	return &c
}

// A Result is a merged document.
type Result struct {
	// Doc is current with the edits spliced in: every byte of it that no edit touched is where it was. It is current
	// itself, not a copy, when nothing changed.
	Doc []byte
	// Changed says whether Doc differs from current.
	Changed bool
	// Overwritten has the JSON Pointers at which strategy Sent took the client's value although somebody else had changed
	// it, too: at most MaxPaths, long ones cut back to a value around. An array without elements that could be told
	// apart is named as a whole; the index of an element is that in current.
	Overwritten []string
	// OverwrittenMore is how many there were beyond Overwritten.
	OverwrittenMore int
}

// Merge replays the change base→sent on current; the package comment defines how. A nil base is the absent document, of
// which everything that was sent is a change. It is deterministic and keeps no reference to its arguments, but Result.Doc
// may be current.
//
// Errors: *ConflictError; *SyntaxError, ErrNotObject, ErrTooDeep or ErrTooLarge for any of the documents.
func (m *Merger) Merge(base, sent, current []byte) (Result, error) {
	return m.merge(base, sent, current, nil)
}

// merge is Merge, told to t if there is one.
func (m *Merger) merge(base, sent, current []byte, t *trace) (Result, error) {
	w := newWorkspace(m.limits)
	defer w.free()
	if err := w.parse(base, sent, current); err != nil {
		return Result{}, err
	}
	r := run{workspace: w, m: m, trace: t}
	r.value(0, 0, 0, r.root())
	if r.conflicts.paths != nil {
		return Result{}, &ConflictError{Paths: r.conflicts.paths, More: r.conflicts.more}
	}
	res := Result{Doc: current, Overwritten: r.overwritten.paths, OverwrittenMore: r.overwritten.more}
	if len(w.splices) > 0 {
		if w.splicedSize() > w.limits.Bytes {
			return Result{}, ErrTooLarge
		}
		if doc := w.render(); !bytes.Equal(doc, current) {
			res.Doc, res.Changed = doc, true
		}
	}
	return res, nil
}

// parse reads the three documents of a merge.
func (w *workspace) parse(base, sent, current []byte) error {
	if err := w.base.parseObject(base, w.limits); err != nil {
		return err
	}
	if err := w.sent.parseObject(sent, w.limits); err != nil {
		return err
	}
	return w.cur.parseObject(current, w.limits)
}

// A run is one merge.
type run struct {
	*workspace
	m                      *Merger
	overwritten, conflicts pathList
	trace                  *trace // of Explain, else nil
}

func (r *run) root() scope {
	if len(r.m.rules) <= 1 {
		return scope{inherit: r.m.def}
	}
	r.states = append(r.states, 0)
	return scope{lo: 0, hi: 1, inherit: r.m.def}
}

// A verdict says whose value a place gets.
type verdict uint8

const (
	stays     verdict = iota // current's: the client changed nothing there, or the strategy says so
	takes                    // the client's: nobody else changed it
	overwrite                // the client's, by strategy Sent
	conflicts                // nobody's
)

// judge decides about one value as a whole; any of the three may be missing.
func (r *run) judge(b, s, c int32, sc scope) verdict {
	v := r.decide(b, s, c, sc)
	if r.trace != nil {
		r.judged(v, b, s, c, sc)
	}
	return v
}

func (r *run) decide(b, s, c int32, sc scope) verdict {
	switch {
	case same(&r.base, b, &r.sent, s):
		return stays
	case same(&r.base, b, &r.cur, c):
		return takes
	case same(&r.sent, s, &r.cur, c):
		return stays
	}
	switch r.strategy(sc) {
	case Sent:
		return overwrite
	case Current:
		return stays
	}
	return conflicts
}

// settle notes a verdict about the value at the trail, and reports whether the client's value is taken.
func (r *run) settle(v verdict) bool {
	switch v {
	case overwrite:
		r.overwritten.add(r.trail)
	case conflicts:
		r.conflicts.add(r.trail)
	}
	return v == takes || v == overwrite
}

// value merges a value that both the client and current have; b may be none. It splices inside c.
func (r *run) value(b, s, c int32, sc scope) {
	if r.unchanged(b, s) {
		if r.trace != nil {
			r.theirs(b, c)
		}
		return
	}
	k := r.sent.nodes[s].kind
	if k < kindArray || r.cur.nodes[c].kind != k || b != none && !r.base.is(b, k) && !r.base.is(b, kindNull) {
		r.scalar(b, s, c, sc)
		return
	}
	if b != none && !r.base.is(b, k) {
		b = none // null is as good as nothing to begin a container from
	}
	if k == kindArray {
		r.array(b, s, c, sc)
		return
	}
	if st := r.strategy(sc); !st.anyValue() {
		sc.rule, sc.inherit = 0, Fail // a strategy for numbers or arrays
	}
	r.object(b, s, c, sc)
}

// scalar merges values of which at least one isn't a container, or not of the same kind.
func (r *run) scalar(b, s, c int32, sc scope) {
	st, n := r.strategy(sc), &r.cur.nodes[c]
	if st >= Sum && st <= Min && !same(&r.base, b, &r.sent, s) && !same(&r.base, b, &r.cur, c) {
		if text, ok := r.calculate(st, b, s, c); ok {
			if r.trace != nil {
				r.applied(st, b, s, c, sc)
			}
			if text != nil {
				r.splice(n.start, n.end, text)
			}
			return
		}
	}
	if r.settle(r.judge(b, s, c, sc)) {
		r.splice(n.start, n.end, r.sent.raw(s))
	}
}

// object merges key by key.
func (r *run) object(b, s, c int32, sc scope) {
	r.sent.prepare(s)
	r.cur.prepare(c)
	out, matched := r.edit(c), int32(0)
	sHint, bHint := r.sent.firstChild(s), none
	if b != none {
		bHint = r.base.firstChild(b)
	}
	for m := r.cur.firstChild(c); m != none; m = r.cur.nextChild(c, m) {
		key, esc := r.cur.keyText(m)
		sm, bm := r.sent.find(s, key, esc, sHint), r.base.find(b, key, esc, bHint)
		if sm != none {
			sHint = r.sent.after(s, sm)
		}
		if bm != none {
			bHint = r.base.after(b, bm)
		}
		shadowed := r.cur.shadowed(m)
		if sm != none && !shadowed {
			matched++
		}
		if sm == none && bm != none {
			r.removedMember(bm, m, c, sc, &out)
			continue
		}
		out.keep(m)
		switch {
		case shadowed:
		case sm != none && !r.unchanged(bm, sm):
			r.value(bm, sm, m, r.enter(sc, place{&r.cur, m, none}))
			r.leave(sc)
		case r.trace != nil:
			r.theirMember(bm, m)
		}
	}
	if matched < r.sent.nodes[s].count {
		r.newMembers(b, s, c, sc, &out)
	}
}

// unchanged reports whether the client's value has the base's very bytes.
func (r *run) unchanged(b, s int32) bool {
	return b != none && string(r.base.raw(b)) == string(r.sent.raw(s))
}

// removedMember decides about member m of object c, which the base has as b and the client took out.
func (r *run) removedMember(b, m, c int32, sc scope, out *container) {
	sub := r.enter(sc, place{&r.cur, m, none})
	defer r.leave(sc)
	if r.cur.shadowed(m) {
		// It goes or stays with the one that hides it: left alone, it would come to light.
		key, esc := r.cur.keyText(m)
		if r.goes(b, r.cur.find(c, key, esc, none), sub) {
			out.remove(m)
		} else {
			out.keep(m)
		}
		return
	}
	mark := r.mark()
	defer r.cut(mark)
	if r.setsDecide(b, none, m, sub) {
		plan, ok := r.plan(b, none, m, &sub)
		if ok && r.trace != nil {
			r.applied(r.strategy(sub), b, none, m, sub)
		}
		if ok && plan.empty() {
			out.remove(m)
			return
		} else if ok {
			out.keep(m)
			r.carryOut(plan, m, sub)
			return
		}
	}
	if r.settle(r.judge(b, none, m, sub)) {
		out.remove(m)
	} else {
		out.keep(m)
	}
}

// goes reports whether member m of current, which the client took out, is removed, without noting anything. It looks once
// for all the duplicates that m may hide.
func (r *run) goes(b, m int32, sc scope) bool {
	n := &r.cur.nodes[m]
	if n.flags&flagJudged != 0 {
		return n.flags&flagGone != 0
	}
	mark, overwritten, conflicted, trace := r.mark(), r.overwritten, r.conflicts, r.trace
	defer func() { r.cut(mark); r.overwritten, r.conflicts, r.trace = overwritten, conflicted, trace }()
	r.trace = nil
	v, planned := stays, false
	if r.setsDecide(b, none, m, sc) {
		var p plan
		if p, planned = r.plan(b, none, m, &sc); planned && p.empty() {
			v = takes
		}
	}
	if !planned {
		v = r.judge(b, none, m, sc)
	}
	n.flags |= flagJudged
	if v == takes || v == overwrite {
		n.flags |= flagGone
	}
	return n.flags&flagGone != 0
}

// newMembers adds what the client has and current hasn't, in the client's order.
func (r *run) newMembers(b, s, c int32, sc scope, out *container) {
	cHint, bHint := none, none
	for m := r.sent.firstChild(s); m != none; m = r.sent.nextChild(s, m) {
		if r.sent.shadowed(m) {
			continue
		}
		key, esc := r.sent.keyText(m)
		if cm := r.cur.find(c, key, esc, cHint); cm != none {
			cHint = r.cur.after(c, cm)
			continue
		}
		bm := r.base.find(b, key, esc, bHint)
		if bm != none {
			bHint = r.base.after(b, bm)
		}
		sub := r.enter(sc, place{&r.sent, m, none})
		if text := r.newMember(bm, m, sub); text != nil {
			out.insert(text)
		}
		r.leave(sc)
	}
}

// newMember returns what is to be inserted for the client's member m, which current doesn't have: nil is nothing.
func (r *run) newMember(b, m int32, sc scope) []byte {
	if r.setsDecide(b, m, none, sc) {
		mark := r.mark()
		defer r.cut(mark)
		if plan, ok := r.plan(b, m, none, &sc); ok {
			if r.trace != nil {
				r.applied(r.strategy(sc), b, m, none, sc)
			}
			return r.build(plan, m)
		}
	}
	if r.settle(r.judge(b, m, none, sc)) {
		return r.sent.member(m)
	}
	return nil
}

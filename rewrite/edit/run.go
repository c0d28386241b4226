package edit

import (
	"sync"

	"optimist/rewrite/tree"
)

// A run is one application of steps, or of operations, to a document.
type run struct {
	editor
	in              *Inputs
	conditionInputs Inputs // in with the candidate, room for conditions
	op              step   // of a JSON Patch
	n               int    // of the step
	s               *step
	val             tree.Value // the step's value
	taken           *node      // what a move has taken
	sources         [FromBase + 1]tree.Value
	trail           []slot // on the way to where the step is
	matched         int    // by `*`, in all
	changed         bool
	table           tree.Table
	buf             []byte
}

// A slot is a place of the document, where a value is or could be.
type slot struct {
	parent *node  // nil of the document itself
	it     *item  // nil where there is no value
	name   string // of a member
	at     int    // of an element
	star   bool   // it was found by `*`
	reason string // why there can't be a value
}

var runs = sync.Pool{New: func() any { return new(run) }}

func newRun(in *Inputs) *run {
	r, _ := runs.Get().(*run)
	r.in = in
	return r
}

// end gives the run's memory back.
func (r *run) end() {
	const keepBuf, keepValues = 1 << 12, 1 << 12
	r.free()
	r.table.Release(keepValues)
	clear(r.trail[:cap(r.trail)])
	if cap(r.buf) > keepBuf {
		r.buf = nil
	}
	r.op, r.conditionInputs = step{}, Inputs{}
	r.in, r.s, r.val, r.taken, r.sources = nil, nil, tree.Value{}, nil, [FromBase + 1]tree.Value{}
	r.trail, r.matched, r.changed = r.trail[:0], 0, false
	runs.Put(r)
}

// carryOut does step n, if its condition, which is said to hold, does, and its value is there.
func (r *run) carryOut(n int, s *step) (held bool, err error) {
	r.n, r.s = n, s
	if s.When != nil {
		if held, err = s.When.Holds(r.inputs()); err != nil {
			return false, &StepError{Step: n, Action: s.Action, Path: s.Path, Field: "when", Reason: err.Error(), Err: err}
		}
		if !held {
			return false, nil
		}
	}
	if s.Action == OpRefuse {
		return true, &TestError{Index: n, Message: s.Message}
	}
	r.val, r.taken = tree.Value{}, nil
	if actions[s.Action].value || s.Action == OpNow {
		if err := r.resolve(); err != nil {
			return true, err
		}
		if !r.val.Exists() && s.Action != OpTest {
			return true, nil
		}
	}
	if s.Action == OpMove && s.From == s.Path && !s.strict {
		return true, nil
	}
	r.above, r.trail = r.above[:0], r.trail[:0]
	return true, r.visit(slot{it: &r.root}, 0)
}

// inputs are what the step's condition can refer to.
func (r *run) inputs() *Inputs {
	if !r.s.When.ReadsCandidate() {
		return r.in
	}
	r.conditionInputs = *r.in
	r.conditionInputs.Candidate, _ = r.render() // without memory for it the run ends before its result
	return &r.conditionInputs
}

// visit goes down the step's path, of which i tokens lead to p, and does at its end, or ends, what the step does.
func (r *run) visit(p slot, i int) error {
	if err := r.bounded(); err != nil {
		return err
	}
	if actions[r.s.Action].from && i == r.s.shared {
		if ok, err := r.pick(p); err != nil || !ok {
			return err
		}
	}
	if i == len(r.s.path) {
		return r.do(p)
	}
	n, err := r.container(p, i)
	if n == nil || err != nil {
		return err
	}
	r.above = append(r.above, n)
	if token := r.s.path[i]; r.s.isStar(token) {
		err = r.every(n, i)
	} else {
		err = r.enter(r.slotOf(n, token), i)
	}
	r.above = r.above[:len(r.above)-1]
	return err
}

// enter is visit for what token i has led to.
func (r *run) enter(p slot, i int) error {
	r.trail = append(r.trail, p)
	defer func() { r.trail = r.trail[:len(r.trail)-1] }()
	if p.reason != "" {
		if !r.s.makes() {
			return r.nothing(p, i+1)
		}
		return r.fail("", r.pointer(i+1), p.reason)
	}
	return r.visit(p, i+1)
}

// every is visit for all that is in n.
func (r *run) every(n *node, i int) error {
	items := append(r.lists.Alloc(len(n.items))[:0], n.items...)
	for k := range items {
		at := k
		if n.kind == tree.Array && i == len(r.s.path)-1 {
			at = len(items) - 1 - k // an element may go: none that is still to come may move up
		}
		it := items[at]
		if !it.visible() {
			continue
		}
		if r.matched++; r.matched > r.limits.Values {
			return tree.ErrTooLarge
		}
		if err := r.enter(slot{parent: n, it: it, at: at, star: true}, i); err != nil {
			return err
		}
	}
	return nil
}

// slotOf returns the place in an open container that a token names.
func (r *run) slotOf(n *node, token string) slot {
	if n.kind == tree.Object {
		return slot{parent: n, it: n.member(token), name: token}
	}
	if token == "-" {
		return slot{parent: n, at: len(n.items)}
	}
	at, reason := arrayIndex(token, len(n.items)+1)
	p := slot{parent: n, at: at, reason: reason, name: token}
	if reason == "" && at < len(n.items) {
		p.it = n.items[at]
	}
	return p
}

// isIndex reports whether a token could name an element.
func isIndex(token string) bool {
	_, reason := arrayIndex(token, 1<<31-1)
	return reason == ""
}

// arrayIndex reads a token as an array index below n, as RFC 6901 has it: digits without a zero in front. The reason says
// why it is none.
func arrayIndex(token string, n int) (at int, reason string) {
	if token == "" || len(token) > 1 && token[0] == '0' {
		return 0, "is not an array index"
	}
	for i := range len(token) {
		if token[i] < '0' || token[i] > '9' {
			return 0, "is not an array index"
		}
		at = min(at*10+int(token[i]-'0'), n) // does not overflow
	}
	if at >= n {
		return 0, "is beyond the end of the array"
	}
	return at, ""
}

// container returns what is at p, opened, so that token i can be looked up in it; nil if there is nothing to be done. Where there
// is nothing, or null, a step that sets something makes it.
func (r *run) container(p slot, i int) (*node, error) {
	token, strict := r.s.path[i], r.s.strict
	star := r.s.isStar(token)
	if p.it == nil || p.it.node.kind == tree.Null && !strict {
		if star {
			return nil, nil
		}
		if strict || !r.s.makes() {
			return nil, r.nothing(p, i)
		}
		made := emptyObject
		if token == "-" {
			made = emptyArray
		}
		n := r.newNode(made).expand(&r.editor)
		return n, r.put(p, n)
	}
	n := p.it.node
	indexed := star || token == "-" || isIndex(token)
	switch {
	case n.kind == tree.Object, n.kind == tree.Array && (indexed || strict):
		return n.expand(&r.editor), nil
	case strict:
		p.reason = "leads into a value that is neither object nor array"
		return nil, r.nothing(p, i)
	case !r.s.makes() && r.s.Action != OpReplace && !star:
		return nil, r.nothing(p, i)
	}
	want := "object"
	if indexed {
		want = "object or array"
	}
	return nil, r.mismatch(n, r.pointer(i), want)
}

// Values of frozen trees.
var emptyObject, emptyArray = frozen("{}"), frozen("[]")

func frozen(src string) tree.Value {
	t := new(tree.Tree)
	if t.Parse([]byte(src), tree.Limits{}) == nil {
		t.Freeze()
	}
	return t.Root()
}

// nothing is what becomes of a step for which nothing is at p, where i tokens of its path lead, if it needs something there.
func (r *run) nothing(p slot, i int) error {
	switch {
	case r.s.Action == OpTest:
		return r.differs(r.pointer(i), "nothing")
	case r.s.strict:
		return r.fail("", r.s.Path, p.missing())
	case r.s.Action == OpReplace:
		return r.fail("", r.pointer(i), "names nothing that is there; add sets a value whether there is one or not")
	}
	return nil
}

// missing says why there is nothing at p.
func (p *slot) missing() string {
	switch {
	case p.reason != "":
		return p.reason
	case p.parent.kind == tree.Object:
		return "names no member of the object"
	case p.name == "": // it was -
		return "is the place behind the last element, where there is no value"
	}
	return "is beyond the end of the array"
}

// put makes n the value at p.
func (r *run) put(p slot, n *node) error {
	r.changed = true
	switch {
	case p.it != nil:
		p.it.node = n
	case p.parent.kind == tree.Object:
		if err := r.charge(len(p.name) + len(`,"":`)); err != nil {
			return err
		}
		p.parent.addMember(&r.editor, p.name, n)
	default:
		if err := r.insert(p.parent, p.at, n); err != nil {
			return err
		}
	}
	return r.deepen(n)
}

// pick looks up what is copied or moved: the rest of from, seen from p. ok is false where there is nothing.
func (r *run) pick(p slot) (ok bool, err error) {
	for _, token := range r.s.from[r.s.shared:] {
		if p.it != nil && !p.it.node.kind.IsContainer() {
			p = slot{reason: "leads into a value that is neither object nor array"}
		}
		if p.it == nil {
			break
		}
		p = r.slotOf(p.it.node.expand(&r.editor), token)
	}
	switch {
	case p.it == nil && r.s.strict:
		return false, r.fail("", r.s.From, p.missing())
	case p.it == nil, r.s.From == r.s.Path && r.s.Action == OpMove:
		return false, nil
	case r.s.Action == OpMove:
		r.taken = p.it.node
		return true, r.remove(p)
	}
	r.val, err = r.reread(p.it.node, true)
	return err == nil, err
}

// remove takes the value at p away.
func (r *run) remove(p slot) error {
	r.changed = true
	if p.parent.kind == tree.Object {
		p.parent.remove(p.it)
		return nil
	}
	return r.removeElement(p.parent, p.at)
}

package rewrite

import "sync"

// An application is one application of a transformer.
type application struct {
	*editor
	t       *Transformer
	in      *Inputs
	n       int // of the step
	s       *step
	val     reference // the step's value
	taken   *value    // what a move has taken
	sources [FromBase + 1]*tree
	trail   []slot // on the way to where the step is
	matched int    // by `*`, in all
	changed bool
	buf     []byte
}

// A reference is a value in a tree; none where there is no tree.
type reference struct {
	t    *tree
	node int32
}

// A slot is a place of the document, where a value is or could be.
type slot struct {
	parent *value // nil of the document itself
	it     *item  // nil where there is no value
	name   string // of a member
	at     int    // of an element
	star   bool   // it was found by `*`
	reason string // why there can't be a value
}

var applications = sync.Pool{New: func() any { return new(application) }}

func newApplication(t *Transformer, in *Inputs) *application {
	a, _ := applications.Get().(*application)
	a.editor, a.t, a.in = newEditor(t.limits), t, in
	return a
}

func (a *application) free() {
	const keepBuf = 1 << 12
	a.editor.free()
	trail, buf := a.trail[:0], a.buf[:0]
	clear(trail[:cap(trail)])
	if cap(buf) > keepBuf {
		buf = nil
	}
	*a = application{trail: trail, buf: buf}
	applications.Put(a)
}

// carryOut does step n, if its condition holds and its value is there.
func (a *application) carryOut(n int) error {
	a.n, a.s = n, &a.t.steps[n]
	s := a.s
	if s.When != nil {
		holds, err := s.When.Holds(a.inputs())
		if err != nil {
			return &StepError{Step: n, Action: s.Action, Path: s.Path, Field: "when", Reason: err.Error(), Err: err}
		}
		if !holds {
			return nil
		}
	}
	a.val, a.taken = reference{}, nil
	if s.Action.takesValue() || s.Action == OpNow {
		if err := a.resolve(); err != nil {
			return err
		}
		if a.val.t == nil && s.Action != OpTest {
			return nil
		}
	}
	if s.Action == OpMove && s.From == s.Path {
		return nil
	}
	a.above, a.trail = a.above[:0], a.trail[:0]
	return a.visit(slot{it: &a.root}, 0)
}

// inputs are what the step's condition can refer to.
func (a *application) inputs() *Inputs {
	if !a.s.When.ReadsCandidate() {
		return a.in
	}
	in := *a.in
	in.Candidate = a.render()
	return &in
}

// visit goes down the step's path, of which i tokens lead to p, and does at its end, or ends, what the step does.
func (a *application) visit(p slot, i int) error {
	if err := a.bounded(); err != nil {
		return err
	}
	if a.s.Action.takesFrom() && i == a.s.shared {
		if ok, err := a.pick(p); err != nil || !ok {
			return err
		}
	}
	if i == len(a.s.path) {
		return a.do(p)
	}
	v, err := a.container(p, i)
	if v == nil || err != nil {
		return err
	}
	a.above = append(a.above, v)
	if token := &a.s.path[i]; token.star {
		err = a.every(v, i)
	} else {
		err = a.enter(a.slotOf(v, token.text), i)
	}
	a.above = a.above[:len(a.above)-1]
	return err
}

// enter is visit for what token i has led to.
func (a *application) enter(p slot, i int) error {
	a.trail = append(a.trail, p)
	defer func() { a.trail = a.trail[:len(a.trail)-1] }()
	if p.reason != "" {
		if !a.s.Action.creates() {
			return a.nothing(i + 1)
		}
		return a.fail("", a.pointer(i+1), p.reason)
	}
	return a.visit(p, i+1)
}

// every is visit for all that is in v.
func (a *application) every(v *value, i int) error {
	items := append(a.lists.alloc(len(v.items))[:0], v.items...)
	for k := range items {
		at := k
		if v.kind == kindArray && i == len(a.s.path)-1 {
			at = len(items) - 1 - k // an element may go: none that is still to come may move up
		}
		it := items[at]
		if it.gone || it.hidden {
			continue
		}
		if a.matched++; a.matched > a.limits.Values {
			return ErrTooLarge
		}
		if err := a.enter(slot{parent: v, it: it, at: at, star: true}, i); err != nil {
			return err
		}
	}
	return nil
}

// slotOf returns the place in an open container that a token names.
func (a *application) slotOf(v *value, token string) slot {
	if v.kind == kindObject {
		return slot{parent: v, it: v.member(token), name: token}
	}
	n := len(v.items)
	if token == "-" {
		return slot{parent: v, at: n}
	}
	at, reason := arrayIndex(token, n+1)
	p := slot{parent: v, at: at, reason: reason, name: token}
	if reason == "" && at < n {
		p.it = v.items[at]
	}
	return p
}

// container returns what is at p, opened, so that token i can be looked up in it; nil if there is nothing to be done. Where there
// is nothing, or null, an action that sets something makes it.
func (a *application) container(p slot, i int) (*value, error) {
	token, creates := &a.s.path[i], a.s.Action.creates()
	if p.it == nil || p.it.v.kind == kindNull {
		if token.star {
			return nil, nil
		}
		if !creates {
			return nil, a.nothing(i)
		}
		made := &emptyObject
		if token.text == "-" {
			made = &emptyArray
		}
		v := a.newValue(made, 0).expand(&a.memory)
		return v, a.put(p, v)
	}
	v := p.it.v
	switch {
	case v.kind >= kindArray && (v.kind == kindObject || token.star || token.text == "-" || isIndex(token.text)):
		return v.expand(&a.memory), nil
	case !creates && a.s.Action != OpReplace && !token.star:
		return nil, a.nothing(i)
	}
	want := "object"
	if token.star || token.text == "-" || isIndex(token.text) {
		want = "object or array"
	}
	return nil, a.mismatch(v, a.pointer(i), want)
}

// Trees that are never written to.
var emptyObject, emptyArray = frozen("{}"), frozen("[]")

func frozen(src string) (t tree) {
	if t.parse([]byte(src), Limits{}.withDefaults()) == nil {
		t.freeze()
	}
	return t
}

// creates reports whether the action sets something where there is nothing.
func (a Action) creates() bool {
	switch a {
	case OpRemove, OpReplace, OpTest, OpRemoveEmpty:
		return false
	}
	return true
}

// nothing is what becomes of a step for which nothing is there at token i of its path, if it sets nothing.
func (a *application) nothing(i int) error {
	switch a.s.Action {
	case OpReplace:
		return a.fail("", a.pointer(i), "names nothing that is there; add sets a value whether there is one or not")
	case OpTest:
		return a.differs(a.pointer(i), "nothing")
	}
	return nil
}

// put makes v the value at p.
func (a *application) put(p slot, v *value) error {
	a.changed = true
	switch {
	case p.it != nil:
		p.it.v = v
	case p.parent.kind == kindObject:
		if err := a.charge(len(p.name) + len(`,"":`)); err != nil {
			return err
		}
		p.parent.addMember(&a.memory, p.name, v)
	default:
		if err := a.insert(p.parent, p.at, v); err != nil {
			return err
		}
	}
	return a.deepen(v)
}

// pick looks up what is copied or moved: the rest of from, seen from p. ok is false where there is nothing.
func (a *application) pick(p slot) (ok bool, err error) {
	for _, token := range a.s.from[a.s.shared:] {
		if p.it == nil || p.it.v.kind < kindArray {
			return false, nil
		}
		if p = a.slotOf(p.it.v.expand(&a.memory), token.text); p.it == nil {
			return false, nil
		}
	}
	if p.it == nil {
		return false, nil
	}
	v := p.it.v
	if a.s.Action == OpMove {
		a.taken = v
		return true, a.remove(p)
	}
	if v.open {
		if v, err = a.reread(v); err != nil {
			return false, err
		}
	}
	a.val = reference{v.t, v.node}
	return true, nil
}

// reread returns what was edited as if it had just been read.
func (e *editor) reread(v *value) (*value, error) {
	text := v.append(nil)
	if err := e.spend(workOfByte * len(text)); err != nil {
		return nil, err
	}
	t := e.tree()
	if err := t.parse(text, e.limits); err != nil {
		return nil, err
	}
	return e.newValue(t, 0), e.spend(workOfOpening * len(t.nodes))
}

// remove takes the value at p away.
func (a *application) remove(p slot) error {
	a.changed = true
	if p.parent.kind == kindObject {
		p.parent.removeMember(p.it)
		return nil
	}
	return a.removeElement(p.parent, p.at)
}

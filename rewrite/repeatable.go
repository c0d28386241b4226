package rewrite

// Repeatable reports whether the change base→sent may be applied to current although it may have been applied before (an
// answer was lost, and somebody else has written since): it only sets and removes values, or changes them under Union, Max
// or Min, or inside of elements and whole elements under ByKey; and every path that it touches is in current still as in
// the base. Insertions into an array, removals from it and sums count twice when they are applied twice, so they never are
// repeatable. A change of nothing is.
//
// Errors are those of Merge for a document.
func (m *Merger) Repeatable(base, sent, current []byte) (bool, error) {
	w := newWorkspace(m.limits)
	defer w.free()
	if err := w.parse(base, sent, current); err != nil {
		return false, err
	}
	r := run{workspace: w, m: m}
	return r.repeatable(0, 0, 0, r.root()), nil
}

// Repeatable is Merger.Repeatable without any rules.
func Repeatable(base, sent, current []byte) (bool, error) {
	m := Merger{rules: make([]ruleNode, 1)}
	return m.Repeatable(base, sent, current)
}

func (r *run) repeatable(b, s, c int32, sc scope) bool {
	if same(&r.base, b, &r.sent, s) {
		return true
	}
	if r.base.is(b, kindObject) && r.sent.is(s, kindObject) {
		return r.cur.is(c, kindObject) && r.membersRepeatable(b, s, c, sc)
	}
	st := r.strategy(sc)
	if st == ByKey && r.base.is(b, kindArray) && r.sent.is(s, kindArray) && r.cur.is(c, kindArray) {
		return r.elementsRepeatable(b, s, c, sc)
	}
	switch {
	case !same(&r.base, b, &r.cur, c):
		return false
	case st == Sum && r.sent.is(s, kindNumber):
		return false
	}
	return st == Union || !r.base.is(b, kindArray) || !r.sent.is(s, kindArray)
}

func (r *run) membersRepeatable(b, s, c int32, sc scope) bool {
	r.base.prepare(b)
	r.sent.prepare(s)
	for m := r.sent.firstChild(s); m != none; m = r.sent.nextChild(s, m) {
		if r.sent.shadowed(m) {
			continue
		}
		key, esc := r.sent.keyText(m)
		bm, cm := r.base.find(b, key, esc, none), r.cur.find(c, key, esc, none)
		ok := r.repeatable(bm, m, cm, r.enter(sc, place{&r.sent, m, none}))
		if r.leave(sc); !ok {
			return false
		}
	}
	for m := r.base.firstChild(b); m != none; m = r.base.nextChild(b, m) {
		key, esc := r.base.keyText(m)
		if r.base.shadowed(m) || r.sent.find(s, key, esc, none) != none {
			continue
		}
		if !same(&r.base, m, &r.cur, r.cur.find(c, key, esc, none)) {
			return false
		}
	}
	return true
}

// elementsRepeatable is membersRepeatable for arrays whose elements have keys.
func (r *run) elementsRepeatable(b, s, c int32, sc scope) bool {
	mark := r.mark()
	defer r.cut(mark)
	base, sent, cur := r.elements(&r.base, b), r.elements(&r.sent, s), r.elements(&r.cur, c)
	total := len(base) + len(sent) + len(cur)
	ids, key := r.newTable(total), r.m.rules[sc.rule].key
	inBase, ok1 := r.keyed(&ids, total, &r.base, base, key)
	inSent, ok2 := r.keyed(&ids, total, &r.sent, sent, key)
	inCur, ok3 := r.keyed(&ids, total, &r.cur, cur, key)
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	for id := range ids.n {
		if inBase[id] == 0 && inSent[id] == 0 {
			continue // somebody else's
		}
		sub := r.enter(sc, place{&r.cur, none, id})
		ok := r.repeatable(inBase[id]-1, inSent[id]-1, inCur[id]-1, sub)
		if r.leave(sc); !ok {
			return false
		}
	}
	return true
}

package rewrite

// A plan is what one of the array strategies (Union, Append, ByKey) makes of an array that both sides changed.
type plan struct {
	cur  []int32 // current's elements
	keep []int32 // 1 for each of them that stays
	add  []int32 // the client's elements that go to the end
	// Of ByKey: for each of current's elements the client's and the base's with the same key, or none.
	sent, base []int32
}

// empty reports whether nothing is left of the array.
func (p *plan) empty() bool {
	for _, k := range p.keep {
		if k != 0 {
			return false
		}
	}
	return len(p.add) == 0
}

// setsDecide reports whether an array strategy takes a value: both sides changed it, and what is there are arrays. A missing
// one, and a null of the base, are empty arrays.
func (r *run) setsDecide(b, s, c int32, sc scope) bool {
	if st := r.strategy(sc); st != Union && st != Append && st != ByKey {
		return false
	}
	if b != none && !r.base.is(b, kindArray) && !r.base.is(b, kindNull) ||
		s != none && !r.sent.is(s, kindArray) || c != none && !r.cur.is(c, kindArray) {
		return false
	}
	return !same(&r.base, b, &r.sent, s) && !same(&r.base, b, &r.cur, c)
}

// plan applies the strategy that sc has. Where it can't be applied, ok is false and sc is changed to what decides instead.
func (r *run) plan(b, s, c int32, sc *scope) (p plan, ok bool) {
	p.cur = r.elements(&r.cur, c)
	p.keep = r.ints.alloc(len(p.cur))
	switch r.strategy(*sc) {
	case Union:
		r.union(&p, r.elements(&r.base, b), r.elements(&r.sent, s))
		return p, true
	case Append:
		if r.appended(&p, b, s, c) {
			return p, true
		}
		sc.rule, sc.inherit = 0, Fail
	case ByKey:
		if r.byKey(&p, r.elements(&r.base, b), r.elements(&r.sent, s), *sc) {
			return p, true
		}
		sc.rule = 0
	}
	return p, false
}

const (
	inBase = 1 << iota
	inSent
	inCur
)

// union keeps what current has, but for what the client took out of the base, and adds what the client added.
func (r *run) union(p *plan, base, sent []int32) {
	total := len(base) + len(sent) + len(p.cur)
	ids, where := r.newTable(total), r.ints.alloc(total)
	for _, i := range base {
		where[ids.id(&r.base, i)] |= inBase
	}
	for _, i := range sent {
		where[ids.id(&r.sent, i)] |= inSent
	}
	for k, i := range p.cur {
		id := ids.id(&r.cur, i)
		where[id] |= inCur
		if where[id]&(inBase|inSent) != inBase {
			p.keep[k] = 1
		}
	}
	p.add = r.ints.alloc(len(sent))[:0]
	for _, i := range sent {
		if id := ids.id(&r.sent, i); where[id] == inSent {
			where[id] |= inCur
			p.add = append(p.add, i)
		}
	}
}

// appended keeps what current has, but for the elements of the base that the client removed, and adds the elements that the
// client inserted.
func (r *run) appended(p *plan, b, s, c int32) bool {
	var e edits
	var fits [2]bool
	e.sent, fits[0] = r.align(&r.base, b, &r.sent, s)
	e.cur, fits[1] = r.align(&r.base, b, &r.cur, c)
	if !fits[0] || !fits[1] {
		return false
	}
	e.bySent, e.byCur = r.script(&e.sent), r.script(&e.cur)
	e.drop = r.ints.alloc(len(e.sent.b))
	r.dropMoves(&e)
	for k, i := range e.cur.from {
		if i == none || e.sent.to[i] != none {
			p.keep[k] = 1
		}
	}
	p.add = r.ints.alloc(len(e.sent.b))[:0]
	for k, i := range e.sent.from {
		if i == none && e.drop[k] == 0 {
			p.add = append(p.add, e.sent.b[k])
		}
	}
	return true
}

// byKey merges elements as objects merge members. It returns false if an element of any of the three arrays is no object,
// has no key, or shares it with another.
func (r *run) byKey(p *plan, base, sent []int32, sc scope) bool {
	total := len(base) + len(sent) + len(p.cur)
	ids, key := r.newTable(total), r.m.rules[sc.rule].key
	inBase, ok1 := r.keyed(&ids, total, &r.base, base, key)
	inSent, ok2 := r.keyed(&ids, total, &r.sent, sent, key)
	inCur, ok3 := r.keyed(&ids, total, &r.cur, p.cur, key)
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	p.base, p.sent = r.ints.alloc(len(p.cur)), r.ints.alloc(len(p.cur))
	for k, i := range p.cur {
		id := ids.id(&r.cur, r.keyOf(&r.cur, i, key))
		b, s := inBase[id]-1, inSent[id]-1
		p.base[k], p.sent[k] = b, s
		if s != none || b == none || !r.elementGoes(b, s, i, place{&r.cur, none, int32(k)}, sc) {
			p.keep[k] = 1
		}
	}
	p.add = r.ints.alloc(len(sent))[:0]
	for k, i := range sent {
		id := ids.id(&r.sent, r.keyOf(&r.sent, i, key))
		if inCur[id] == 0 && r.elementGoes(inBase[id]-1, i, none, place{&r.sent, none, int32(k)}, sc) {
			p.add = append(p.add, i)
		}
	}
	return true
}

// elementGoes decides about an element that the client or current doesn't have: whether it is as the client has it.
func (r *run) elementGoes(b, s, c int32, at place, sc scope) bool {
	sub := r.enter(sc, at)
	defer r.leave(sc)
	return r.settle(r.judge(b, s, c, sub))
}

// keyed returns, for each id of a key, 1 plus the element that has it; 0 if none has.
func (r *run) keyed(ids *valueTable, total int, t *tree, list []int32, key string) (byID []int32, ok bool) {
	byID = r.ints.alloc(total)
	for _, i := range list {
		k := r.keyOf(t, i, key)
		if k == none {
			return nil, false
		}
		id := ids.id(t, k)
		if byID[id] != 0 {
			return nil, false
		}
		byID[id] = i + 1
	}
	return byID, true
}

// keyOf returns the value by which element i is told from others, or none.
func (r *run) keyOf(t *tree, i int32, key string) int32 {
	if !t.is(i, kindObject) {
		return none
	}
	k := t.find(i, []byte(key), false, none)
	if k == none || t.nodes[k].kind >= kindArray || t.nodes[k].kind == kindNull {
		return none
	}
	return k
}

// carryOut writes a plan for array c of current.
func (r *run) carryOut(p plan, c int32, sc scope) {
	out := r.edit(c)
	for k, i := range p.cur {
		if p.keep[k] == 0 {
			out.remove(i)
			continue
		}
		out.keep(i)
		if p.sent != nil && p.sent[k] != none {
			r.element(p.base[k], p.sent[k], i, int32(k), sc)
		}
	}
	for _, i := range p.add {
		out.insert(r.sent.raw(i))
	}
}

// build returns the client's member m with the elements that a plan adds as its array; nil if there are none.
func (r *run) build(p plan, m int32) []byte {
	if len(p.add) == 0 {
		return nil
	}
	n := &r.sent.nodes[m]
	text := append([]byte(nil), r.sent.src[n.key:n.start]...)
	for k, i := range p.add {
		if k == 0 {
			text = append(text, '[')
		} else {
			text = append(text, ',')
		}
		text = append(text, r.sent.raw(i)...)
	}
	return append(text, ']')
}

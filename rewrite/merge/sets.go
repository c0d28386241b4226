package merge

import (
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// A plan is what one of the array strategies (Union, Append, ByKey) makes of an array that both sides changed.
type plan struct {
	cur  []tree.Value // current's elements
	keep []int32      // for each of them, whether it stays, or goes elsewhere
	add  []tree.Value // the client's elements that go to the end
	// Of ByKey: for each of current's elements the client's and the base's with the same key, if there are any.
	sent, base []tree.Value
	moved      []moved // of ByKey: the elements that go elsewhere, in their new order
	made       []byte  // the array of what is added, where current has none
}

// empty reports whether nothing is left of the array.
func (p *plan) empty() bool {
	for _, k := range p.keep {
		if k != gone {
			return false
		}
	}
	return len(p.add) == 0
}

// combine applies the array strategy of sc, if it has one that takes the value: both sides changed it, and what is there are arrays. A
// missing one, and null, are empty arrays. If one side has left out an array that it has emptied, that is no value that other strategies
// decide about, either: the array keeps what the other side has put in. Where the strategy can't be applied, ok is false and sc is changed
// to what decides instead.
func (r *run) combine(b, s, c tree.Value, sc *scope) (p plan, ok bool) {
	st := r.strategy(*sc)
	if st < Union && !(st.anyValue() && isEmptied(b, s, c)) || !isList(b) || !isList(s) || !isList(c) || b.Equal(s) || b.Equal(c) {
		return plan{}, false
	}
	p.cur = r.Elements(c)
	p.keep = r.Ints.Alloc(len(p.cur))
	switch st {
	case Union:
		ok = r.union(&p, r.Elements(b), r.Elements(s))
	case ByKey:
		if ok = r.byKey(&p, r.Elements(b), r.Elements(s), r.rules[sc.rule].key, *sc); !ok {
			sc.rule = 0
			return r.combine(b, s, c, sc)
		}
	default:
		if ok = r.appended(&p, sides{b, s, c}, *sc); !ok && st == Append {
			sc.unfit()
		}
	}
	if ok {
		if c.Kind() != tree.Array {
			p.made = p.list()
		}
		r.account.decided(r, ruling{Combined, true, p.made}, sides{b, s, c}, *sc)
	}
	return p, ok
}

const (
	inBase = 1 << iota
	inSent
	inCur
)

// union keeps what current has, but for what the client took out of the base, and adds what the client added. It always can.
func (r *run) union(p *plan, base, sent []tree.Value) bool {
	total, ids := len(base)+len(sent)+len(p.cur), &r.Table
	ids.Reset(total)
	where := r.Ints.Alloc(total)
	for _, e := range base {
		where[ids.Number(e)] |= inBase
	}
	for _, e := range sent {
		where[ids.Number(e)] |= inSent
	}
	for k, e := range p.cur {
		id := ids.Number(e)
		where[id] |= inCur
		if where[id]&(inBase|inSent) != inBase {
			p.keep[k] = stays
		}
	}
	p.add = r.List(len(sent))
	for _, e := range sent {
		if id := ids.Number(e); where[id] == inSent {
			where[id] |= inCur
			p.add = append(p.add, e)
		}
	}
	return true
}

// appended keeps what current has, but for the elements of the base that the client removed, and adds the elements that the
// client inserted. Without the rule append, the array is one that a side has emptied. If the other side has changed numbers or arrays in
// it, it is one value: of a point, or a polygon, no part may be left.
func (r *run) appended(p *plan, of sides, sc scope) bool {
	e, ok := r.edits(of.b, of.s, of.c, sc)
	if !ok {
		return false
	}
	if r.strategy(sc) != Append {
		if by, ok := r.byIdentity(&e, sc); ok {
			*p = by
			return true
		}
		if changeParts(&e.sent) || changeParts(&e.cur) {
			return false
		}
		r.failElements(&e, sc)
	}
	r.dropMoves(&e)
	r.dropEchoes(&e)
	for k, i := range e.cur.From {
		if i == diff.None && e.dropCur[k] == 0 || i != diff.None && e.sent.To[i] != diff.None {
			p.keep[k] = stays
		}
	}
	p.add = r.List(len(e.sent.B))
	for k, i := range e.sent.From {
		if i == diff.None && e.drop[k] == 0 {
			p.add = append(p.add, e.sent.B[k])
		}
	}
	return true
}

// changeParts reports whether a side changed an array with elements that mean nothing without the others: numbers, or arrays.
func changeParts(side *diff.Alignment) bool {
	return side.Removed() > 0 && side.Inserted() > 0 &&
		slices.ContainsFunc(side.A, func(v tree.Value) bool { return !v.Kind().HasIdentity() })
}

// byKey merges elements as objects merge members; key is the member that tells them apart. It returns false if an element of any of the
// three arrays is no object, has no key, or shares it with another.
func (r *run) byKey(p *plan, base, sent []tree.Value, key string, sc scope) bool {
	in, ok := r.match(base, sent, p.cur, key)
	if !ok {
		return false
	}
	p.base, p.sent, p.add = r.List(len(p.cur)), r.List(len(p.cur)), r.List(len(sent))
	for k, e := range p.cur {
		id := r.Table.Number(diff.KeyOf(e, key))
		b, s := in.base[id], in.sent[id]
		p.base, p.sent = append(p.base, b), append(p.sent, s)
		if s.Exists() || !b.Exists() || !r.takesElement(b, s, e, k, sc) {
			p.keep[k] = stays
		}
	}
	for k, e := range sent {
		id := r.Table.Number(diff.KeyOf(e, key))
		if !in.cur[id].Exists() && r.takesElement(in.base[id], e, tree.Value{}, k, sc) {
			p.add = append(p.add, e)
		}
	}
	r.move(p, base, sent, key)
	r.failKeyed(&in, base, key, sc)
	return true
}

// takesElement is takes for an element that the client or current doesn't have.
func (r *run) takesElement(b, s, c tree.Value, index int, sc scope) bool {
	sub := r.enter(sc, tree.Place{Index: index})
	defer r.leave(sc)
	return r.takes(b, s, c, sub)
}

// keyed are the elements of three arrays by the numbers that the workspace's table gives their keys.
type keyed struct{ base, sent, cur []tree.Value }

// match finds the elements with the same keys. ok is false if one has no key, or shares it with another of its array.
func (r *run) match(base, sent, cur []tree.Value, key string) (in keyed, ok bool) {
	total := len(base) + len(sent) + len(cur)
	r.Table.Reset(total)
	in = keyed{r.List(total)[:total], r.List(total)[:total], r.List(total)[:total]}
	for _, side := range [...]struct{ list, byKey []tree.Value }{{base, in.base}, {sent, in.sent}, {cur, in.cur}} {
		for _, e := range side.list {
			k := diff.KeyOf(e, key)
			if !k.Exists() {
				return in, false
			}
			id := r.Table.Number(k)
			if side.byKey[id].Exists() {
				return in, false
			}
			side.byKey[id] = e
		}
	}
	return in, true
}

// carryOut writes a plan for array c of current, or for the null there.
func (r *run) carryOut(p plan, c tree.Value, sc scope) {
	if c.Kind() != tree.Array {
		if p.made != nil {
			r.replace(c, p.made)
		}
		return
	}
	out := r.edit(c)
	r.insertMoved(&p, -1, &out, sc)
	for k, e := range p.cur {
		if !out.keepOrRemove(e, p.keep[k] == stays) {
			continue
		}
		if p.sent != nil && p.sent[k].Exists() {
			r.element(p.base[k], p.sent[k], e, k, sc)
		}
		r.insertMoved(&p, k, &out, sc)
	}
	for _, e := range p.add {
		out.insert(e.Raw())
	}
}

// list is the array of the elements that a plan adds; nil if there are none.
func (p *plan) list() []byte {
	if len(p.add) == 0 {
		return nil
	}
	text := []byte{'['}
	for k, e := range p.add {
		if k > 0 {
			text = append(text, ',')
		}
		text = append(text, e.Raw()...)
	}
	return append(text, ']')
}

package merge

import (
	"cmp"
	"slices"

	"optimist/rewrite/diff"
	"optimist/rewrite/tree"
)

// What a plan makes of one of current's elements.
const (
	gone int32 = iota
	stays
	moves // it goes elsewhere: see plan.moved
)

// moved is an element of current that goes elsewhere.
type moved struct{ from, behind int32 } // its place, and the place plus 1 of the one behind which it goes

// move has elements go where the client has moved them, if nobody else has: to where the fewest of those that stay are on another side of
// them than in the client's array. It needs the numbers of match.
func (r *run) move(p *plan, base, sent []tree.Value, key string) {
	inSent, inCur := r.places(sent, key), r.places(p.cur, key)
	bySent, byCur := r.orders(base, key, inSent, inCur)
	if slices.IsSorted(bySent) {
		return
	}
	sentLeft, curLeft := rising(bySent), rising(byCur)
	for x, k := range byCur {
		if !sentLeft[x] && curLeft[x] {
			p.keep[k-1] = moves
		}
	}
	var order []int32 // the places of those that go elsewhere, as the client has them
	for _, e := range sent {
		if k := inCur[r.Table.Number(diff.KeyOf(e, key))]; k != 0 && p.keep[k-1] == moves {
			order = append(order, k-1)
		}
	}
	there := r.Ints.Alloc(len(p.cur)) // the client's places of current's elements, plus 1
	for k, e := range p.cur {
		there[k] = inSent[r.Table.Number(diff.KeyOf(e, key))]
	}
	p.findPlaces(there, order, 0, len(p.cur))
}

// findPlaces finds where elements go, which come in the client's order: behind one of current's elements from lo on and before hi, or right
// before these. What is later in that order never goes to an earlier place: the place of the one in the middle bounds those of the others.
func (p *plan) findPlaces(there, order []int32, lo, hi int) {
	if len(order) == 0 {
		return
	}
	mid := len(order) / 2
	best, wrong, least := lo, 0, 0
	for k := lo; k < hi; k++ {
		switch {
		case there[k] == 0 || p.keep[k] != stays:
		case there[k] > there[order[mid]]:
			wrong++
		default:
			if wrong--; wrong < least {
				best, least = k+1, wrong
			}
		}
	}
	p.findPlaces(there, order[:mid], lo, best)
	p.moved = append(p.moved, moved{order[mid], int32(best)})
	p.findPlaces(there, order[mid+1:], best, hi)
}

// places lists, by the keys' numbers, where in an array the elements are, plus 1. It is 0 for those that aren't there.
func (r *run) places(elements []tree.Value, key string) []int32 {
	list := r.Ints.Alloc(r.Table.Len())
	for k, e := range elements {
		list[r.Table.Number(diff.KeyOf(e, key))] = int32(k) + 1
	}
	return list
}

// orders lists the places of those of the base's elements that are in both other arrays.
func (r *run) orders(base []tree.Value, key string, inSent, inCur []int32) (bySent, byCur []int32) {
	bySent, byCur = r.Ints.Alloc(len(base))[:0], r.Ints.Alloc(len(base))[:0]
	for _, e := range base {
		if id := r.Table.Number(diff.KeyOf(e, key)); inSent[id] != 0 && inCur[id] != 0 {
			bySent, byCur = append(bySent, inSent[id]), append(byCur, inCur[id])
		}
	}
	return bySent, byCur
}

// rising reports which of the places, of which no two are equal, are in a longest rising subsequence.
func rising(places []int32) (in []bool) {
	before := make([]int, len(places)) // of each, the one before it in the longest that ends with it; -1: it is the first
	var ends []int                     // for each length, where the one with the least end ends
	for x, place := range places {
		n, _ := slices.BinarySearchFunc(ends, place, func(end int, place int32) int { return cmp.Compare(places[end], place) })
		before[x] = -1
		if n > 0 {
			before[x] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, 0)
		}
		ends[n] = x
	}
	in = make([]bool, len(places))
	if len(ends) > 0 {
		for x := ends[len(ends)-1]; x >= 0; x = before[x] {
			in[x] = true
		}
	}
	return in
}

// insertMoved inserts the elements that go behind current's element k; behind none if that is -1.
func (r *run) insertMoved(p *plan, k int, out *container, sc scope) {
	for ; len(p.moved) > 0 && int(p.moved[0].behind) == k+1; p.moved = p.moved[1:] {
		at := int(p.moved[0].from)
		outside := r.splices
		r.splices = nil
		r.element(p.base[at], p.sent[at], p.cur[at], at, sc)
		r.account.merged(r, p.cur[at])
		text := r.result(p.cur[at])
		r.splices = outside
		out.insert(text)
	}
}

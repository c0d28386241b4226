package viewcache

import (
	"slices"

	"optimist/internal/doc"
)

// A name may come to stand for another index. What a session has seen of a document by the name counts there, too: the session's next
// change is from that. But its numbers are no guard there. So Carry gives it places before all that is seen in the other index, and numbers
// below those of all revisions.

// firstOrder is the place before the first read or write of a memory. The places up to it are for what is carried.
const firstOrder = 1 << 40

// IsCarried reports whether n stand for a revision that was seen in another index.
func IsCarried(n doc.Numbers) bool { return n.SeqNo < 0 }

// Carry moves what old has, an entry of the memory from, into e, an entry of m. In old only the numbers stay, as guards: the session may
// also write there, by the name of that index. What only guards in old isn't moved.
func (m *Memory) Carry(from *Memory, old, e *Entry) {
	p := m.places(old)
	for i := range old.Reads {
		if r := &old.Reads[i]; !r.Doubt {
			m.carryRead(e, r, p)
			from.free(old, r.Body)
			r.Body, r.Doubt = nil, true
		}
	}
	var past []Past
	for i := range old.Past {
		past = append(past, Past{m.carriedView(e, &old.Past[i].View, p), old.Past[i].Written})
	}
	from.forgetHistory(old, all)
	if v := &old.View; v.Set && !v.Doubt {
		switch carried := m.carriedView(e, v, p); {
		case !e.View.Set:
			e.View = carried
		case carried.SentBody != nil && carried.StoredBody != nil:
			past = append(past, Past{carried, true})
		default:
			m.freeBoth(e, &carried)
		}
		from.freeBoth(old, v)
		v.SentBody, v.StoredBody, v.Doubt = nil, nil, true
	}
	for _, t := range old.Traced {
		if Find(e.Reads, p.numbersOf(t.Numbers)) >= 0 {
			e.Trace(t.Trace, p.numbersOf(t.Numbers))
		}
	}
	e.Past = slices.Insert(e.Past, 0, past...)
	e.Shared, e.Crowd, e.Ticket = e.Shared || old.Shared, max(e.Crowd, old.Crowd), max(e.Ticket, old.Ticket)
	if !e.Empty() {
		e.Lost = NoReason
	}
	m.limit(e)
	m.limitHistory(e)
	from.charge(old)
}

// carryRead adds the read r of another index to e.
func (m *Memory) carryRead(e *Entry, r *Read, p *places) {
	carried := *r
	carried.Sight, carried.Body = p.sightOf(&r.Sight), nil
	if i := Find(e.Reads, carried.Numbers); i >= 0 { // in neither index was there a document
		e.Reads[i].Count, e.Reads[i].Programs = e.Reads[i].Count+r.Count, Programs{}
		return
	}
	if r.Body != nil {
		carried.Body = m.hold(e, carried.Numbers, r.Body.Data)
	}
	i := slices.IndexFunc(e.Reads, func(o Read) bool { return o.Order > carried.Order })
	if i < 0 {
		i = len(e.Reads)
	}
	e.Reads = slices.Insert(e.Reads, i, carried)
}

// carriedView is the view v of another index for e, which holds its bodies.
func (m *Memory) carriedView(e *Entry, v *View, p *places) View {
	carried := *v
	carried.Sight, carried.Answer, carried.StoredBody, carried.SentBody = p.sightOf(&v.Sight), doc.Numbers{}, nil, nil
	if v.StoredBody != nil {
		carried.StoredBody = m.hold(e, carried.Numbers, v.StoredBody.Data)
	}
	switch {
	case v.SentBody == v.StoredBody:
		carried.SentBody = carried.StoredBody
	case v.SentBody != nil:
		carried.SentBody = m.Own(e, v.SentBody.Data)
	}
	return carried
}

// places are the places and the numbers that an entry's revisions get in another index. They keep their order.
type places struct {
	numbers []doc.Numbers
	orders  []uint64
	first   uint64
}

// places makes room for what old has.
func (m *Memory) places(old *Entry) *places {
	p := &places{first: m.carried + 1}
	add := func(s *Sight) { p.numbers, p.orders = append(p.numbers, s.Numbers), append(p.orders, s.Order) }
	for i := range old.Reads {
		add(&old.Reads[i].Sight)
	}
	for i := range old.Past {
		add(&old.Past[i].Sight)
	}
	add(&old.View.Sight)
	slices.SortFunc(p.numbers, doc.Numbers.Compare)
	slices.Sort(p.orders)
	m.carried += uint64(len(p.orders))
	return p
}

func (p *places) numbersOf(n doc.Numbers) doc.Numbers {
	if !n.Known() {
		return n
	}
	i, _ := slices.BinarySearchFunc(p.numbers, n, doc.Numbers.Compare)
	return doc.Numbers{SeqNo: int64(p.first) + int64(i) - firstOrder, PrimaryTerm: 1} //nolint:gosec // far below
}

func (p *places) sightOf(s *Sight) Sight {
	i, _ := slices.BinarySearch(p.orders, s.Order)
	carried := *s
	carried.Numbers, carried.Version, carried.Order = p.numbersOf(s.Numbers), 0, p.first+uint64(i) //nolint:gosec // not below 0
	return carried
}

// LastSeen is when the session last saw the document, -1 for never, and whether what it saw then only guards.
func (e *Entry) LastSeen() (at int64, guards bool) {
	at = -1
	for i := range e.Reads {
		if r := &e.Reads[i]; r.At > at {
			at, guards = r.At, r.Doubt
		}
	}
	if v := &e.View; v.Set && v.At > at {
		at, guards = v.At, v.Doubt
	}
	return at, guards
}

package viewcache

import (
	"cmp"
	"slices"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// Read adds a read of the revision rev to the entry. b is its body, and may be nil; Read takes over the caller's reference to it. busy says
// that a write of the session is under way.
func (m *Memory) Read(e *Entry, rev *doc.Revision, b *Body, now int64, busy bool) {
	m.Order++
	e.NewestRead = m.Order
	e.Lost = NoReason
	e.outlives(rev.Numbers)
	named := e.Key.Session.IsNamed()
	if named {
		m.RemoveReads(e, func(r *Read) bool { return r.Numbers != rev.Numbers })
	}
	i := Find(e.Reads, rev.Numbers)
	if i < 0 {
		i = len(e.Reads)
		e.Reads = append(e.Reads, Read{Sight: Sight{Numbers: rev.Numbers, Order: m.Order}})
	}
	r := &e.Reads[i]
	r.At = now
	r.Count++
	r.Spent = false
	if named {
		r.Count, r.Order = 1, m.Order
		e.Since = nil
		r.Doubt, r.Contradiction, r.Failure = false, false, false // in an inferred session another client may have made the read
	}
	r.Version = cmp.Or(rev.Version, r.Version)
	switch was := r.Body; {
	case was == nil:
		r.Body = b
	case b == nil || b == was:
		m.free(e, b)
	case r.Count > 1 && !was.isForm(b): // clients of the session have different documents in hand
		m.free(e, was)
		m.free(e, b)
		r.Body = nil
	case r.Count == 1 || was.Ticket == 0:
		m.free(e, was)
		r.Body = b
	default: // was has the bytes that are stored, as far as is known
		m.free(e, b)
	}
	e.Shared = e.Shared || !named && (len(e.Reads) > 1 || r.Count > 1 || busy)
	m.limit(e)
}

// GiveBack puts a reserved read back to its old place in the order. data is its body (nil: not known), and t the trace in which it was
// made. spent says that it was spent before: see Read.
func (m *Memory) GiveBack(e *Entry, s Sight, data []byte, t identity.Trace, spent bool) {
	r := Read{Sight: s, Count: 1, Spent: spent}
	if i := Find(e.Reads, s.Numbers); i >= 0 {
		old := e.Reads[i]
		r.Order, r.At, r.Count = min(r.Order, old.Order), max(r.At, old.At), old.Count+1
		r.Spent = spent && old.Spent
		r.Body, r.Doubt, r.Programs = old.Body, r.Doubt || old.Doubt, old.Programs
		e.Reads = slices.Delete(e.Reads, i, i+1)
	}
	if r.Body == nil && data != nil {
		r.Body = m.hold(e, s.Numbers, data)
	}
	i := slices.IndexFunc(e.Reads, func(o Read) bool { return o.Order > r.Order })
	if i < 0 {
		i = len(e.Reads)
	}
	e.Reads = slices.Insert(e.Reads, i, r)
	e.Trace(t, s.Numbers)
	e.Lost = NoReason
	m.limit(e)
}

// See makes v the entry's view. If v has no Order yet, it becomes the newest. See keeps stored and sent themselves, and no copies: nobody
// else may change them.
func (m *Memory) See(e *Entry, v View, stored, sent []byte) {
	m.replaceView(e)
	v.Set, v.StoredBody, v.SentBody = true, nil, nil
	if v.Order == 0 {
		m.Order++
		v.Order = m.Order
		e.NewestView = v.Order
	}
	if stored != nil {
		v.StoredBody = m.hold(e, v.Numbers, stored)
	}
	switch {
	case Same(stored, sent):
		v.SentBody = v.StoredBody
	case sent != nil:
		v.SentBody = m.Own(e, sent)
	}
	e.View = v
	e.Lost = NoReason
	e.outlives(v.Numbers)
}

// DropView removes the entry's view and history. A view that is reserved at the moment doesn't come back, either.
func (m *Memory) DropView(e *Entry) {
	m.clearView(e)
	m.forgetHistory(e, all)
	if e.Key.Session.IsNamed() {
		e.Recollection = nil
	}
	m.Order++
	e.NewestView = m.Order
}

package viewcache

import (
	"slices"

	"optimist/internal/rank"
)

// If several clients share an inferred session, its entry keeps a history: revisions that were read or written, and that no client is
// known to hold any more. The history shows the changes of each client. And its revisions may be bases: a client may write again from
// memory, or its read may have been taken for another client's.
//
// Before anything shows that there are several clients, the history is short. It has what the session wrote, if the next write was made
// from a read: the client that wrote it may be another one, and may still have it in hand.

// MaxPast bounds the history, and maxPastReads the reads in it. maxUnshared bounds the history of a session that may be one client.
const (
	MaxPast      = 64
	maxPastReads = 16
	maxUnshared  = 2
)

// RetireRead removes a read that was written from. If several clients share the session, the history keeps it.
func (m *Memory) RetireRead(e *Entry, i int) {
	if r := &e.Reads[i]; e.Shared && r.Body != nil {
		m.Ref(e, r.Body)
		v := View{Sight: r.Sight, Set: true, StoredBody: r.Body, SentBody: r.Body}
		m.retire(e, Past{v, false})
	}
	m.RemoveRead(e, i)
}

// RetireView removes the session's own view, which a write is made from. If several clients share the session, the history keeps it.
func (m *Memory) RetireView(e *Entry) { m.retireView(e, e.Shared) }

// replaceView removes the session's own view, because the session has written from something else. The history keeps it if several clients
// may share the session.
func (m *Memory) replaceView(e *Entry) {
	m.retireView(e, !e.Key.Session.IsNamed() && !e.Key.Session.IsImplicit())
}

func (m *Memory) retireView(e *Entry, keep bool) {
	if v := &e.View; keep && v.Set && v.SentBody != nil && v.StoredBody != nil {
		for b := range v.bodies {
			m.Ref(e, b)
		}
		m.retire(e, Past{*v, true})
	}
	m.clearView(e)
}

func (m *Memory) retire(e *Entry, p Past) {
	p.Doubt, p.Contradiction, p.Failure = false, false, false
	if i := slices.IndexFunc(e.Past, func(o Past) bool { return o.Numbers == p.Numbers && o.SentBody == p.SentBody }); i >= 0 {
		m.forgetPast(e, i)
	}
	e.Past = append(e.Past, p)
	m.limitHistory(e)
}

// limitHistory forgets the oldest of the history while that is too long or too large.
func (m *Memory) limitHistory(e *Entry) {
	most := MaxPast
	if !e.Shared {
		most = maxUnshared
	}
	all, reads, size := 0, 0, int64(0)
	for i := len(e.Past) - 1; i >= 0; i-- {
		p := &e.Past[i]
		size += int64(len(p.SentBody.Data) + len(p.StoredBody.Data))
		if !p.Written {
			reads++
		}
		if all++; !p.Written && reads > maxPastReads || all > most || size > m.maxBody/2 {
			all--
			m.forgetPast(e, i)
		}
	}
	m.charge(e)
}

// Digested is a body with its digest. Both may be nil.
type Digested struct {
	Body   *Body
	Before *rank.Digest // the digest that was kept before; nil: none was
	Digest *rank.Digest
}

// isAnew reports whether the digest takes the place of the one that is kept: the entries of lists are told apart in another way now.
func (d *Digested) isAnew() bool {
	return d.Body != nil && d.Body.digest != nil && d.Body.digest == d.Before && d.Digest != nil && d.Digest != d.Before
}

// KeepDigests keeps the digests that were made of an entry's bodies, which come oldest first. It keeps those of the newest, until the
// digests take as much memory as the largest body may: the digest of a document with many small values is several times as large as the
// document. A digest that isn't kept is made again for each write.
func (m *Memory) KeepDigests(e *Entry, made []Digested) {
	for i := range made {
		if made[i].isAnew() {
			m.dropDigest(e.Document, made[i].Body)
		}
	}
	size := int64(0)
	for i := range made {
		if b := made[i].Body; b != nil {
			size += b.paid
		}
	}
	for i := len(made) - 1; i >= 0; i-- {
		b, d := made[i].Body, made[i].Digest
		if b == nil || d == nil || b.refs == 0 || b.digest != nil {
			continue
		}
		bytes := d.Keep()
		if size+bytes > m.maxBody {
			d.Drop()
			break
		}
		b.digest, b.maker, b.paid = d, e.account, bytes
		e.Document.digested = append(e.Document.digested, b)
		size += bytes
		m.bytes += bytes
		m.accounts.charge(e.account, bytes)
	}
}

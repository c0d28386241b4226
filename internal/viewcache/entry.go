package viewcache

import (
	"bytes"
	"hash/maphash"
	"slices"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
	"optimist/internal/note"
	"optimist/internal/rank"
	"optimist/internal/repeat"
)

// docKey is a document as seen under some credentials: nothing is ever shared across different ones.
type docKey struct {
	Credentials identity.Credentials
	Ref         doc.Ref
}

// Key is a document as seen by a session.
type Key struct {
	Session identity.Session
	Ref     doc.Ref
}

// KeyOf returns the key of a session's entry for a document, without the request's trace.
func KeyOf(s identity.Session, ref doc.Ref) Key {
	return Key{Session: s.In(identity.Trace{}), Ref: ref}
}

func (k Key) doc() docKey { return docKey{Credentials: k.Session.Credentials(), Ref: k.Ref} }

// Hash is that of the document, whoever of the same credentials has seen it.
func (k Key) Hash(seed maphash.Seed) uint64 { return maphash.Comparable(seed, k.doc()) }

func refLen(r doc.Ref) int64 { return int64(len(r.Index) + len(r.Routing) + len(r.ID)) }

// Document holds the bodies of its revisions once for all sessions with the same credentials. It lives as long as an
// entry of one of them.
type Document struct {
	Key     docKey
	epoch   indexstate.Epoch
	entries int
	bodies  []*Body
	acked   acked
}

// Body is the bytes of a revision, or of something that was sent (which has no document).
type Body struct {
	numbers doc.Numbers
	doc     *Document
	refs    int
	Data    []byte
	Ticket  uint64       // reads with a later one were asked for when it was known; 0: it isn't known from such a read
	digest  *rank.Digest // nil: nobody had to compare it yet
	maker   *holder      // of the digest
}

// Bytes returns the bytes, nil for no body.
func (b *Body) Bytes() []byte {
	if b == nil {
		return nil
	}
	return b.Data
}

// Kept returns the digest that is kept of the bytes; nil: there is none.
func (b *Body) Kept() *rank.Digest {
	if b == nil {
		return nil
	}
	return b.digest
}

// Find returns the body of a revision; nil: there is none, or no document.
func (d *Document) Find(n doc.Numbers) *Body {
	if d == nil {
		return nil
	}
	for i := len(d.bodies) - 1; i >= 0; i-- { // the newest are asked for most
		if d.bodies[i].numbers == n {
			return d.bodies[i]
		}
	}
	return nil
}

// renew begins a new incarnation of the document: the same numbers mean other bytes now. An entry that still holds the old ones keeps
// them until it is looked at.
func (d *Document) renew(at indexstate.Epoch) {
	for _, b := range d.bodies {
		b.doc = nil
	}
	d.bodies, d.epoch, d.acked = nil, at, acked{}
}

// Unlist has nobody share b any more, which may be nil.
func (d *Document) Unlist(b *Body) {
	if b != nil && b.doc != nil {
		b.doc = nil
		i := slices.Index(d.bodies, b)
		d.bodies = slices.Delete(d.bodies, i, i+1)
	}
}

// Sight is a revision that a client has read or written.
type Sight struct {
	Numbers doc.Numbers // zero: the document was absent
	Version int64
	Order   uint64 // its place among what the shard's clients have seen
	At      int64
	Doubt   bool // the base of a write with an unknown result; in a named session, not read since
}

// Read is the outstanding, unreserved reads of one revision. They count as old as the first of them when it is about
// order, and as young as the last when it is about age.
type Read struct {
	Sight
	Body  *Body // nil: only the numbers are known
	Count int
}

// Same reports whether a and b are the same bytes, and there.
func Same(a, b []byte) bool { return a != nil && b != nil && bytes.Equal(a, b) }

// Find returns the index of the reads of a revision, or -1.
func Find(reads []Read, n doc.Numbers) int {
	for i := len(reads) - 1; i >= 0; i-- { // the newest are asked for most
		if reads[i].Numbers == n {
			return i
		}
	}
	return -1
}

// View is what the session's last write of the document left.
type View struct {
	Sight
	Set, Absent bool        // absent: it was a delete
	Answer      doc.Numbers // that the answer to the write carried
	StoredBody  *Body
	SentBody    *Body
	Difference  bool // other bytes were stored than were sent

	// Contradiction says that an answer has shown the document otherwise since. Failure says that a write has failed since then.
	Contradiction, Failure bool
}

// Past is a revision of the history.
type Past struct {
	View
	Written bool // by the session; else it has read it
}

// TracedRead is an outstanding read that was made in a trace.
type TracedRead struct {
	Trace   identity.Trace
	Numbers doc.Numbers
}

// acked is the newest write of a document that is known to be acknowledged.
type acked struct {
	numbers doc.Numbers
	ticket  uint64 // reads with a later one were asked for when it was known
	order   uint64 // writes that took their base at this place, or later, did so when it was known
}

// Entry is what one session knows of one document.
type Entry struct {
	Key      Key
	epoch    indexstate.Epoch
	Document *Document
	Reads    []Read // by order
	View     View
	Past     []Past         // see history.go
	Patterns *rank.Patterns // of what its clients have changed; nil: none is known
	Shared   bool           // several clients work on the document at once, for all that is known
	Lost     Reason         // why there is nothing where something was
	Touched  int64
	charged  int64 // what the entry itself costs
	held     int64 // that, the document and each body: what its client holds by it

	holder       *holder
	older, newer *Entry // of its holder's
	leaves       bool   // it is being taken out

	Traced       []TracedRead       // oldest first
	NoteID       note.ID            // where it is noted; zero: nowhere
	Recollection *note.Recollection // what the process before has noted; nil: nothing

	Ticket  uint64         // of the last read that was asked for
	Repeats repeat.History // what was written last in an inferred session
	spent   []doc.Numbers  // of the bases that a named session has written from, oldest first

	// NewestRead and NewestView are the order of the last of each, also where it is reserved or used up.
	NewestRead, NewestView uint64
}

// Empty reports whether nothing of the entry is a base, but perhaps of its history.
func (e *Entry) Empty() bool { return len(e.Reads) == 0 && !e.View.Set }

// maxSpent bounds how many bases a named session is known to have written from.
const maxSpent = 16

// Spend keeps the numbers of the base that a write of a named session was made from.
func (e *Entry) Spend(v *View) {
	if !e.Key.Session.IsNamed() || e.Key.Session.IsOfHolder() {
		return
	}
	for _, n := range [2]doc.Numbers{v.Numbers, v.Answer} {
		if !n.Known() || e.IsSpent(n) {
			continue
		}
		if len(e.spent) == maxSpent {
			e.spent = slices.Delete(e.spent, 0, 1)
		}
		e.spent = append(e.spent, n)
	}
}

// IsSpent reports whether the session, which is named, has written from the revision of these numbers.
func (e *Entry) IsSpent(n doc.Numbers) bool { return slices.Contains(e.spent, n) }

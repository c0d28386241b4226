package viewcache

import (
	"bytes"
	"hash/maphash"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
	"optimist/internal/linked"
	"optimist/internal/note"
	"optimist/internal/rank"
	"optimist/internal/repeat"
)

// docKey is a document as clients with certain credentials see it. Clients with different credentials never share anything.
type docKey struct {
	Credentials identity.Credentials
	Ref         doc.Ref
}

// Key is a document as seen by a session.
type Key struct {
	Session identity.Session
	Ref     doc.Ref
}

// KeyOf returns the key of a session's entry for a document, without what only the request says.
func KeyOf(s identity.Session, ref doc.Ref) Key {
	return Key{Session: s.Bare(), Ref: ref}
}

func (k Key) doc() docKey { return docKey{Credentials: k.Session.Credentials(), Ref: k.Ref} }

// Hash is the hash of the document. It is the same for all sessions with the same credentials.
func (k Key) Hash(seed maphash.Seed) uint64 { return maphash.Comparable(seed, k.doc()) }

func refLen(r doc.Ref) int64 { return int64(len(r.Index) + len(r.Routing) + len(r.ID)) }

// Document holds the bodies of its revisions once for all sessions with the same credentials. It lives as long as an
// entry of one of them.
type Document struct {
	Key     docKey
	epoch   indexstate.Epoch
	entries int
	bodies  []*Body
	// digested are the bodies of which digests are kept, in the order in which they were. Other digests share nothing with those.
	digested []*Body
	acked    acked
}

// Body is the bytes of a revision, or of something that was sent (which has no document).
type Body struct {
	numbers doc.Numbers
	doc     *Document
	refs    int
	Data    []byte
	Ticket  uint64         // the newest ticket when a read first returned the bytes; 0: no read with a ticket has returned them
	digest  *rank.Digest   // nil: nobody had to compare the bytes yet
	changes int            // how many clients' changes the write held; 0: not known, or one
	maker   *clientAccount // the client for which the digest was made; it pays for it
	paid    int64          // the bytes that the maker pays for: without what others pay for, because their digests share it
}

// Bytes returns the bytes, nil for no body.
func (b *Body) Bytes() []byte {
	if b == nil {
		return nil
	}
	return b.Data
}

// NoteChanges notes how many clients' changes the write of the revision held.
func (b *Body) NoteChanges(n int) {
	if b != nil {
		b.changes = max(b.changes, n)
	}
}

// Known returns what is known of the bytes beside them: their digest, if one is kept, and how many clients' changes the write of the
// revision held; 0 or 1 is one.
func (b *Body) Known() (kept *rank.Digest, changes int) {
	if b == nil {
		return nil, 0
	}
	return b.digest, b.changes
}

// Find returns the body of a revision; nil: it isn't known. d may be nil.
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

// renew begins a new incarnation of the document: the same numbers mean other bytes now. Entries that still hold old bytes drop them at the
// next Get.
func (d *Document) renew(at indexstate.Epoch) {
	for _, b := range d.bodies {
		b.doc = nil
	}
	d.bodies, d.epoch, d.acked = nil, at, acked{}
}

// Unlist takes b off the list of shared bodies: the entries that refer to b keep it, and no other entry gets it. b may be nil.
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
	Order   uint64 // its place among all reads and writes of the shard
	At      int64  // when it was seen
	Doubt   bool   // a write with this base has an unknown result; in a named session, and the client hasn't read the revision since

	Contradiction bool // a later answer without numbers has shown the client another document
	Failure       bool // after its Contradiction, a write with this base has failed
}

// IsRefused reports whether the client was shown another document than the one of s, and a write under the guard of s was then refused. If
// the client looks again after that, it writes from what it finds.
func (s *Sight) IsRefused() bool { return s.Contradiction && s.Failure }

// Read stands for all outstanding, unreserved reads of one revision. Its Order is that of the first of these reads, and its At is that of
// the last.
type Read struct {
	Sight
	Body  *Body // nil: only the numbers are known
	Count int32
	Spent bool // a client has perhaps written a part from it since: see SpendRead
	Programs
}

// Same reports whether a and b are both known, and the same bytes.
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
	Set        bool        // false: there is no view
	Absent     bool        // the write was a delete
	Answer     doc.Numbers // the numbers in the answer to the write
	StoredBody *Body
	SentBody   *Body
	Difference bool // other bytes were stored than were sent

	FromNothing bool // the write was made by a client that had found no document
	Unread      bool // the write was made by a client that hasn't looked: a job that only writes misses nothing if the view is forgotten
}

// bodies yields the view's bodies, one or two: what was sent is mostly stored as it is.
func (v *View) bodies(yield func(*Body) bool) {
	if (v.StoredBody == nil || yield(v.StoredBody)) && v.SentBody != nil && v.SentBody != v.StoredBody {
		yield(v.SentBody)
	}
}

// Past is a revision of the history.
type Past struct {
	View
	Written bool // by the session; else it has read it
}

// TracedRead is an outstanding read, and the trace in which it was made.
type TracedRead struct {
	Trace   identity.Trace
	Numbers doc.Numbers
}

// acked is the newest write of a document that is known to be acknowledged.
type acked struct {
	numbers doc.Numbers
	ticket  uint64 // the newest ticket when it was acknowledged: reads with a later ticket were sent after that
	order   uint64 // its place in the shard's order: writes that took their base at this place or later did so after that
	since   uint64 // the place of the first write that is known of this primary term
}

// Entry is what one session knows of one document.
type Entry struct {
	Key      Key
	epoch    indexstate.Epoch
	Document *Document
	Reads    []Read // by order
	View     View
	Past     []Past        // see history.go
	Since    *choice.Since // what tells what the client has in hand from an older revision that it was shown later; nil: nothing
	Crowd    Crowd         // whether several clients write it
	Shared   bool          // it seems that several clients of the session work on the document at once
	Lost     Reason        // why the entry has no base any more
	Touched  int64         // when the entry was last used
	charged  int64         // the bytes of the entry itself
	held     int64         // the bytes that count against its client: charged, the document, and each body that the entry refers to

	account              *clientAccount // the client whose entry it is
	linked.Links[*Entry]                // among the client's entries
	leaves               bool           // it is being removed

	Traced       []TracedRead       // oldest first
	NoteID       note.ID            // where it is noted; zero: nowhere
	Recollection *note.Recollection // what the process before has noted; nil: nothing

	Ticket  uint64         // the latest ticket among its reads
	Repeats repeat.History // the session's ended writes, if the session is inferred
	spent   []doc.Numbers  // the bases that the session has written from, oldest first, if the session is named

	// NewestRead and NewestView are the order of the newest read and the newest view. They stay when that is reserved or used up.
	NewestRead, NewestView uint64
}

// Crowd says how much shows that several of the session's clients write a document, in the unit of rank.Choice.Lean. Below zero, it shows
// that one client is alone.
type Crowd int8

const (
	mostCrowded, leastCrowded = 16 * rank.Bit, -4 * rank.Bit
	quiet                     = 8 * rank.Bit
	fading                    = rank.Bit / 2
)

// Meet notes that several clients are at work.
func (c *Crowd) Meet() { *c = mostCrowded }

// Lean notes how much the content of a write shows that: see rank.Choice.
func (c *Crowd) Lean(by int) {
	*c = Crowd(max(leastCrowded, min(int(*c)+by, mostCrowded)))
}

// Fade is for a write that shows nothing, because there was one read that it may have been made from.
func (c *Crowd) Fade() {
	if *c > 0 {
		*c = max(*c-fading, 0)
	}
}

// IsQuiet reports whether little shows that several clients are at work.
func (c Crowd) IsQuiet() bool { return c <= quiet }

// Alone is how much shows that one client is alone, in bits.
func (c Crowd) Alone() int { return max(0, -int(c)) / rank.Bit }

// IsNewestRead reports whether some client has read what the session wrote last.
func (e *Entry) IsNewestRead() bool {
	v := e.View.Numbers
	return !e.View.Set || slices.ContainsFunc(e.Reads, func(r Read) bool {
		return r.Numbers == v || r.Numbers.PrimaryTerm > v.PrimaryTerm || r.Numbers.SeqNo > v.SeqNo
	})
}

// Empty reports whether the entry has neither reads nor a view. It may still have a history.
func (e *Entry) Empty() bool { return len(e.Reads) == 0 && !e.View.Set }

// hasSeen reports whether the session's clients would miss what is in the entry.
func (e *Entry) hasSeen() bool { return len(e.Reads) > 0 || e.View.Set && !e.View.Unread }

// maxSpent bounds how many of these bases are kept.
const maxSpent = 16

// Spend notes that the session has written from the base v. It does nothing for sessions that aren't named.
func (e *Entry) Spend(v *View) {
	if !e.Key.Session.IsNamed() || e.Key.Session.IsImplicit() {
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

// fewReads is how often one client reads a revision, at most, before it writes.
const fewReads = 3

// SpendRead notes that a client has written a part, perhaps from its read s. Other clients may still have the same revision in hand, unless
// nobody else has read it: it was read once, or a few times while nothing shows that there are others. A client that has read it since has
// it in hand, too.
func (e *Entry) SpendRead(s *Sight) {
	i := Find(e.Reads, s.Numbers)
	if i < 0 || e.Reads[i].At != s.At {
		return
	}
	if r := &e.Reads[i]; r.Count == 1 || r.Count <= fewReads && e.Crowd.IsQuiet() {
		r.Spent = true
	}
}

// IsSpent reports whether a named session has written from the revision of n.
func (e *Entry) IsSpent(n doc.Numbers) bool { return slices.Contains(e.spent, n) }

package session

import (
	"bytes"
	"slices"

	"optimist/internal/doc"
	"optimist/internal/memo"
	"optimist/internal/rank"
	"optimist/internal/repeat"
)

// docKey is a document as seen under some credentials: nothing is ever shared across different ones.
type docKey struct {
	credentials Credentials
	ref         doc.Ref
}

// key is a document as seen by a session.
type key struct {
	sess Session
	ref  doc.Ref
}

func keyOf(s Session, ref doc.Ref) key {
	return key{sess: s.In(Trace{}), ref: ref}
}

func (k key) doc() docKey { return docKey{credentials: k.sess.Credentials(), ref: k.ref} }

func refLen(r doc.Ref) int64 { return int64(len(r.Index) + len(r.Routing) + len(r.ID)) }

// document holds the bodies of its revisions once for all sessions with the same credentials. It lives as long as an
// entry of one of them.
type document struct {
	key     docKey
	epoch   Epoch
	entries int
	bodies  []*body
	acked   acked
}

// body is the bytes of a revision, or of something that was sent (which has no document).
type body struct {
	numbers doc.Numbers
	doc     *document
	refs    int
	data    []byte
	asked   uint64       // reads with a later place were asked for when it was known; 0: it isn't known from such a read
	digest  *rank.Digest // nil: nobody had to compare it yet
	maker   *holder      // of the digest
}

// bytes returns the bytes, nil for no body.
func (b *body) bytes() []byte {
	if b == nil {
		return nil
	}
	return b.data
}

// kept returns the digest that is kept of the bytes; nil: there is none.
func (b *body) kept() *rank.Digest {
	if b == nil {
		return nil
	}
	return b.digest
}

func (d *document) find(n doc.Numbers) *body {
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

// renew begins a new life of the document: the same numbers mean other bytes now. Who still holds the old ones keeps them until
// it is looked at.
func (d *document) renew(at Epoch) {
	for _, b := range d.bodies {
		b.doc = nil
	}
	d.bodies, d.epoch, d.acked = nil, at, acked{}
}

// unlist has nobody share b any more, which may be nil.
func (d *document) unlist(b *body) {
	if b != nil && b.doc != nil {
		b.doc = nil
		i := slices.Index(d.bodies, b)
		d.bodies = slices.Delete(d.bodies, i, i+1)
	}
}

// seen is a revision that a client has read or written.
type seen struct {
	numbers doc.Numbers // zero: the document was absent
	version int64
	order   uint64 // its place among what the shard's clients have seen
	at      int64
	doubt   bool // the base of a write of which nobody knows what became; in a named session, not read since
}

// read is the outstanding, unreserved reads of one revision. They count as old as the first of them when it is about
// order, and as young as the last when it is about age.
type read struct {
	seen
	body  *body // nil: only the numbers are known
	count int
}

// same reports whether a and b are the same bytes, and there.
func same(a, b []byte) bool { return a != nil && b != nil && bytes.Equal(a, b) }

// find returns the index of the reads of a revision, or -1.
func find(reads []read, n doc.Numbers) int {
	for i := len(reads) - 1; i >= 0; i-- { // the newest are asked for most
		if reads[i].numbers == n {
			return i
		}
	}
	return -1
}

// view is what the session's last write of the document left.
type view struct {
	seen
	set, absent bool        // absent: it was a delete
	answer      doc.Numbers // that the answer to the write carried
	storedBody  *body
	sentBody    *body
	difference  bool // other bytes were stored than were sent

	// contradiction says that an answer has shown the document otherwise since: see Store.Shown. failure, that a write has failed
	// since then.
	contradiction, failure bool
}

// entry is what one session knows of one document.
type entry struct {
	key      key
	epoch    Epoch
	doc      *document
	reads    []read // by order
	view     view
	past     []past         // see history.go
	patterns *rank.Patterns // of what its clients have changed; nil: none is known
	shared   bool           // several clients work on the document at once, for all that is known
	lost     Reason         // why there is nothing where something was
	touched  int64
	charged  int64 // what the entry itself costs
	held     int64 // that, the document and each body: what its client holds by it

	holder       *holder
	older, newer *entry // of its holder's
	leaves       bool   // it is being taken out

	traced []tracedRead // oldest first
	noteID memo.ID      // where it is noted; zero: nowhere
	memo   *memo.Memo   // what the process before has noted; nil: nothing

	asked   uint64        // the place of the last read that was asked for
	repeats repeat.Kept   // what was written last in an inferred session
	spent   []doc.Numbers // of the bases that a named session has written from, oldest first

	// newestRead and newestView are the order of the last of each, also where it is reserved or used up.
	newestRead, newestView uint64
}

func (e *entry) empty() bool { return len(e.reads) == 0 && !e.view.set }

// maxSpent bounds how many bases a named session is known to have written from.
const maxSpent = 16

// spend keeps the numbers of the base that a write of a named session was made from.
func (e *entry) spend(v *view) {
	if !e.key.sess.IsNamed() || e.key.sess.IsOfHolder() {
		return
	}
	for _, n := range [2]doc.Numbers{v.numbers, v.answer} {
		if !n.Known() || e.isSpent(n) {
			continue
		}
		if len(e.spent) == maxSpent {
			e.spent = slices.Delete(e.spent, 0, 1)
		}
		e.spent = append(e.spent, n)
	}
}

// isSpent reports whether the session, which is named, has written from the revision of these numbers.
func (e *entry) isSpent(n doc.Numbers) bool { return slices.Contains(e.spent, n) }

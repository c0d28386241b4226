package session

import (
	"bytes"

	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/viewcache"
)

// Read remembers that the session has read the revision rev of ref. If rev.Source is nil, only the numbers are known. In a named
// session the read replaces the reads before it. at is the epoch from before the request was sent. The caller may reuse rev.Source
// and the bytes under ref's strings: the store copies them, unless it holds the revision already for the same credentials. A revision
// without numbers is ignored.
func (s *Store) Read(sess Session, ref doc.Ref, rev doc.Revision, at Epoch) {
	if rev.Known() && !s.dryRun {
		s.read(sess, ref, rev, at, 0)
	}
}

// Ticket returns a ticket for a read: its place in the order of reads. Take one before a read is sent upstream, and hand it to
// ReadWithTicket.
func (s *Store) Ticket() uint64 { return s.tickets.Add(1) }

// ReadWithTicket is Read for a read that has a ticket. If rev has no numbers, it is ReadAbsent. In a named session it ignores a read that
// was sent before another and answered after that: the client didn't wait for its answer, and has given it up.
func (s *Store) ReadWithTicket(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, ticket uint64) {
	s.read(sess, ref, rev, at, ticket)
}

// ReadAbsent remembers that the session saw that there was no document ref. at is as for Read.
func (s *Store) ReadAbsent(sess Session, ref doc.Ref, at Epoch) {
	s.read(sess, ref, doc.Revision{}, at, 0)
}

// reading is one call of Read or ReadAbsent.
type reading struct {
	s       *Store
	sh      *shard
	ix      indexstate.Index[Session]
	sess    Session // with what its request says: the trace, the program and the network
	k       viewcache.Key
	rev     doc.Revision
	at      Epoch
	ticket  uint64 // 0: not known
	now     int64
	renewed bool // the index is another than was known
}

func (s *Store) read(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, ticket uint64) {
	if s.dryRun {
		return
	}
	k := viewcache.KeyOf(sess, ref)
	r := reading{s: s, sh: s.shard(k), sess: sess, k: k, rev: rev, at: at, ticket: ticket, now: s.clock()}
	if rev.Known() {
		r.ix = s.index(ref.Index, sess.Credentials(), r.now)
		r.ix.Seen()
	} else { // there may be no index, either
		r.ix = s.find(ref.Index, sess.Credentials(), r.now)
	}
	giveUp(r.ix) // what was read before mustn't take this read along
	if rev.Source != nil {
		r.rev.Source = s.worth(rev.Source, sess.IsNamed(), r.ix, r.now)
	}
	if !r.into(false) {
		r.rev.Source = bytes.Clone(r.rev.Source)
		r.into(true)
	}
	if r.renewed {
		s.notes.DropIndex(ref.Index, s.clock())
		s.o.Renewed.Call(sess.Credentials(), ref.Index)
	}
}

// into puts the read into its shard. It returns false, and does nothing, if it would have to copy a large body while it holds the lock. own
// says that the body is a copy already.
func (r *reading) into(own bool) bool {
	r.sh.mu.Lock()
	defer r.sh.mu.Unlock()
	gone := r.ix.Gone()
	e := r.sh.Get(r.k, gone, r.now)
	r.overtaken(e, gone)
	if r.void(e, gone) {
		return true
	}
	if e == nil {
		e = r.sh.Put(r.k, r.sess.Network(), gone, r.at, r.now) // also drops bodies that are too old to be shared
	}
	d := e.Document
	held, src := d.Find(r.rev.Numbers), r.rev.Source
	same := held != nil && src != nil && bytes.Equal(held.Data, src)
	if older, other := d.KnewNewer(r.rev.Numbers, r.ticket, 0), !same && held.IsOther(src, r.ticket); older || other {
		if gone, r.renewed = r.ix.Renew(gone); !r.renewed || !older && r.ticket <= held.Ticket {
			r.sh.Get(r.k, gone, r.now)
			r.sh.Lose(r.k, r.sess.Network(), ReasonIndex) // it may be a read of the index that was there before
			return true
		}
		r.at, same = gone, false
		e = r.sh.Put(r.k, r.sess.Network(), gone, r.at, r.now)
	}
	if src != nil && !same && !own {
		if len(src) > copyOutside {
			return false
		}
		src = bytes.Clone(src)
	}
	r.sh.Use(e, r.sess.Network())
	e.Ticket = max(e.Ticket, r.ticket)
	r.sh.Read(e, &r.rev, r.body(e, src, same), r.now, r.sh.pending.Of(r.k).Any())
	e.Trace(r.sess.Trace(), r.rev.Numbers)
	e.MadeBy(r.sess.Program(), r.rev.Numbers)
	r.sh.Settled(e)
	return true
}

// body returns the body that the read shows, with a reference more; nil: only the numbers are known. same says that the revision's body is
// known, and the same bytes.
func (r *reading) body(e *viewcache.Entry, src []byte, same bool) (b *viewcache.Body) {
	switch held := e.Document.Find(r.rev.Numbers); {
	case same:
		b = held
		r.sh.Ref(e, b)
	case src == nil:
		return nil
	case held != nil && r.ticket == 0: // perhaps another form of the bytes that are stored
		b = r.sh.Own(e, src)
	default:
		e.Document.Unlist(held) // the next reads of the revision share this one
		b = r.sh.List(e, r.rev.Numbers, src)
	}
	if b.Ticket == 0 && r.ticket != 0 {
		b.Ticket = r.s.tickets.Load()
	}
	return b
}

// overtaken is for a read that was under way when another read showed that the index is a new one. The read may be of the old index, or of
// the new one:
//
//   - It shows bytes that are known of the new index, under the same numbers: it is of the new index.
//   - Other bytes are known under these numbers: an inferred session that knows the document drops the read. It is of the old index, and
//     its numbers would let the client overwrite the document of the new one.
//   - In all other cases only the numbers count, as a guard. That does harm only if the documents of both indices have the same numbers. If
//     the read didn't count, a client of an inferred session would get another client's read or write as its base.
func (r *reading) overtaken(e *viewcache.Entry, gone Epoch) {
	if r.at >= gone || !r.rev.Known() || !r.ix.IsRenewed(r.at) {
		return
	}
	b := r.sh.DocumentOf(r.k, e, gone).Find(r.rev.Numbers)
	if b == nil || !bytes.Equal(b.Data, r.rev.Source) {
		if e != nil && b != nil && !r.sess.IsNamed() {
			return
		}
		r.rev.Source = nil
	}
	r.at = gone
}

// void reports whether the read can't be a base of the session. The entry may be nil.
func (r *reading) void(e *viewcache.Entry, gone Epoch) bool {
	switch named := e != nil && r.sess.IsNamed(); {
	case !r.sess.IsNamed() && !r.sess.InTrace() && r.ix.IsBlind(r.k.Session, r.now):
		r.sh.Lose(r.k, r.sess.Network(), ReasonBlind) // the session has read this document, so a write of it has lost its base
	case r.at < gone:
		if named && r.ticket > e.Ticket {
			r.sh.outdate(e) // the client has this revision in hand now
		}
		r.sh.Lose(r.k, r.sess.Network(), ReasonIndex)
	default:
		return named && r.ticket != 0 && r.ticket < e.Ticket
	}
	return true
}

// MayHaveBase reports whether a write of the document may get a base: whether the session knows something of the document, or has known it.
// It is cheaper than Take, and reserves nothing.
func (s *Store) MayHaveBase(sess Session, ref doc.Ref) bool {
	if sess.InTrace() && s.MayHaveBase(sess.Written(), ref) {
		return true
	}
	k := viewcache.KeyOf(sess, ref)
	sh := s.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.Peek(k) != nil || sh.pending.Of(k) != nil || sh.Lost(k, nil) != ReasonNone || sh.Noted(&k, s.clock())
}

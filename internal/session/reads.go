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
	if rev.Known() {
		s.read(sess, ref, reading{rev: rev, at: at})
	}
}

// Ticket returns a ticket for a read: its place in the order of reads. Take one before a read is sent upstream, and hand it to
// ReadWithTicket.
func (s *Store) Ticket() uint64 { return s.tickets.Add(1) }

// ReadWithTicket is Read for a read that has a ticket. If rev has no numbers, it is ReadAbsent. In a named session it ignores a read that
// was sent before another read and answered after it: the client didn't wait for the answer, and has given that read up.
func (s *Store) ReadWithTicket(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, ticket uint64) {
	s.read(sess, ref, reading{rev: rev, at: at, ticket: ticket})
}

// ReadUnlessOlder is ReadWithTicket, unless a newer revision was acknowledged before the read was sent. Then the index was made anew, or
// the read is stale: ReadUnlessOlder reports that, and notes nothing. Its caller asks the engine what the index is. The caller notes a
// stale read by Found, and any other by ReadWithTicket.
func (s *Store) ReadUnlessOlder(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, ticket uint64) (older bool) {
	return s.read(sess, ref, reading{rev: rev, at: at, ticket: ticket, unlessOlder: true})
}

// ReadAbsent remembers that the session saw that there was no document ref. at is as for Read.
func (s *Store) ReadAbsent(sess Session, ref doc.Ref, at Epoch) {
	s.read(sess, ref, reading{at: at})
}

// reading is one call of Read or ReadAbsent.
type reading struct {
	rev         doc.Revision
	at          Epoch
	ticket      uint64 // 0: not known
	unlessOlder bool   // a read of an older revision isn't noted

	s       *Store
	sh      *shard
	ix      indexstate.Index[Session]
	sess    Session // with the trace, the program and the network of the request
	k       viewcache.Key
	now     int64
	older   bool // it wasn't noted, see unlessOlder
	renewed bool // the read shows that clients have made the index anew
}

// read notes what r has up to unlessOlder.
func (s *Store) read(sess Session, ref doc.Ref, r reading) (older bool) {
	if s.dryRun {
		return false
	}
	rev := r.rev
	r.s, r.sess, r.k, r.now = s, sess, viewcache.KeyOf(sess, ref), s.clock()
	r.sh = s.shard(r.k)
	if rev.Known() {
		r.ix = s.index(ref.Index, sess.Credentials(), r.now)
		r.ix.Seen()
	} else { // there may be no index, either
		r.ix = s.find(ref.Index, sess.Credentials(), r.now)
	}
	giveUp(r.ix) // a suspicion about older reads mustn't end this one, too
	if rev.Source != nil {
		r.rev.Source = s.worth(rev.Source, sess.IsNamed(), r.ix, r.now)
	}
	if !r.into(false) {
		r.rev.Source = bytes.Clone(r.rev.Source)
		r.into(true)
	}
	if r.renewed {
		s.renewed(sess.Credentials(), ref.Index)
	}
	return r.older
}

// into puts the read into its shard. own says that the caller has copied the body already. Without own, into doesn't copy a large body,
// because it holds the lock: it does nothing, and returns false.
func (r *reading) into(own bool) bool {
	r.sh.mu.Lock()
	defer r.sh.mu.Unlock()
	gone := r.ix.Gone()
	e := r.sh.Get(r.k, gone, r.now)
	if r.older = r.unlessOlder && r.sh.DocumentOf(r.k, e, gone).KnewNewer(r.rev.Numbers, r.ticket, 0); r.older {
		return true
	}
	r.overtaken(e, gone)
	if r.void(e, gone) {
		return true
	}
	if e == nil {
		e = r.put(gone) // which also drops bodies that are too old to be shared
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
		e = r.put(gone)
	}
	if src != nil && !same && !own {
		if len(src) > copyOutside {
			return false
		}
		src = bytes.Clone(src)
	}
	if !r.sess.ShowsMany() {
		r.sh.Use(e, r.sess.Network())
	}
	e.Ticket = max(e.Ticket, r.ticket)
	r.sh.Read(e, &r.rev, r.body(e, src, same), r.now, r.sh.pending.Of(r.k).Any())
	e.Trace(r.sess.Trace(), r.rev.Numbers)
	e.MadeBy(r.sess.Program(), r.rev.Numbers)
	r.sh.Settled(e)
	return true
}

// put makes the session's entry, of which there is none.
func (r *reading) put(gone Epoch) *viewcache.Entry {
	e := r.sh.Put(r.k, r.sess.Network(), gone, r.at, r.now)
	if r.sess.ShowsMany() {
		r.sh.SetApart(e)
	}
	return e
}

// body returns the body of the read, with one more reference; nil: only the numbers are known. same says that the store knows a body of the
// revision, which has the same bytes.
func (r *reading) body(e *viewcache.Entry, src []byte, same bool) (b *viewcache.Body) {
	switch held := e.Document.Find(r.rev.Numbers); {
	case same:
		b = held
		r.sh.Ref(e, b)
	case src == nil:
		return nil
	case held != nil && r.ticket == 0: // src may be the stored document in another form
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
//   - The store knows the same bytes of the new index, under the same numbers. Then the read is of the new index.
//   - The store knows other bytes under these numbers. Then the read is of another index, and its numbers would let the client overwrite
//     the document of the new index. A session that knows the document drops the read: a named one has lost its base then.
//   - In all other cases the read's numbers count, as a guard alone. That does harm only if the documents of both indices have the same
//     numbers. Without the read, a client of an inferred session would get another client's read or write as its base.
func (r *reading) overtaken(e *viewcache.Entry, gone Epoch) {
	if r.at >= gone || !r.rev.Known() || !r.ix.IsRenewed(r.at) {
		return
	}
	b := r.sh.DocumentOf(r.k, e, gone).Find(r.rev.Numbers)
	if b == nil || !bytes.Equal(b.Data, r.rev.Source) {
		if b != nil && e != nil {
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
			r.sh.outdate(e) // the client's next write may be made from this revision
		}
		r.sh.Lose(r.k, r.sess.Network(), ReasonIndex)
	default:
		return named && r.ticket != 0 && r.ticket < e.Ticket
	}
	return true
}

// MayHaveBase reports whether a write of the document may get a base: the store knows what the session has seen of the document, or knew
// it. It is cheaper than Take, and reserves nothing.
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

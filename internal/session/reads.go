package session

import (
	"bytes"

	"optimist/internal/doc"
)

// Read remembers that the session read rev of ref. rev.Source is copied unless the same revision is already held under
// the same credentials; nil means that only the numbers are known. In a named session it replaces the reads before it. at
// is the epoch from before the request was sent. The caller may reuse rev.Source and the bytes under ref's strings.
// Revisions without numbers are ignored.
func (s *Store) Read(sess Session, ref doc.Ref, rev doc.Revision, at Epoch) {
	if rev.Known() && !s.dryRun {
		s.read(sess, ref, rev, at, 0)
	}
}

// Ask returns a place in the order of reads. Take one before a read is sent upstream and hand it in with ReadAsked.
func (s *Store) Ask() uint64 { return s.asked.Add(1) }

// ReadAsked is Read, or with a rev without numbers ReadAbsent, for a read that was asked for at its place in the order. In a named session
// one that was asked for before another, and is answered after it, is left out: its client gave it up, or it would have waited.
func (s *Store) ReadAsked(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, asked uint64) {
	s.read(sess, ref, rev, at, asked)
}

// ReadAbsent remembers that the session saw that there was no document ref. at is as for Read.
func (s *Store) ReadAbsent(sess Session, ref doc.Ref, at Epoch) {
	s.read(sess, ref, doc.Revision{}, at, 0)
}

// reading is one call of Read or ReadAbsent.
type reading struct {
	s   *Store
	k   key
	ix  *index
	rev doc.Revision
	at  Epoch
	now int64

	asked uint64 // 0: not known
}

func (s *Store) read(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, asked uint64) {
	now := s.clock()
	ix := s.indices.get(ref.Index, now)
	k := key{sess: sess, ref: ref}
	sh := s.shard(k)
	if ix.isBlind(sess, now) {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		sh.get(k, s.indices.gone(ix), now)
		sh.lose(k, ReasonBlind) // it does read this one: overwriting it is not blind
		return
	}
	if rev.Source != nil {
		rev.Source = s.worth(rev.Source, ix, now)
	}
	r := reading{s: s, k: k, ix: ix, rev: rev, at: at, now: now, asked: asked}
	if r.into(sh, false) {
		return
	}
	r.rev.Source = bytes.Clone(rev.Source)
	r.into(sh, true)
}

// into puts the read into its shard and reports whether it did: it doesn't where it would have to copy a large body with
// the lock held, which own says that it needn't.
func (r *reading) into(sh *shard, own bool) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gone := r.s.indices.gone(r.ix)
	if r.at < gone {
		sh.get(r.k, gone, r.now)
		sh.lose(r.k, ReasonIndex)
		return true
	}
	e := sh.put(r.k, gone, r.at, r.now)
	if r.k.sess.named && r.asked != 0 && r.asked < e.asked {
		return true
	}
	if !own && r.rev.Source != nil && e.lacks(r.rev.Numbers) {
		if len(r.rev.Source) > copyOutside {
			return false
		}
		r.rev.Source = bytes.Clone(r.rev.Source)
	}
	e.asked = max(e.asked, r.asked)
	sh.read(e, r.rev, r.now)
	sh.shrink(e)
	return true
}

// read adds a read to the entry. rev.Source is the store's own, or of a revision whose bytes are held.
func (sh *shard) read(e *entry, rev doc.Revision, now int64) {
	sh.order++
	e.newestRead = sh.order
	e.lost = ReasonNone
	if e.key.sess.named {
		sh.keepOnly(e, rev.Numbers)
	}
	i := find(e.reads, rev.Numbers)
	added := i < 0
	if added {
		i = len(e.reads)
		e.reads = append(e.reads, read{seen: seen{numbers: rev.Numbers, order: sh.order}})
		sh.charge(e)
	}
	r := &e.reads[i]
	r.at = now
	r.count++
	if e.key.sess.named {
		r.count, r.order, r.doubt = 1, sh.order, false // of many, it may be another who has read it
	}
	if rev.Version != 0 {
		r.version = rev.Version
	}
	if r.body == nil && rev.Source != nil {
		r.body = sh.hold(e, rev.Numbers, rev.Source)
		added = true
	}
	if added {
		sh.limit(e)
	}
}

// keepOnly takes out the reads of all other revisions.
func (sh *shard) keepOnly(e *entry, n doc.Numbers) {
	for i := len(e.reads) - 1; i >= 0; i-- {
		if e.reads[i].numbers != n {
			sh.removeRead(e, i)
		}
	}
}

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
	s     *Store
	sh    *shard
	ix    *index
	k     key
	rev   doc.Revision
	at    Epoch
	asked uint64 // 0: not known
	now   int64

	// What compare has found out of the body that is held under the same numbers: whether its bytes are the same, or of another document; and
	// whether it was read before this was asked for.
	held                          *body
	compared, same, other, before bool
	copied                        bool // rev.Source is the store's own
}

func (s *Store) read(sess Session, ref doc.Ref, rev doc.Revision, at Epoch, asked uint64) {
	if s.dryRun {
		return
	}
	k := key{sess: sess, ref: ref}
	r := reading{s: s, sh: s.shard(k), k: k, rev: rev, at: at, asked: asked, now: s.clock()}
	r.ix = s.indices.get(ref.Index, r.now)
	if r.ix.isBlind(sess, r.now) {
		r.sh.mu.Lock()
		defer r.sh.mu.Unlock()
		r.lose(s.indices.gone(r.ix), ReasonBlind) // it does read this one: overwriting it is not blind
		return
	}
	if rev.Source != nil {
		r.rev.Source = s.worth(rev.Source, r.ix, r.now)
	}
	renewed, done := r.into()
	for !done {
		r.compare()
		renewed, done = r.into()
	}
	if renewed {
		s.renewed(ref.Index)
	}
}

// into puts the read into its shard. done is false where its bytes have to be compared first, without the lock. renewed says that its index
// is another than the one that was known.
func (r *reading) into() (renewed, done bool) {
	r.sh.mu.Lock()
	defer r.sh.mu.Unlock()
	gone := r.s.indices.gone(r.ix)
	e := r.sh.get(r.k, gone, r.now)
	if r.at < gone {
		if e != nil && r.k.sess.named && r.asked > e.asked {
			r.sh.outdate(e) // what its client has in hand now is this
		}
		r.sh.lose(r.k, ReasonIndex)
		return false, true
	}
	if e != nil && r.k.sess.named && r.asked != 0 && r.asked < e.asked {
		return false, true
	}
	d := r.sh.documentOf(r.k, e, gone)
	if !r.isCompared(d) {
		return false, false
	}
	if older := d.knewNewer(r.rev.Numbers, r.asked, 0); older || r.other {
		at, dropped := r.s.indices.renew(r.ix, gone)
		if !dropped || !older && !r.before { // it may be a read of the index that was there before
			r.lose(at, ReasonIndex)
			return dropped, true
		}
		renewed, gone, r.at, r.same, e = true, at, at, false, nil
	}
	if e == nil {
		e = r.sh.put(r.k, gone, r.at, r.now)
	}
	e.asked = max(e.asked, r.asked)
	r.sh.read(e, r.rev, r.body(e.doc), r.now)
	r.sh.shrink(e)
	return renewed, true
}

// lose notes that the read can't be kept.
func (r *reading) lose(gone Epoch, why Reason) {
	r.sh.get(r.k, gone, r.now)
	r.sh.lose(r.k, why)
}

// isCompared reports whether it is known how the bytes compare with those that are held under the same numbers. Small ones that are the
// same, as most are, are compared at once.
func (r *reading) isCompared(d *document) bool {
	held := d.find(r.rev.Numbers)
	if r.rev.Source == nil || r.compared && r.held == held {
		return true
	}
	if r.held, r.compared = held, false; held != nil {
		r.before = held.asked != 0 && r.asked > held.asked
		r.other = held.asked != 0 && r.asked != 0
	}
	if len(r.rev.Source) > copyOutside {
		return false
	}
	r.same = held != nil && bytes.Equal(held.data, r.rev.Source)
	if held == nil || r.same {
		r.other = false
		return true
	}
	return false
}

// compare compares the bytes, and copies them if they are to be kept.
func (r *reading) compare() {
	r.compared = true
	r.same = r.held != nil && bytes.Equal(r.held.data, r.rev.Source)
	r.other = r.other && r.held != nil && !r.same && differ(r.held.data, r.rev.Source)
	if !r.same && !r.copied {
		r.rev.Source, r.copied = bytes.Clone(r.rev.Source), true
	}
}

// body returns the body of what was read, with one reference more; nil for none. It is the one that the next reads of the revision share.
func (r *reading) body(d *document) *body {
	if r.rev.Source == nil {
		return nil
	}
	var b *body
	if r.same {
		b = r.held
		b.refs++
	} else {
		if !r.copied {
			r.rev.Source = bytes.Clone(r.rev.Source)
		}
		d.unlist(d.find(r.rev.Numbers))
		b = r.sh.list(d, r.rev.Numbers, r.rev.Source)
	}
	if r.asked != 0 && b.asked == 0 {
		b.asked = r.s.asked.Load()
	}
	return b
}

// read adds a read to the entry, of the body b, whose reference it takes.
func (sh *shard) read(e *entry, rev doc.Revision, b *body, now int64) {
	sh.order++
	e.newestRead = sh.order
	e.lost = ReasonNone
	if e.key.sess.named {
		sh.keepOnly(e, rev.Numbers)
	}
	i := find(e.reads, rev.Numbers)
	if i < 0 {
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
	switch {
	case r.body == nil:
		r.body = b
	case b == nil || b == r.body:
		sh.free(b)
	default: // clients of the session have different bytes in hand
		sh.free(r.body)
		if r.body = b; r.count > 1 {
			sh.free(b)
			r.body = nil
		}
	}
	sh.limit(e)
}

// keepOnly takes out the reads of all other revisions.
func (sh *shard) keepOnly(e *entry, n doc.Numbers) {
	for i := len(e.reads) - 1; i >= 0; i-- {
		if e.reads[i].numbers != n {
			sh.removeRead(e, i)
		}
	}
}

package session

import (
	"bytes"
	"encoding/json"

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

// ReadUnknown notes that the session saw the document, and that it isn't known which revision. What it has written or, if it is named, read
// before is no base any more: who writes now may have made it from what it has just seen, and what others did since would count as its own.
func (s *Store) ReadUnknown(sess Session, ref doc.Ref) {
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e == nil {
		return
	}
	was := e.empty()
	sh.dropView(e)
	if sess.named { // nor does a read that is reserved now come back
		e.newestRead = sh.order
		for i := len(e.reads) - 1; i >= 0; i-- {
			sh.removeRead(e, i)
		}
	}
	sh.emptied(e, was)
}

// WroteElse notes that the session wrote the document otherwise, by an item of a bulk say, and left it at the numbers and version of left;
// whole says that it wrote all of it, and not a part. at is the epoch from before that was sent. A view that it has is older, and would
// take a write that says the same once more for one that changes nothing: it is the numbers alone from now on. Where others wrote between
// the view and the part, these would let the session overwrite what it hasn't seen: then the view guards against that, and is refused.
// What it has read stays what it was.
func (s *Store) WroteElse(sess Session, ref doc.Ref, left doc.Revision, whole bool, at Epoch) {
	if s.dryRun {
		return
	}
	sh, e, gone, now := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e == nil {
		return
	}
	v := e.view
	if v.set && left.Known() && left.SeqNo < v.numbers.SeqNo {
		return // the answer is late: the view is newer
	}
	was := e.empty()
	sh.dropView(e)
	for i := range e.recent {
		e.recent[i].hash = 0 // nor is what it wrote before repeated by what it writes now
	}
	if v.set && left.Known() && at >= gone {
		next := v.version != 0 && left.Version == v.version+1 && !v.absent && !v.apart
		sh.see(e, view{seen: seen{numbers: left.Numbers, version: left.Version, at: now}, apart: !whole && !next}, nil, nil)
	}
	sh.emptied(e, was)
}

// open locks the shard of what the session knows of ref, and gives that: nil for nothing. What is of an epoch before gone doesn't count any
// more. The caller unlocks the shard.
func (s *Store) open(sess Session, ref doc.Ref) (sh *shard, e *entry, gone Epoch, now int64) {
	now = s.clock()
	ix := s.indices.get(ref.Index, now)
	k := key{sess: sess, ref: ref}
	sh = s.shard(k)
	sh.mu.Lock()
	gone = s.indices.gone(ix)
	return sh, sh.get(k, gone, now), gone, now
}

// dropView takes the entry's view away, also one that is reserved now: that doesn't come back.
func (sh *shard) dropView(e *entry) {
	sh.clearView(e)
	sh.order++
	e.newestView = sh.order
}

// emptied marks what is known as lost where that was taken away just now, or is reserved; was says that the entry was empty before.
func (sh *shard) emptied(e *entry, was bool) {
	if e.empty() && (!was || sh.inFlight[e.key] != nil) {
		e.lost = ReasonEvicted
	}
}

// Shown notes that a session which names itself was shown the document, by an answer that tells no numbers. Where that isn't what it sent
// last, nobody can tell which of the two it writes from next: its view is a guard then, and not merged. Once a write was refused for that,
// and the session is shown the document again, the view is no base any more.
func (s *Store) Shown(sess Session, ref doc.Ref, source []byte) {
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e == nil || !sess.named || !e.view.set || len(e.reads) > 0 || alike(e.view.sentBody.bytes(), source) {
		return
	}
	if e.view.shown && e.view.returned {
		sh.clearView(e)
		e.lost = ReasonEvicted
		return
	}
	e.view.shown = true
}

// alike reports whether two documents are the same but for white space between their parts, which an answer may have been asked for.
func alike(a, b []byte) bool {
	if same(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return a != nil && json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
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

// lacks reports whether the bytes of a revision are not held.
func (e *entry) lacks(n doc.Numbers) bool {
	if i := find(e.reads, n); i >= 0 && e.reads[i].body != nil {
		return false
	}
	return e.doc.find(n) == nil
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

package session

import (
	"bytes"
	"encoding/json"
	"math"

	"optimist/internal/doc"
	"optimist/internal/viewcache"
)

// ReadUnknown notes that the session has seen the document in an unknown revision. The next write may be made from that revision: a merge
// from an older base would count other clients' changes in between as the session's own. So the session's earlier writes are no bases any
// more, and neither are the earlier reads of a named session. The next write of a trace has no base, whatever other clients read and write
// meanwhile.
func (s *Store) ReadUnknown(sess Session, ref doc.Ref) {
	if s.dryRun {
		return
	}
	at := s.Epoch()
	if sess.InTrace() {
		s.ReadUnknown(sess.Written(), ref)
	}
	sh, e, gone, now := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	if e == nil && sess.IsImplicit() {
		e = sh.Put(viewcache.KeyOf(sess, ref), sess.Network(), gone, at, now)
		e.Lost = ReasonEvicted
		sh.Settled(e)
	}
	if e != nil {
		defer sh.emptied(e, e.Empty())
		e.UntraceAll(sess.Trace())
		sh.outdate(e)
	}
}

// outdate is called when a session has seen a newer revision. It drops the session's view and, if the session is named, its reads. A base
// that is reserved at the moment isn't given back later.
func (sh *shard) outdate(e *viewcache.Entry) {
	sh.DropView(e)
	if e.Key.Session.IsNamed() {
		e.NewestRead = sh.Order
		sh.RemoveReads(e, func(*viewcache.Read) bool { return true })
	}
}

// WroteForwarded notes that the session wrote the document by a request that optimist only forwarded, an item of a bulk for example. left
// has the numbers and version that the write left. whole says that it wrote the whole document, or created it. at is the epoch from
// before the request was sent.
//
//   - The session's view is now older than the document. If the session sent the view's bytes once more, a merge from the view would see
//     no change. So the view keeps only the numbers of left.
//   - Other clients may have written between the view and a part. Then the numbers of left would let the session overwrite changes that it
//     hasn't seen. So the view is marked as different from the stored document, and the session's next write is refused.
//   - The earlier reads of a named session are older, too. For the same reason they are no bases any more.
//   - If the numbers of left aren't known, the session has no base any more.
//
// Reads of other sessions stay.
func (s *Store) WroteForwarded(sess Session, ref doc.Ref, left doc.Revision, whole bool, at Epoch) {
	if s.dryRun {
		return
	}
	if sess.InTrace() {
		s.WroteForwarded(sess.Written(), ref, left, whole, at)
	}
	sh, e, gone, now := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	if e == nil {
		return
	}
	if left.Known() && at >= gone {
		sh.acknowledged(e, s.index(ref.Index, sess.Credentials(), now), left.Numbers, s.tickets.Load())
	}
	v := e.View
	if v.Set && left.Known() && left.SeqNo < v.Numbers.SeqNo {
		return // the answer is late: the view is newer
	}
	defer sh.emptied(e, e.Empty())
	if left.Known() {
		v = sh.superseded(e, left.Numbers, v)
		sh.DropView(e)
	} else {
		sh.outdate(e)
	}
	e.Repeats.Forget() // a later write of the same bytes is no repeat of an earlier one
	if v.Set && left.Known() && at >= gone {
		next := v.Version != 0 && left.Version == v.Version+1 && !v.Absent && !v.Difference
		sight := viewcache.Sight{Numbers: left.Numbers, Version: left.Version, At: now}
		sh.See(e, viewcache.View{Sight: sight, Difference: !whole && !next}, nil, nil)
	}
}

// WriteUndone notes that a rollback has undone a write of the session. n is the revision that the write had left; zero: it isn't known. The
// client doesn't know of the rollback, and may send the same document again. A merge from the session's view would find no change in it,
// and that write would get lost. So the view is no base any more, unless the session has written since. In a named session, reads up to the
// undone write are no bases any more, either.
func (s *Store) WriteUndone(sess Session, ref doc.Ref, n doc.Numbers) {
	if s.dryRun {
		return
	}
	if sess.InTrace() {
		s.WriteUndone(sess.Written(), ref, n)
	}
	sh, e, _, _ := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	switch {
	case e == nil, n.Known() && e.View.Set && e.View.Numbers.SeqNo > n.SeqNo:
		return
	case !n.Known():
		n.SeqNo = math.MaxInt64
	}
	defer sh.emptied(e, e.Empty())
	sh.DropView(e)
	if e.Key.Session.IsNamed() {
		sh.RemoveReads(e, func(r *viewcache.Read) bool { return r.Numbers.SeqNo <= n.SeqNo })
	}
	e.Repeats.Forget()
}

// superseded drops the reads that a named session made before it wrote the document by a forwarded request. It returns the revision that
// the session had seen last: one of these reads, or v.
func (sh *shard) superseded(e *viewcache.Entry, left doc.Numbers, v viewcache.View) viewcache.View {
	if !e.Key.Session.IsNamed() {
		return v
	}
	sh.RemoveReads(e, func(r *viewcache.Read) bool {
		isOver := !r.Numbers.Known() || r.Numbers.SeqNo < left.SeqNo // else it is a read of that write, or of a later one
		if isOver && (!v.Set || r.Order > v.Order) {
			v = viewcache.View{Sight: r.Sight, Set: true, Absent: !r.Numbers.Known()}
		}
		return isOver
	})
	return v
}

// ChangedUnknown notes that a thread of work has changed documents, by an update by query for example, and nobody knows which ones. The
// thread's earlier reads and writes still guard its next writes, but are never merged. The client may put that change into the body that it
// sends, too: in a merge it would count twice. For an inferred session ChangedUnknown does nothing, because many threads share it.
func (s *Store) ChangedUnknown(sess Session) {
	if thread, ok := sess.Thread(); ok && !s.dryRun {
		s.changers.Note(thread.Bare(), s.clock())
	}
}

// open locks the shard of k, and returns the entry of k; nil: there is none. Reads from before the epoch gone don't count any more. The
// caller unlocks the shard.
func (s *Store) open(k viewcache.Key) (sh *shard, e *viewcache.Entry, gone Epoch, now int64) {
	sh, now = s.shard(k), s.clock()
	ix := s.findOf(k, now)
	sh.mu.Lock()
	gone = ix.Gone()
	return sh, sh.Get(k, gone, now), gone, now
}

// emptied is called, with the shard locked, after a read or a view was dropped from the entry. If the entry has none left, apart from a
// reserved base, emptied marks the base as lost. was says that the entry was empty before.
func (sh *shard) emptied(e *viewcache.Entry, was bool) {
	if e.Empty() && (!was || sh.pending.Of(e.Key) != nil) {
		e.Lost = ReasonEvicted
	}
	sh.note(e)
}

// ReadPart notes that a thread of work has seen the document in an answer without its numbers, or with a part of it. rev.Source is all of
// the document in that answer; nil: it isn't known. If it differs from the thread's last read or write, the next write may be made from
// either. So the last read or write only guards the thread's writes, and isn't merged, until the thread reads the document with its
// numbers: see Found. Without it, the next write would go unguarded. If the answer has the numbers of the thread's last read or write, the
// thread has seen nothing new.
func (s *Store) ReadPart(sess Session, ref doc.Ref, rev doc.Revision) {
	if s.dryRun {
		return
	}
	sh, e, _, _ := s.open(viewcache.KeyOf(sess, ref))
	defer sh.mu.Unlock()
	if e == nil || !sess.IsNamed() {
		return
	}
	contradicts := func(n doc.Numbers, body *viewcache.Body) bool {
		return (n != rev.Numbers || !n.Known()) && !alike(body.Bytes(), rev.Source)
	}
	for i := range e.Reads {
		r := &e.Reads[i]
		r.Contradiction = r.Contradiction || contradicts(r.Numbers, r.Body)
	}
	v := &e.View
	n := v.Numbers
	if v.Difference { // the numbers are of the stored document, and the view is what was sent
		n = doc.Numbers{}
	}
	v.Contradiction = v.Contradiction || v.Set && contradicts(n, v.SentBody)
}

// ShownUnknown notes that an answer has shown the session documents of the index, and nobody knows which ones, or in which revisions. index
// is "" for any index. For a named session, it is ReadPart for every document that the session has read or written before. In an
// inferred session, a client may write from such an answer, although another client has read or written the document since: see
// mayBeAnothers.
func (s *Store) ShownUnknown(sess Session, index string) {
	if s.dryRun {
		return
	}
	now := s.clock()
	if ix := s.find(index, sess.Credentials(), now); sess.IsNamed() {
		ix.Shown(sess.Bare(), now)
	} else {
		ix.WasShown(sess.Bare(), now)
	}
}

// wasShown reports whether answers have shown clients of the session documents of the index, and nobody knows which ones. Searches count,
// too.
func (t *selection) wasShown() bool {
	return t.ix.HasSearched(t.k.Session, t.now) || t.ix.ShownSince(t.k.Session.Bare(), t.now-int64(t.s.o.MaxAge)+1, t.now)
}

// alike reports whether two documents differ in white space at most: a client may have asked for an indented answer.
func alike(a, b []byte) bool {
	if viewcache.Same(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return a != nil && b != nil && json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

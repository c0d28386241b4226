package session

import (
	"bytes"
	"encoding/json"
	"math"

	"optimist/internal/doc"
	"optimist/internal/viewcache"
)

// ReadUnknown notes that the session has seen the document, in an unknown revision. The session's earlier writes are no base any more. In
// a named session, neither are its earlier reads. The next write may be made from the unknown revision. In a merge from an older base,
// changes of others in between would count as the session's own. In a trace, its next write has no base, whatever others read and write
// meanwhile.
func (s *Store) ReadUnknown(sess Session, ref doc.Ref) {
	at := s.Epoch()
	if sess.InTrace() {
		s.ReadUnknown(sess.Written(), ref)
	}
	sh, e, gone, now := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e == nil && sess.IsOfHolder() {
		e = sh.Put(viewcache.KeyOf(sess, ref), sess.Network(), gone, at, now)
		e.Lost = ReasonEvicted
	}
	if e != nil {
		e.UntraceAll(sess.Trace())
		was := e.Empty()
		sh.outdate(e)
		sh.emptied(e, was)
	}
}

// outdate drops the writes of the entry's session and, if it is named, its reads, because it has seen a newer revision. Bases that are
// reserved at the moment don't come back.
func (sh *shard) outdate(e *viewcache.Entry) {
	sh.DropView(e)
	if e.Key.Session.IsNamed() {
		e.NewestRead = sh.Order
		for i := len(e.Reads) - 1; i >= 0; i-- {
			sh.RemoveRead(e, i)
		}
	}
}

// WroteForwarded notes that the session wrote the document by a request that optimist only forwarded, an item of a bulk for example. left
// has the numbers and version that the write left. whole says that it wrote the whole document, or created it. at is the epoch from
// before the request was sent.
//
//   - The session's view is older than that write. If the session then wrote the view's bytes once more, a merge would see no
//     change. So only the numbers of left stay as a view.
//   - If others wrote between the view and a part, the numbers of left would let the session overwrite what it hasn't seen. The
//     view is marked as different from what is stored then, and its next write is refused.
//   - What a named session has read before is older, too, and is no base any more, for the same reason.
//   - If the numbers of left aren't known, nothing is a base any more.
//
// Reads of other sessions stay.
func (s *Store) WroteForwarded(sess Session, ref doc.Ref, left doc.Revision, whole bool, at Epoch) {
	if s.dryRun {
		return
	}
	if sess.InTrace() {
		s.WroteForwarded(sess.Written(), ref, left, whole, at)
	}
	sh, e, gone, now := s.open(sess, ref)
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
	was := e.Empty()
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
	sh.emptied(e, was)
}

// WriteUndone notes that a write of the session was undone. n is the revision that the write had left; zero: it isn't known. The client
// doesn't know of the undo, and may send the same document again. A merge from the session's view would then find no change, and the write
// would get lost. So the view is no base any more, unless the session has written since. In a named session, reads up to that write are no
// bases any more, either.
func (s *Store) WriteUndone(sess Session, ref doc.Ref, n doc.Numbers) {
	if s.dryRun {
		return
	}
	if sess.InTrace() {
		s.WriteUndone(sess.Written(), ref, n)
	}
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	switch {
	case e == nil, n.Known() && e.View.Set && e.View.Numbers.SeqNo > n.SeqNo:
		return
	case !n.Known():
		n.SeqNo = math.MaxInt64
	}
	was := e.Empty()
	sh.DropView(e)
	for i := len(e.Reads) - 1; i >= 0 && e.Key.Session.IsNamed(); i-- {
		if e.Reads[i].Numbers.SeqNo <= n.SeqNo {
			sh.RemoveRead(e, i)
		}
	}
	e.Repeats.Forget()
	sh.emptied(e, was)
}

// superseded drops the reads that a named session made before it wrote the document by itself. It returns what the session had seen
// last: one of these reads, or v.
func (sh *shard) superseded(e *viewcache.Entry, left doc.Numbers, v viewcache.View) viewcache.View {
	for i := len(e.Reads) - 1; i >= 0 && e.Key.Session.IsNamed(); i-- {
		r := &e.Reads[i]
		if r.Numbers.SeqNo >= left.SeqNo && r.Numbers.Known() {
			continue // it is a read of that write, or of a later one
		}
		if !v.Set || r.Order > v.Order {
			v = viewcache.View{Sight: r.Sight, Set: true, Absent: !r.Numbers.Known()}
		}
		sh.RemoveRead(e, i)
	}
	return v
}

// ChangedUnknown notes that a thread of work has changed unknown documents, by an update by query, for example. The thread's earlier
// reads and writes still guard its next writes, but aren't merged: the client may have put that change into the body that it sends, and
// the change would count twice. It does nothing for an inferred session, which is many threads.
func (s *Store) ChangedUnknown(sess Session) {
	if thread, ok := sess.Thread(); ok && !s.dryRun {
		s.changers.Note(thread.Bare(), s.clock())
	}
}

// open locks the shard of ref, and returns the session's entry for ref; nil: there is none. Reads from before the epoch gone don't count
// any more. The caller unlocks the shard.
func (s *Store) open(sess Session, ref doc.Ref) (sh *shard, e *viewcache.Entry, gone Epoch, now int64) {
	now = s.clock()
	ix := s.find(ref.Index, sess.Credentials(), now)
	k := viewcache.KeyOf(sess, ref)
	sh = s.shard(k)
	sh.mu.Lock()
	gone = ix.Gone()
	return sh, sh.Get(k, gone, now), gone, now
}

// emptied is called after something was dropped from the entry. If nothing is left, or only a reserved base, it marks the base as lost. was
// says that the entry was empty before.
func (sh *shard) emptied(e *viewcache.Entry, was bool) {
	if e.Empty() && (!was || sh.pending.Of(e.Key) != nil) {
		e.Lost = ReasonEvicted
	}
	sh.note(e)
}

// ReadUnnumbered notes that a thread of work has seen the document in an answer without numbers. source is what it has seen of it; nil:
// that isn't known. If that differs from what the thread has read or sent, the next write may be made from either. What it has read or
// sent only guards writes then, which aren't merged, until the thread reads the document with its numbers: see Found. If it were dropped
// instead, the next write would go unguarded.
func (s *Store) ReadUnnumbered(sess Session, ref doc.Ref, source []byte) {
	s.ReadPart(sess, ref, doc.Revision{Source: source})
}

// ReadPart is ReadUnnumbered for a part of the document, whose numbers may be known. If they are those of what the thread has read or sent,
// it has seen nothing else.
func (s *Store) ReadPart(sess Session, ref doc.Ref, rev doc.Revision) {
	sh, e, _, _ := s.open(sess, ref)
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
	if v.Difference { // they are of another document than what was sent
		n = doc.Numbers{}
	}
	v.Contradiction = v.Contradiction || v.Set && contradicts(n, v.SentBody)
}

// ShownUnknown notes that a session was shown documents of the index, and nobody knows which ones, or in which revisions. index is "" for
// any index. Of a named session, it is ReadUnnumbered for all that the session has read or written before. In an inferred one, another
// client than the one that wrote last may write from what it was shown: see mayBeAnothers.
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

// wasShown reports whether clients of the session were shown documents of the index, or have searched it, and nobody knows what they have
// seen.
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

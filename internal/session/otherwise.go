package session

import (
	"bytes"
	"encoding/json"

	"optimist/internal/doc"
	"optimist/internal/seen"
)

// ReadUnknown notes that the session saw the document, and that it isn't known which revision. What it has written or, if it is
// named, read before is no base any more: who writes now may have made it from what it has just seen, and what others did since
// would count as its own.
func (s *Store) ReadUnknown(sess Session, ref doc.Ref) {
	if sess.InTrace() {
		s.ReadUnknown(sess.Written(), ref)
	}
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e != nil {
		was := e.Empty()
		sh.outdate(e)
		sh.emptied(e, was)
	}
}

// outdate takes away what the entry's session has written or, if it is named, read: it has seen something newer. What is reserved
// now doesn't come back.
func (sh *shard) outdate(e *seen.Entry) {
	sh.DropView(e)
	if e.Key.Session.IsNamed() {
		e.NewestRead = sh.Order
		for i := len(e.Reads) - 1; i >= 0; i-- {
			sh.RemoveRead(e, i)
		}
	}
}

// WroteElse notes that the session wrote the document otherwise, by an item of a bulk say, and left it at the numbers and version
// of left; whole says that it wrote all of it, and not a part. at is the epoch from before that was sent. A view that it has is
// older, and would take a write that says the same once more for one that changes nothing: it is the numbers alone from now on.
// Where others wrote between the view and the part, these would let the session overwrite what it hasn't seen: then the view
// guards against that, and is refused. What it has read before is older, too, if it is named, and from then on the numbers of what it
// wrote guard: a change that counts from the read would be none where it says what the read said. Where these numbers aren't known,
// nothing is a base any more. Reads of other sessions stay.
func (s *Store) WroteElse(sess Session, ref doc.Ref, left doc.Revision, whole bool, at Epoch) {
	if s.dryRun {
		return
	}
	if sess.InTrace() {
		s.WroteElse(sess.Written(), ref, left, whole, at)
	}
	sh, e, gone, now := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e == nil {
		return
	}
	if left.Known() && at >= gone {
		sh.acknowledged(e, s.index(ref.Index, sess.Credentials(), now), left.Numbers, s.asked.Load())
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
	e.Repeats.Forget() // nor is what it wrote before repeated by what it writes now
	if v.Set && left.Known() && at >= gone {
		next := v.Version != 0 && left.Version == v.Version+1 && !v.Absent && !v.Difference
		sh.See(e, seen.View{Sight: seen.Sight{Numbers: left.Numbers, Version: left.Version, At: now}, Difference: !whole && !next}, nil, nil)
	}
	sh.emptied(e, was)
}

// superseded ends what a named session has read before it wrote the document itself. It returns what it has seen last: the read, or v.
func (sh *shard) superseded(e *seen.Entry, left doc.Numbers, v seen.View) seen.View {
	for i := len(e.Reads) - 1; i >= 0 && e.Key.Session.IsNamed(); i-- {
		r := &e.Reads[i]
		if r.Numbers.SeqNo >= left.SeqNo && r.Numbers.Known() {
			continue // it has read what it wrote, or what came after
		}
		if !v.Set || r.Order > v.Order {
			v = seen.View{Sight: r.Sight, Set: true, Absent: !r.Numbers.Known()}
		}
		sh.RemoveRead(e, i)
	}
	return v
}

// ChangedUnknown notes that a thread of work has changed documents, and that it isn't known which: by a query, say. What it has read or
// written before guards its next writes, and isn't merged: it may have worked in what it has changed, and that would count twice. Sessions
// that are inferred are many threads, of which nobody knows who has changed what.
func (s *Store) ChangedUnknown(sess Session) {
	if thread, ok := sess.Thread(); ok && !s.dryRun {
		s.changers.Note(thread, s.clock())
	}
}

// open locks the shard of what the session knows of ref, and gives that: nil for nothing. What is of an epoch before gone doesn't
// count any more. The caller unlocks the shard.
func (s *Store) open(sess Session, ref doc.Ref) (sh *shard, e *seen.Entry, gone Epoch, now int64) {
	now = s.clock()
	ix := s.index(ref.Index, sess.Credentials(), now)
	k := seen.KeyOf(sess, ref)
	sh = s.shard(k)
	sh.mu.Lock()
	gone = ix.Gone()
	return sh, sh.Get(k, gone, now), gone, now
}

// emptied marks what is known as lost where that was taken away just now, or is reserved; was says that the entry was empty
// before.
func (sh *shard) emptied(e *seen.Entry, was bool) {
	if e.Empty() && (!was || sh.inFlight.Of(e.Key) != nil) {
		e.Lost = ReasonEvicted
	}
	sh.note(e)
}

// ReadUnnumbered notes that a thread of work was shown the document, by an answer that tells no numbers. Where that isn't what it sent
// last, nobody can tell which of the two it writes from next: its view is a guard then, and not merged. Once a write was
// refused for that, and the session is shown the document again, the view is no base any more.
func (s *Store) ReadUnnumbered(sess Session, ref doc.Ref, source []byte) {
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	if e == nil || !sess.IsNamed() || !e.View.Set || len(e.Reads) > 0 || alike(e.View.SentBody.Bytes(), source) {
		return
	}
	if e.View.Contradiction && e.View.Failure {
		sh.ClearView(e)
		e.Lost = ReasonEvicted
		sh.note(e)
		return
	}
	e.View.Contradiction = true
}

// alike reports whether two documents are the same but for white space between their parts, which an answer may have been asked
// for.
func alike(a, b []byte) bool {
	if seen.Same(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return a != nil && json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

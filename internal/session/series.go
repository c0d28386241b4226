package session

import (
	"context"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/viewcache"
)

// Series has the writes of one request to the same documents, one after the other. The client has sent all of them at once. So the base of
// each write is the revision that the write before it leaves, whatever the session's clients have read. The zero value has no writes yet.
// One goroutine at a time uses a Series. A write that is alone has a nil Series.
type Series struct {
	// results has what the last write of each document has left. Writes with different routings are of different documents.
	results map[doc.Ref]*result

	begun bool // a write is under way
	ref   doc.Ref
	base  result // the base of the write under way, as a guard alone
	seen  bool   // see has noted what the write under way has left
}

// result is what a write has left. The session may know that, too, or may have forgotten it.
type result struct {
	viewcache.View
	sent, stored []byte
}

// Known reports whether anything is known of what the writes have left.
func (s *Series) Known() bool { return s != nil && len(s.results) > 0 }

// Begin notes that the next write has the base b.
func (s *Series) Begin(b *Base) {
	if s == nil {
		return
	}
	b.claim.series = s
	s.begun, s.seen, s.ref = true, false, b.claim.key.Ref.Clone()
	s.base = result{}
	s.base.Sight = viewcache.Sight{Numbers: b.Numbers, Version: b.Version, Doubt: true}
	s.base.Absent = b.Kind == KindAbsent
	s.base.Difference = b.StoredDiffers
}

// End notes that a write has ended. applied says that the engine has acknowledged it. unknown says that its outcome is unknown. If nobody
// knows what the write has left, the next write has the same base as this one, and the base only guards it. If nobody knows this base
// either, the next write gets its base from the session.
func (s *Series) End(applied, unknown bool) {
	if s == nil {
		return
	}
	switch guard := s.base; {
	case !s.begun && (applied || unknown):
		clear(s.results)
	case unknown && (guard.Numbers.Known() || guard.Absent):
		s.put(&guard)
	case unknown, applied && !s.seen:
		delete(s.results, s.ref)
	}
	s.begun, s.base = false, result{}
}

// see notes what the write under way has left.
func (s *Series) see(v *viewcache.View, sent, stored []byte) {
	if s != nil {
		s.seen = true
		s.put(&result{View: *v, sent: sent, stored: stored})
	}
}

// leaveToEngine notes that the engine merges the write under way by itself: the base of this write can't guard the next one. It returns s.
func (s *Series) leaveToEngine() *Series {
	if s != nil {
		s.base = result{}
	}
	return s
}

func (s *Series) put(l *result) {
	if s.results == nil {
		s.results = map[doc.Ref]*result{}
	}
	s.results[s.ref] = l
}

// last is what the last write of the document has left; nil: that isn't known.
func (s *Series) last(ref doc.Ref) *result {
	if s == nil {
		return nil
	}
	return s.results[ref]
}

// TakeNext is Take for a write of a series. The base is what the write before it has left. If that isn't known, TakeNext does what Take
// does. It also recognises a repeat of a write that another request has sent.
func (s *Store) TakeNext(ctx context.Context, sess Session, ref doc.Ref, series *Series, sent []byte) (Base, error) {
	after := series.last(ref)
	if after == nil {
		return s.Take(ctx, sess, ref, sent)
	}
	t := s.selection(sess, ref, sent)
	t.after = after
	b, err := t.take(ctx)
	if err == nil && sess.InTrace() {
		if _, wrote := t.traceHas(); wrote {
			b.Join(s.Witness(sess.Written(), ref))
		}
	}
	return b, err
}

// choiceInput returns what choice.Choose has to know of the document: only what the write before has left.
func (l *result) choiceInput() choice.Input {
	return choice.Input{View: &choice.View{Numbers: l.Numbers, Answer: l.Answer, Sent: l.sent, Stored: viewcache.Same(l.sent, l.stored),
		Differs: l.Difference, Absent: l.Absent, Doubt: l.Doubt}}
}

// claim fills in the claim of a write whose base is what the write before has left. That is the session's view, unless another write has
// taken the view meanwhile.
func (l *result) claim(e *viewcache.Entry, c *claim) {
	c.kind, c.View, c.sent, c.stored = KindView, l.View, l.sent, l.stored
	if e == nil || !e.View.Set || e.View.Order != l.Order {
		c.took = choice.TakePast
	}
}

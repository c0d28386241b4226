package session

import (
	"context"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/viewcache"
)

// Series is the writes of one request that name the same document, one after the other. Their client has sent all of them at once. So each
// is made from what the write before it leaves, whatever the session's clients have read. The zero value has no writes yet. One goroutine
// at a time uses a Series. A nil Series is that of a write that is alone.
type Series struct {
	// results are what the last write of each document has left. Writes that differ in their routing are of different documents.
	results map[doc.Ref]*result

	begun bool // a write is under way
	ref   doc.Ref
	base  result // its base, as a guard alone
	seen  bool   // what it left is known
}

// result is what a write has left. The session may know it, too, or may have forgotten it.
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

// End notes that a write has ended. applied says that the engine acknowledged it, unknown that nobody knows. If nobody knows what it left,
// the next write may not be merged: its base is that of this write, as a guard alone. If not even that is known, the session is asked for
// the next write's base.
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

// leaveToEngine notes that the engine merges the write under way by itself: its base is no guard for the next one. It returns s.
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

// TakeNext is Take for a write of a series: what the write before it has left is its base. If that isn't known, TakeNext is Take. It also
// recognises a repeat of a write that another request has sent.
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

// choiceInput is what choice.Choose has to know of the document: nothing but what the write before has left.
func (l *result) choiceInput() choice.Input {
	return choice.Input{View: &choice.View{Numbers: l.Numbers, Answer: l.Answer, Sent: l.sent, Stored: viewcache.Same(l.sent, l.stored),
		Differs: l.Difference, Absent: l.Absent, Doubt: l.Doubt}}
}

// claim fills in the claim of what the write before has left. It is the session's view, unless another write has taken that meanwhile.
func (l *result) claim(e *viewcache.Entry, c *claim) {
	c.kind, c.View, c.sent, c.stored = KindView, l.View, l.sent, l.stored
	if e == nil || !e.View.Set || e.View.Order != l.Order {
		c.took = choice.TakePast
	}
}

package session

import (
	"optimist/internal/choice"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// The store ends with the process. A Notebook outlives the process, and has the numbers of what sessions have seen. The note that the
// process before has made of a document is the document's recollection. It lasts as long as a read would (Options.MaxAge). It guards a
// write that has no other base. Such a write is never merged: the body of the base isn't known, and the write may repeat one that the
// process before has sent.
//
// For an inferred session, the note is the oldest revision from which one of its clients may write. The engine then refuses the write of a
// client that has a newer revision, without need. That client reads again. If one client alone had something in hand, the note serves one
// acknowledged write, as a read does.

// takesRecollection reports whether the recollection is the base of the write. In an inferred session it is the base, unless the content of
// the write shows that the write was made from a revision which the session has seen since the start. A part that only sets values needs no
// base. The client of another part may never have read the document, either: such a client isn't refused for ever.
func (t *selection) takesRecollection(e *viewcache.Entry, f *repeat.Pending) bool {
	t.maybeEarlier = false
	switch {
	case e == nil || e.Recollection == nil || t.Explicit.Known():
		return false
	case t.Named:
		return e.Empty() && !f.Any()
	case t.traceTells || t.Part && t.s.compare.Sets != nil && t.s.compare.Sets():
		return false
	case !t.Part && e.Empty() && len(e.Past) == 0:
		return true
	case e.Recollection.Left == 0 || t.Repeat >= choice.UnheardRepeat || t.Doubt != nil:
		return false
	}
	if t.maybeEarlier = t.isRecent(e); t.maybeEarlier {
		return false
	}
	if !t.s.dryRun {
		e.Recollection.Left--
	}
	return true
}

// reserveRecollection makes the recollection the base.
func (t *selection) reserveRecollection(e *viewcache.Entry, b *Base) {
	c, m := &b.claim, &e.Recollection.Note
	c.kind, c.Doubt, c.key = KindExplicit, true, t.ownKey(e)
	c.recalled, c.Numbers = true, m.Numbers
	b.Kind = KindRead
	switch {
	case !m.Numbers.Known():
		b.Kind = KindAbsent
	case m.Written:
		b.Kind = KindView
	}
	b.Reason, b.Numbers, b.Use, b.StoredDiffers = ReasonRestart, m.Numbers, UseGuard, m.Written && m.StoredDiffers
	b.Guessed = !t.Named
	b.Ambiguous = b.Guessed && (m.Clients > 1 || !e.Empty())
	t.count(b.Kind)
	if !t.s.dryRun {
		t.sh.startPending(c)
		t.sh.note(e)
	}
}

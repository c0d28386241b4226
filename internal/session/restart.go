package session

import (
	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/memo"
	"optimist/internal/repeat"
)

// What a session knows goes with the process. The numbers of it are noted in a Notebook, which outlives the process. For the age of
// what is known after a start, a document of which a session knows nothing has a memo: what the process before has noted. A write that
// has nothing else is guarded by it. It is never merged: nobody has the body, and the write may be one that was sent before.
//
// Of an inferred session the oldest is noted that any of its clients may have in hand. A client with something newer is refused where it
// needn't be, and reads again.

// keepsNotes reports whether what the process before has noted counts for k.
func (sh *shard) keepsNotes(k *key, now int64) bool {
	return !k.sess.IsOfHolder() && sh.notes.Counts(now)
}

// noted is k as notes know it.
func (k *key) noted() *memo.Key {
	return &memo.Key{Credentials: k.sess.Credentials(), Session: k.sess.Name(), Named: k.sess.IsNamed(), Ref: k.ref}
}

// noted reports whether the process before has noted something of k.
func (sh *shard) noted(k *key, now int64) bool {
	if !sh.keepsNotes(k, now) {
		return false
	}
	return sh.notes.Recall(sh.notes.ID(k.noted()), now) != nil
}

// recall gives a new entry its place in the notebook, and what the process before has noted there.
func (sh *shard) recall(e *entry, now int64) {
	if sh.notes == nil || e.key.sess.IsOfHolder() {
		return
	}
	e.noteID = sh.notes.ID(e.key.noted())
	if sh.keepsNotes(&e.key, now) {
		e.memo = sh.notes.Recall(e.noteID, now)
	}
}

// note notes what the entry's session has in hand, for the next process.
func (sh *shard) note(e *entry) {
	if sh.notes == nil || e.key.sess.IsOfHolder() {
		return
	}
	n := e.note(sh.inFlight.Of(e.key))
	n.At = sh.notes.Started() + e.touched
	sh.notes.Put(e.noteID, n)
}

// note is what of the entry is noted; f is what is in flight of it.
func (e *entry) note(f *repeat.Flight) (n memo.Note) {
	if e.key.sess.IsNamed() {
		return e.noteOfThread(f)
	}
	if e.memo != nil {
		n = e.memo.Note
	}
	for i := range e.reads {
		n.Add(memo.Note{Numbers: e.reads[i].numbers, Clients: e.reads[i].count})
	}
	for _, g := range f.Guards() {
		n.Add(memo.Note{Numbers: g, Clients: 1})
	}
	if e.view.set && (e.shared || n.Clients == 0) {
		n.Add(e.view.note())
	}
	for i := range e.past {
		v := e.past[i].view.note()
		v.Clients = 0 // hardly anybody has it in hand
		n.Add(v)
	}
	return n
}

// noteOfThread is what is noted of a named session, in which the newest replaces what was before.
func (e *entry) noteOfThread(f *repeat.Flight) (n memo.Note) {
	switch {
	case len(e.reads) > 0:
		return memo.Note{Numbers: e.reads[0].numbers, Clients: 1}
	case len(f.Guards()) > 0:
		for _, g := range f.Guards() {
			n.Add(memo.Note{Numbers: g, Clients: 1})
		}
		return n
	case e.view.set:
		return e.view.note()
	}
	if e.memo != nil {
		return e.memo.Note
	}
	return n
}

// note is what is noted of a view. The numbers that its answer named stand for what its client has in hand.
func (v *view) note() memo.Note {
	n := memo.Note{Numbers: v.numbers, Clients: 1, Written: !v.absent, Apart: v.difference}
	if v.absent {
		n.Numbers = doc.Numbers{}
	}
	if v.answer.Known() && v.answer != v.numbers {
		n = memo.Note{Numbers: v.answer, Clients: 1, Apart: true}
	}
	return n
}

// outlives takes the memo away where it stands for nothing any more: the session has read or written since, if it is named; or what
// stands there is known by now, because somebody has read it.
func (e *entry) outlives(n doc.Numbers) {
	if m := e.memo; m != nil && (e.key.sess.IsNamed() || n == m.Numbers && !m.Apart) {
		e.memo = nil
	}
}

// takesMemo reports whether the memo is the base of the write. In an inferred session it is, unless the write shows that it was made
// from something that the session has seen since.
func (t *taking) takesMemo(e *entry, f *repeat.Flight) bool {
	switch {
	case e == nil || e.memo == nil || t.Given.Known():
		return false
	case t.Named:
		return e.empty() && !f.Any()
	case t.On != nil || t.traced:
		return false
	case e.empty() && len(e.past) == 0:
		return true
	case e.memo.Left == 0 || t.Repeat >= choice.UnheardRepeat || t.Doubt != nil:
		return false
	}
	recent := false
	if t.extends, recent = e.isRecent(t.Sent); recent {
		return false
	}
	if !t.s.dryRun {
		e.memo.Left--
	}
	return true
}

// reserveExtended makes that the base of which the write holds everything: others may have read it before the start, and a client that has
// read it since must find it, too. It is a guard, and not merged.
func (t *taking) reserveExtended(e *entry, b *Base) {
	if i := find(e.reads, t.extends.numbers); i >= 0 && !t.s.dryRun {
		e.shared = true
		if r := &e.reads[i]; r.count > 1 {
			r.count--
		} else {
			t.sh.retireRead(e, i)
		}
	}
	t.reserveGuard(e, memo.Note{Numbers: t.extends.numbers, Clients: 2}, b)
	b.View, b.Stored, b.Doubtful = t.extends.data, t.extends.data, false
	b.claim.sent, b.claim.stored, b.claim.doubt = b.View, b.View, false
}

// reserveMemo makes the memo the base.
func (t *taking) reserveMemo(e *entry, b *Base) { t.reserveGuard(e, e.memo.Note, b) }

// reserveGuard makes the base what is noted, of which nobody has the body.
func (t *taking) reserveGuard(e *entry, m memo.Note, b *Base) {
	c := &b.claim
	c.kind, c.kept, c.doubt, c.key = KindGiven, true, true, t.ownKey(e)
	c.numbers = m.Numbers
	b.Kind = KindRead
	switch {
	case !m.Numbers.Known():
		b.Kind = KindAbsent
	case m.Written:
		b.Kind = KindView
	}
	b.Reason, b.Numbers, b.Doubtful, b.Apart = ReasonRestart, m.Numbers, true, m.Written && m.Apart
	b.Guessed = !t.Named
	b.Ambiguous = b.Guessed && (m.Clients > 1 || !e.empty())
	t.count(b.Kind)
	if !t.s.dryRun {
		t.sh.depart(c)
		t.sh.note(e)
	}
}

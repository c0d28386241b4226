package session

import (
	"hash/maphash"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// Commit ends the reservation after an acknowledged write. The reserved base is used up, and the session has seen the body that it sent.
// A write without a base leaves no view in an inferred session, unless it has created the document. So the session's next write has no base
// either, and is stored as it was sent.
func (b *Base) Commit(a Ack) {
	if b.claim.sentPart {
		a.Sent = nil
	}
	if j := b.takeJoined(); j != nil {
		j.Commit(a)
		a.Copy = Copy{} // the joined base has it
	}
	c := b.end()
	if c.sh == nil {
		return
	}
	s, leavesBase := c.sh.store, c.pending != nil
	now := s.clock()
	ix := s.index(c.key.Ref.Index, c.key.Session.Credentials(), now)
	if !a.Created {
		s.wrote(ix, c.key.Session, now)
	}
	switch {
	case a.deleted || c.key.Session.IsNamed() || c.key.Session.IsImplicit():
	case !c.blind:
		ix.WroteKnown(c.key.Session, now)
	case !a.Created:
		ix.WroteBlindly(c.key.Session, maphash.Comparable(s.seed, c.key.Ref), now)
	case a.Sent != nil && !ix.IsBlind(c.key.Session, now) && ix.KeepsBodies(now):
		leavesBase = true // the client holds the document that it sent
	}
	unanswered, renewed := c.settle(&a, leavesBase, ix, now)
	if unanswered != nil {
		b.unanswered = Unanswered{c.sh, unanswered}
	}
	if renewed {
		s.renewed(c.key.Session.Credentials(), c.key.Ref.Index)
	}
}

// Delete ends the reservation after an acknowledged delete. The session has seen that the document is absent.
func (b *Base) Delete() { b.Commit(Ack{deleted: true}) }

// passedBy is called after a write that didn't take the entry's view as its base, such as a blind writer's, and left these numbers. It
// drops a view that is older: if the session's next write had this view as its base, it would count this write's change twice. e may be
// nil.
func (sh *shard) passedBy(e *viewcache.Entry, left doc.Numbers) {
	if e == nil || !e.View.Set || e.View.Numbers == left || viewcache.Newer(e.View.Numbers, left) {
		return
	}
	defer sh.emptied(e, e.Empty())
	sh.DropView(e)
}

// saw makes v, the view that the write has left, the session's view, and returns it. The exception is a client of a named session that had
// given the write up before the answer came: its session keeps the view that it has. A client counts as such a one if it has read and
// written since the write came, or has written a newer revision. The first is known even if the session's entry was evicted meanwhile. If
// the write was under way for longer than views are kept, optimist may have forgotten that, and takes it for such a client, too.
func (sh *shard) saw(c *claim, e *viewcache.Entry, v viewcache.View, stored, sent []byte) viewcache.View {
	wroteNewer := e.View.Set && viewcache.Newer(e.View.Numbers, v.Numbers)
	forgotten := v.At-c.came >= int64(sh.store.o.MaxAge)
	if e.Key.Session.IsNamed() && (wroteNewer || forgotten || c.givenUp) {
		sh.emptied(e, false)
		return v
	}
	sh.See(e, v, stored, sent)
	return e.View
}

// settle makes the revision that an acknowledged write left the session's view. Without leavesBase, no later write may be made from that
// revision, and it becomes no view. unanswered is the write, if its client may still repeat it because it has no answer yet. renewed says
// that somebody has made the index anew, as the numbers of the answer show.
func (c *claim) settle(a *Ack, leavesBase bool, ix indexstate.Index[Session], now int64) (unanswered *repeat.Attempt, renewed bool) {
	k, sh := c.key, c.sh
	var stored, sent []byte
	if leavesBase {
		stored, sent = sh.store.bodies(a, k.Session.IsNamed(), ix, now)
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gone := ix.Gone()
	e := sh.Again(c.entry, k, gone, now)
	sh.Unlose(k, e) // a lost base, as any other, serves one write only
	if c.since >= gone && c.showsAnotherIndex(a, sh.DocumentOf(k, e, gone)) {
		if gone, renewed = ix.Renew(gone); renewed {
			c.since = gone
		}
	}
	if !leavesBase {
		sh.passedBy(e, a.Stored.Numbers)
		return nil, renewed
	}
	waited := sh.endPending(c)
	waited.Unfollow() // Acknowledge, below, takes this back if optimist knows which revision the write left
	switch {
	case c.since < gone:
		sh.Lose(k, c.network, ReasonIndex)
		return nil, renewed
	case !a.deleted && !a.Stored.Known():
		if e = sh.Get(k, gone, now); e != nil { // from the older view as a base, the next write would count this write's change twice
			sh.outdate(e)
			sh.note(e)
		}
		sh.Lose(k, c.network, ReasonEvicted)
		return nil, renewed
	}
	if e == nil || renewed {
		e = sh.Put(k, c.network, gone, c.since, now)
	} else {
		sh.Use(e, c.network)
	}
	sh.acknowledged(e, ix, a.Stored.Numbers, sh.store.tickets.Load())
	if !a.deleted && !k.Session.IsNamed() {
		unanswered = e.Repeats.Acknowledge(c.attempt, a.Stored.Numbers, a.alias(), waited)
	}
	v := c.viewOf(a, now)
	c.spend(e, &v)
	left := sh.saw(c, e, v, stored, sent)
	c.series.see(&left, sent, stored)
	if a.Copy.Token != 0 { // the client may name what it sent by the copy that its answer hands out
		copied := sh.Put(viewcache.Key{Session: k.Session.Holding(a.Copy), Ref: e.Key.Ref}, c.network, gone, c.since, now)
		sh.See(copied, v, stored, sent)
	}
	sh.Settled(e)
	return unanswered, renewed
}

// spend notes that the base has served an acknowledged write, which left v.
func (c *claim) spend(e *viewcache.Entry, v *viewcache.View) {
	if !v.Absent {
		e.Spend(&c.View)
	}
	if c.recalled && !v.Difference {
		e.SpendRecollection()
	}
}

// viewOf is the view of the revision that the acknowledged write left.
func (c *claim) viewOf(a *Ack, now int64) viewcache.View {
	sight := viewcache.Sight{Numbers: a.Stored.Numbers, Version: a.Stored.Version, At: now}
	v := viewcache.View{Sight: sight, Absent: a.deleted, Answer: a.AnswerNumbers}
	v.Difference, v.FromNothing, v.Unread = a.differs(), c.kind == KindAbsent, c.blind
	return v
}

// Release ends the reservation after a write that failed. The reserved base is given back, and is as old as before. In a named session a
// read is given back only if the session has made no newer read since.
func (b *Base) Release() {
	if j := b.takeJoined(); j != nil {
		j.Release()
	}
	c := b.end()
	if c.pending == nil {
		return
	}
	c.Failure, c.series = c.Contradiction, nil // a repeat that gets the claim belongs to another series, or to none
	sh := c.sh
	now := sh.store.clock()
	ix := sh.store.findOf(c.key, now)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.release(&c, ix.Gone(), now)
}

// LeaveToEngine ends the reservation of a part that the engine merges by itself. The session gets the reserved read back, because another
// client may have made that read. The base's Kind is KindNone afterwards. Call EngineMerged once the engine has merged the part. makes
// merges the part into a document.
func (b *Base) LeaveToEngine(makes func(base []byte) ([]byte, error)) {
	var l *forEngine
	c := &b.claim
	if (c.Numbers.Known() || c.kind == KindAbsent) && (c.took == choice.TakeRead || c.series != nil) {
		l = &forEngine{store: c.sh.store, key: c.key, Sight: c.Sight, read: c.took == choice.TakeRead, series: c.series.leaveToEngine()}
		if l.series != nil && c.sent != nil && !c.sentPart {
			l.made, _ = makes(c.sent) // if it is nil, the numbers are a guard all the same
		}
	}
	b.Release()
	*b = Base{toEngine: l}
}

// WasLeftToEngine reports whether EngineMerged has anything to note.
func (b *Base) WasLeftToEngine() bool { return b.toEngine != nil }

// EngineMerged notes, after LeaveToEngine, that the engine has merged the part, or may have done so. rev is the revision that the engine
// has made; zero: it isn't known. The read that was given back is from then on less likely to be a later part's base than a read from which
// nobody has written. Without a LeaveToEngine before it, EngineMerged does nothing.
func (b *Base) EngineMerged(rev doc.Revision) {
	l := b.toEngine
	if l == nil {
		return
	}
	b.toEngine = nil
	if rev.Known() {
		v := viewcache.View{Sight: viewcache.Sight{Numbers: rev.Numbers, Version: rev.Version, At: l.store.clock()}}
		v.Difference = rev.Numbers != l.Numbers && rev.Version != l.Version+1
		l.series.see(&v, l.made, nil)
	}
	if !l.read {
		return
	}
	sh, e, _, _ := l.store.open(l.key)
	defer sh.mu.Unlock()
	if e != nil {
		e.SpendRead(&l.Sight)
	}
}

// Doubt ends the reservation after a write whose outcome isn't known. It gives back the numbers, as Release does, without the bodies.
// A write that repeats this one can be guarded by the numbers. It is never merged, because its change may be in the document already.
func (b *Base) Doubt() {
	if j := b.takeJoined(); j != nil {
		j.Doubt()
	}
	c := &b.claim
	c.sent, c.stored, c.Doubt, c.outcomeUnknown = nil, nil, true, true
	b.Release()
}

// NoteAnswer notes that the client of a committed write gets its answer, if the client is still there. Call it right before the answer is
// written: a client that left earlier may repeat the write, and a client that has its answer may close its connection at once. Without a
// Commit before it, NoteAnswer does nothing.
func (b *Base) NoteAnswer() { b.unanswered.NoteAnswer() }

// Unanswered is the committed write, for a caller that doesn't keep b until the answer is written.
func (b *Base) Unanswered() Unanswered { return b.unanswered }

// NoteAnswer is Base.NoteAnswer. A second call does nothing.
func (u Unanswered) NoteAnswer() {
	if u.attempt != nil {
		u.sh.mu.Lock()
		defer u.sh.mu.Unlock()
		u.attempt.Answer(u.sh.store.clock())
	}
}

// takeJoined returns the base that ends together with b. A second call returns nil, so that the joined base is ended once.
func (b *Base) takeJoined() *Base {
	j := b.joined
	b.joined = nil
	return j
}

// end returns the claim. A second call returns the zero value, so that the reservation is ended once.
func (b *Base) end() claim {
	c := b.claim
	b.claim = claim{}
	return c
}

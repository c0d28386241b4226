package session

import (
	"slices"

	"optimist/internal/doc"
)

// claim is what a Base needs to be ended. It has its own copy of what is given back, as the Base's exported fields are
// the caller's to change.
type claim struct {
	store *Store
	key   key
	since Epoch
	kind  Kind

	// kept says that the write leaves something that a later one can have as its base.
	kept bool
	// known says that the session has shown that it reads the document.
	known bool
	// viewed says that what was reserved is the own view.
	viewed bool
	// doubt says that a write with this base has no known outcome, doubted that it is this one, or its first try.
	doubt, doubted bool
	// shown, returned and apart are the view's.
	shown, returned, apart bool

	attempt *attempt // nil: nobody looks for repeats of it
	guessed bool     // the base is one of several
	// again says that it repeats a write that was acknowledged, and that nothing was reserved for it. first is that write, where it is known
	// to have been given up; then the base may also be the view.
	again bool
	first *attempt

	// What was reserved, with its place in the order and its age.
	order         uint64
	at            int64
	numbers, told doc.Numbers
	version       int64
	saw, stored   []byte
}

// reads reports whether an outstanding read is reserved.
func (c *claim) reads() bool {
	return !c.viewed && (c.kind == KindRead || c.kind == KindAbsent)
}

// Commit ends the reservation after an acknowledged write: what was reserved is used up, and the session has seen what
// it sent. A write without any base leaves nothing in an inferred session, so that what such a session sends next is
// stored as it is, too.
func (b *Base) Commit(a Ack) {
	if j := b.joins(); j != nil {
		j.Commit(a)
		a.Copy = Copy{} // it is known once
	}
	c := b.end()
	if c.store == nil {
		return
	}
	s, now := c.store, c.store.clock()
	ix := s.indices.get(c.key.ref.Index, now)
	if !a.Created {
		ix.wrote.Store(true)
		s.judge(&c, ix, now)
	}
	var stored, sent []byte
	if c.kept {
		stored, sent = s.bodies(a, ix, now)
	}
	k, sh := c.key, s.shard(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gone := s.indices.gone(ix)
	sh.found(k, sh.get(k, gone, now))
	if !c.kept {
		return
	}
	repeat := sh.land(&c)
	if repeat != nil {
		repeat.first = nil // until it is known what the write left
	}
	switch {
	case c.since < gone:
		sh.lose(k, ReasonIndex)
	case !a.Stored.Known():
		sh.lose(k, ReasonEvicted)
	default:
		v := view{numbers: a.Stored.Numbers, told: a.Told, version: a.Stored.Version, at: now, apart: a.apart()}
		e := sh.put(k, gone, c.since, now)
		switch o := e.remember(&c, &a); {
		case o == nil:
		case repeat != nil:
			repeat.first, o.client = o, nil
		case o.client != nil:
			b.unheard = unheardWrite{store: s, shard: sh, attempt: o}
		}
		e.spend(&c)
		sh.charge(e)
		sh.see(e, v, stored, sent)
		if a.Copy.Token != 0 {
			sh.hand(e, a.Copy, v, stored, sent)
		}
		sh.shrink(e)
	}
}

// unheard is a write that was acknowledged, while its client has no answer yet.
type unheardWrite struct {
	store   *Store
	shard   *shard
	attempt *attempt
}

// Answered notes that the client of a committed write is sent its answer, if it is still there. Call it when that is about to be written: a
// client that has left before may repeat the write, and one that has its answer may close its connection at once. Without a Commit before
// it, it does nothing.
func (b *Base) Answered() {
	u := b.unheard
	b.unheard = unheardWrite{}
	if u.store == nil {
		return
	}
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	o, now := u.attempt, u.store.clock()
	if o.client != nil && now-o.began >= late && u.store.left(o.client) {
		o.state, o.at = unheard, now
	}
	o.client = nil
}

// Delete ends the reservation after an acknowledged delete: the session has seen that the document is absent.
func (b *Base) Delete() {
	if j := b.joins(); j != nil {
		j.Delete()
	}
	c := b.end()
	if c.store == nil {
		return
	}
	s, now := c.store, c.store.clock()
	ix := s.indices.get(c.key.ref.Index, now)
	ix.wrote.Store(true)
	k, sh := c.key, s.shard(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gone := s.indices.gone(ix)
	sh.found(k, sh.get(k, gone, now))
	if !c.kept {
		return
	}
	if repeat := sh.land(&c); repeat != nil {
		repeat.first = nil
	}
	if c.since < gone {
		sh.lose(k, ReasonIndex)
		return
	}
	e := sh.put(k, gone, c.since, now)
	sh.see(e, view{absent: true, at: now}, nil, nil)
	sh.shrink(e)
}

// Release ends the reservation after a write that failed: what was reserved is given back, as old as it was. In a named
// session a read is given back only if there is none that is newer.
func (b *Base) Release() {
	if j := b.joins(); j != nil {
		j.Release()
	}
	c := b.end()
	if c.store == nil || !c.kept {
		return
	}
	c.returned = c.shown
	s, now := c.store, c.store.clock()
	ix := s.indices.get(c.key.ref.Index, now)
	sh := s.shard(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.release(&c, s.indices.gone(ix), now)
}

// release ends a reservation and gives back what was reserved.
func (sh *shard) release(c *claim, gone Epoch, now int64) {
	k, repeat := c.key, sh.land(c)
	sh.get(k, gone, now)
	if repeat != nil && (c.again || c.reads() || c.viewed) {
		sh.bequeath(*c, repeat)
		return
	}
	if repeat != nil {
		repeat.first = nil
	}
	c.first.repeatable(now)
	if !c.reads() && !c.viewed {
		switch {
		case c.doubt && c.key.sess.holder:
			sh.unsure(k)
		case c.doubt && c.key.sess.named && c.numbers.Known() && c.since >= gone:
			e := sh.put(k, gone, c.since, now)
			e.spend(c)
			sh.charge(e)
			sh.shrink(e)
		}
		return
	}
	switch {
	case c.since < gone:
		sh.lose(k, ReasonIndex)
	case now-c.at >= sh.maxAge:
		sh.lose(k, ReasonAged)
	default:
		e := sh.put(k, gone, c.since, now)
		sh.giveBack(e, c)
		e.doubt(c)
		sh.charge(e)
		sh.shrink(e)
	}
}

// Doubt ends the reservation after a write whose outcome isn't known: the numbers are given back as Release does, without the bodies. A
// write that repeats it can be guarded by them, and is never merged, because its change may be in the document already.
func (b *Base) Doubt() {
	if j := b.joins(); j != nil {
		j.Doubt()
	}
	c := &b.claim
	c.saw, c.stored, c.doubt, c.doubted = nil, nil, true, true
	b.Release()
}

// joins returns the base that ends together with b to who ends it first.
func (b *Base) joins() *Base {
	j := b.joined
	b.joined = nil
	return j
}

// end returns the claim to who ends it first, and the zero value to everybody after.
func (b *Base) end() claim {
	c := b.claim
	b.claim = claim{}
	return c
}

// judge makes a blind writer of an inferred session that overwrote a document which it had shown no knowledge of. Just
// after a start it can't come to that: what is unknown is lost then, as it may have been read before.
func (s *Store) judge(c *claim, ix *index, now int64) {
	if c.kind != KindNone || c.known || c.key.sess.named || ix == &s.indices.others {
		return
	}
	ix.setBlind(c.key.sess, now+int64(s.maxAge))
}

// see makes v the entry's own view, newer than all before unless it has its place in the order. Its bodies are the
// store's own.
func (sh *shard) see(e *entry, v view, stored, sent []byte) {
	sh.clearView(e)
	v.set = true
	if v.order == 0 {
		sh.order++
		v.order = sh.order
		e.newestView = v.order
	}
	if stored != nil {
		v.stored = sh.hold(e, v.numbers, stored)
	}
	switch {
	case same(stored, sent):
		v.sent = v.stored
		v.sent.refs++
	case sent != nil:
		v.sent = sh.own(sent)
	}
	e.view = v
	e.lost = ReasonNone
}

// giveBack puts what c had reserved where it was.
func (sh *shard) giveBack(e *entry, c *claim) {
	if !c.viewed {
		sh.giveBackRead(e, c)
		return
	}
	if e.newestView > c.order {
		return // the session has written since
	}
	v := view{
		absent: c.kind == KindAbsent, numbers: c.numbers, told: c.told, version: c.version, order: c.order, at: c.at, doubt: c.doubt,
		shown: c.shown, returned: c.returned, apart: c.apart,
	}
	sh.see(e, v, c.stored, c.saw)
}

func (sh *shard) giveBackRead(e *entry, c *claim) {
	if c.key.sess.named && e.newestRead > c.order {
		return
	}
	r := read{numbers: c.numbers, version: c.version, count: 1, order: c.order, at: c.at, doubt: c.doubt}
	if i := find(e.reads, c.numbers); i >= 0 {
		old := e.reads[i]
		r.order, r.at, r.count = min(r.order, old.order), max(r.at, old.at), old.count+1
		r.body, r.doubt = old.body, r.doubt || old.doubt
		e.reads = slices.Delete(e.reads, i, i+1)
	}
	if r.body == nil && c.saw != nil {
		r.body = sh.hold(e, c.numbers, c.saw)
	}
	i := slices.IndexFunc(e.reads, func(o read) bool { return o.order > r.order })
	if i < 0 {
		i = len(e.reads)
	}
	e.reads = slices.Insert(e.reads, i, r)
	e.lost = ReasonNone
	sh.charge(e)
	sh.limit(e)
}

// take moves one read of the entry into b.
func (sh *shard) take(e *entry, i int, b *Base) {
	r := &e.reads[i]
	c := &b.claim
	c.kind, c.order, c.at = KindRead, r.order, r.at
	if r.numbers == (doc.Numbers{}) {
		c.kind = KindAbsent
	}
	c.numbers, c.version = r.numbers, r.version
	c.saw, c.doubt = r.body.bytes(), r.doubt
	c.stored = c.saw
	if r.count--; r.count == 0 {
		sh.removeRead(e, i)
	}
	c.key = e.key
	sh.fill(b)
}

// takeView moves the own view of the entry into b.
func (sh *shard) takeView(e *entry, b *Base) {
	v := &e.view
	c := &b.claim
	c.kind, c.viewed, c.order, c.at = KindView, true, v.order, v.at
	if v.absent {
		c.kind = KindAbsent
	}
	c.numbers, c.told, c.version = v.numbers, v.told, v.version
	c.saw, c.stored, c.doubt = v.sent.bytes(), v.stored.bytes(), v.doubt
	c.shown, c.returned, c.apart = v.shown, v.returned, v.apart
	sh.clearView(e)
	c.key = e.key
	sh.fill(b)
}

// fill shows what the claim has in the base, and counts the write as in flight. The strings of the claim's key are the store's own.
func (sh *shard) fill(b *Base) {
	c := &b.claim
	c.kept, c.known = true, true
	c.guessed = b.Ambiguous
	sh.depart(c)
	sh.show(b)
}

// show shows what the claim has in the base.
func (sh *shard) show(b *Base) {
	c := &b.claim
	b.Kind, b.Numbers, b.Told, b.Version, b.View, b.Stored = c.kind, c.numbers, c.told, c.version, c.saw, c.stored
	b.Doubtful, b.Apart = c.doubt || c.shown, c.apart
	sh.n.Taken[b.Kind]++
}

package session

// Commit ends the reservation after an acknowledged write: what was reserved is used up, and the session has seen what
// it sent. A write without any base leaves nothing in an inferred session, so that what such a session sends next is
// stored as it is, too.
func (b *Base) Commit(a Ack) { b.acknowledged(a, false) }

// Delete ends the reservation after an acknowledged delete: the session has seen that the document is absent.
func (b *Base) Delete() { b.acknowledged(Ack{}, true) }

func (b *Base) acknowledged(a Ack, deleted bool) {
	if j := b.joins(); j != nil {
		j.acknowledged(a, deleted)
		a.Copy = Copy{} // it is known once
	}
	c := b.end()
	if c.store == nil {
		return
	}
	s, now := c.store, c.store.clock()
	ix := s.indices.Index(c.key.ref.Index, now)
	if !a.Created {
		ix.Wrote()
	}
	if c.blind && !a.Created && !deleted {
		ix.WroteBlindly(c.key.sess, now)
	}
	var stored, sent []byte
	if c.kept {
		stored, sent = s.bodies(a, ix, now)
	}
	k, sh, renewed := c.key, s.shard(c.key), false
	defer func() {
		if renewed {
			s.renewed(k.ref.Index)
		}
	}()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gone := ix.Gone()
	e := sh.get(k, gone, now)
	sh.found(k, e)
	if c.since >= gone && sh.documentOf(k, e, gone).knewNewer(a.Stored.Numbers, 0, c.taken) {
		if gone, renewed = ix.Renew(gone); renewed {
			c.since = gone
		}
	}
	if !c.kept {
		return
	}
	repeat := sh.land(&c)
	repeat.startAnew() // unless it is known what the write left
	switch {
	case c.since < gone:
		sh.lose(k, ReasonIndex)
		return
	case !deleted && !a.Stored.Known():
		sh.lose(k, ReasonEvicted)
		return
	}
	e = sh.put(k, gone, c.since, now)
	sh.acknowledged(e, ix, a.Stored.Numbers, s.asked.Load())
	v := view{
		seen:   seen{numbers: a.Stored.Numbers, version: a.Stored.Version, at: now},
		absent: deleted, told: a.Told, apart: a.apart(),
	}
	if !deleted {
		if !k.sess.named {
			b.unanswered = unanswered{s, sh, e.repeats.acknowledge(c.attempt, &a, repeat)}
		}
		e.spend(&c.view)
		sh.charge(e)
	}
	sh.see(e, v, stored, sent)
	if a.Copy.Token != 0 {
		sh.hand(e, a.Copy, v, stored, sent)
	}
	sh.shrink(e)
}

// Release ends the reservation after a write that failed: what was reserved is given back, as old as it was. In a named
// session a read is given back only if there is none that is newer.
func (b *Base) Release() {
	if j := b.joins(); j != nil {
		j.Release()
	}
	c := b.end()
	if !c.kept {
		return
	}
	c.returned = c.shown
	s, now := c.store, c.store.clock()
	ix, sh := s.indices.Index(c.key.ref.Index, now), s.shard(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.release(&c, ix.Gone(), now)
}

// Doubt ends the reservation after a write whose outcome isn't known: the numbers are given back as Release does, without the bodies. A
// write that repeats it can be guarded by them, and is never merged, because its change may be in the document already.
func (b *Base) Doubt() {
	if j := b.joins(); j != nil {
		j.Doubt()
	}
	c := &b.claim
	c.sent, c.stored, c.doubt, c.doubted = nil, nil, true, true
	b.Release()
}

// Answered notes that the client of a committed write is sent its answer, if it is still there. Call it when that is about to be written: a
// client that has left before may repeat the write, and one that has its answer may close its connection at once. Without a Commit before
// it, it does nothing.
func (b *Base) Answered() {
	u := b.unanswered
	b.unanswered = unanswered{}
	if u.attempt == nil {
		return
	}
	u.shard.mu.Lock()
	defer u.shard.mu.Unlock()
	u.attempt.answer(u.store.clock())
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

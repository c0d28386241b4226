package session

import (
	"optimist/internal/life"
	"optimist/internal/repeat"
)

// Commit ends the reservation after an acknowledged write: what was reserved is used up, and the session has seen what
// it sent. A write without any base leaves nothing in an inferred session, so that what such a session sends next is
// stored as it is, too.
func (b *Base) Commit(a Ack) { b.acknowledged(a, false) }

// Delete ends the reservation after an acknowledged delete: the session has seen that the document is absent.
func (b *Base) Delete() { b.acknowledged(Ack{}, true) }

func (b *Base) acknowledged(a Ack, deleted bool) {
	if b.claim.part {
		a.Sent = nil
	}
	if j := b.joins(); j != nil {
		j.acknowledged(a, deleted)
		a.Copy = Copy{} // it is known once
	}
	c := b.end()
	if c.store == nil {
		return
	}
	now := c.store.clock()
	ix := c.store.index(c.key.ref.Index, c.key.sess.Credentials(), now)
	if !a.Created {
		c.store.wrote(ix, c.key.sess, now)
	}
	if c.blind && !a.Created && !deleted {
		ix.WroteBlindly(c.key.sess, now)
	}
	unanswered, renewed := c.settle(&a, deleted, ix, now)
	if unanswered != nil {
		b.unanswered = answering{c.store.shard(c.key), unanswered}
	}
	if renewed {
		c.store.notes.DropIndex(c.key.ref.Index, c.store.clock())
		c.store.o.Renewed.Call(c.key.sess.Credentials(), c.key.ref.Index)
	}
}

// settle makes what an acknowledged write left the session's view. It returns the write if its client has no answer yet and may
// repeat it. renewed says that the index is another than was known.
func (c *claim) settle(a *Ack, deleted bool, ix *life.Index[Session], now int64) (unanswered *repeat.Attempt, renewed bool) {
	var stored, sent []byte
	if c.kept {
		stored, sent = c.store.bodies(a, ix, now)
	}
	k, sh := c.key, c.store.shard(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	gone := ix.Gone()
	e := sh.get(k, gone, now)
	if e != nil { // each loss serves one write, as a read does
		e.lost = ReasonNone
	} else {
		sh.markers.Remove(sh.mark(k))
	}
	if c.since >= gone && sh.documentOf(k, e, gone).knewNewer(a.Stored.Numbers, 0, c.taken) {
		if gone, renewed = ix.Renew(life.Owner(k.sess.Credentials()), gone); renewed {
			c.since = gone
		}
	}
	if !c.kept {
		return nil, renewed
	}
	waited := sh.land(c)
	waited.StartAnew() // unless it is known what the write left
	switch {
	case c.since < gone:
		sh.lose(k, ReasonIndex)
		return nil, renewed
	case !deleted && !a.Stored.Known():
		sh.lose(k, ReasonEvicted)
		return nil, renewed
	}
	e = sh.put(k, gone, c.since, now)
	sh.acknowledged(e, ix, a.Stored.Numbers, c.store.asked.Load())
	if !deleted && !k.sess.IsNamed() {
		unanswered = e.repeats.Acknowledge(c.attempt, a.Stored.Numbers, a.alias(), waited)
	}
	if !deleted {
		e.spend(&c.view)
	}
	v := view{seen: seen{numbers: a.Stored.Numbers, version: a.Stored.Version, at: now}, absent: deleted, answer: a.Told}
	v.difference = a.differs()
	sh.see(e, v, stored, sent)
	if a.Copy.Token != 0 { // what was sent is known by the copy that the answer hands out
		held := sh.put(key{k.sess.Holding(a.Copy), e.key.ref}, gone, c.since, now)
		sh.move(held, k.sess) // it is the client's
		sh.see(held, v, stored, sent)
	}
	sh.settled(e)
	return unanswered, renewed
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
	c.failure = c.contradiction
	s, now := c.store, c.store.clock()
	ix, sh := s.index(c.key.ref.Index, c.key.sess.Credentials(), now), s.shard(c.key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.release(&c, ix.Gone(), now)
}

// Doubt ends the reservation after a write whose outcome isn't known: the numbers are given back as Release does, without the
// bodies. A write that repeats it can be guarded by them, and is never merged, because its change may be in the document already.
func (b *Base) Doubt() {
	if j := b.joins(); j != nil {
		j.Doubt()
	}
	c := &b.claim
	c.sent, c.stored, c.doubt, c.doubted = nil, nil, true, true
	b.Release()
}

// Answered notes that the client of a committed write is sent its answer, if it is still there. Call it right before that is
// written: a client that has left earlier may repeat the write, and one that has its answer may close its connection at once.
// Without a Commit before it, it does nothing.
func (b *Base) Answered() {
	if a := b.unanswered; a.attempt != nil {
		b.unanswered = answering{}
		a.sh.mu.Lock()
		defer a.sh.mu.Unlock()
		a.attempt.Answer(a.sh.clock())
	}
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

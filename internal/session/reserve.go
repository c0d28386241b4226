package session

import "slices"

// claim is what a Base needs to be ended. It has its own copy of what is given back, as the Base's exported fields are
// the caller's to change.
type claim struct {
	store *Store
	key   key
	since Epoch
	taken uint64 // the order of the newest that was seen then
	kind  Kind

	kept   bool // the write leaves something that a later one can have as its base
	blind  bool // overwriting the document with it makes its session a blind writer
	viewed bool // the own view is reserved
	// doubted says that nobody knows what became of this write, or of its first try; doubt, that it is so of some write with this base.
	doubted bool

	attempt *attempt // nil: nobody looks for repeats of it
	guessed bool     // the base is one of several
	// again says that it repeats a write that was acknowledged, and that nothing was reserved for it. first is that write, where it is known
	// to have been given up; then the base may also be the view.
	again bool
	first *attempt

	view         // what was reserved; of a read, what reads and views have in common. Its bodies are these:
	sent, stored []byte
}

// reads reports whether an outstanding read is reserved.
func (c *claim) reads() bool {
	return !c.viewed && (c.kind == KindRead || c.kind == KindAbsent)
}

// take moves one read of the entry into b.
func (sh *shard) take(e *entry, i int, b *Base) {
	r, c := &e.reads[i], &b.claim
	c.kind = KindRead
	if !r.numbers.Known() {
		c.kind = KindAbsent
	}
	c.view.seen = r.seen
	c.sent = r.body.bytes()
	c.stored = c.sent
	if r.count--; r.count == 0 {
		sh.removeRead(e, i)
	}
	c.key = e.key
	sh.fill(b)
}

// takeView moves the own view of the entry into b.
func (sh *shard) takeView(e *entry, b *Base) {
	c := &b.claim
	c.kind, c.viewed = KindView, true
	if e.view.absent {
		c.kind = KindAbsent
	}
	c.view, c.sent, c.stored = e.view, e.view.sentBody.bytes(), e.view.storedBody.bytes()
	sh.clearView(e)
	c.key = e.key
	sh.fill(b)
}

// fill shows what the claim has in the base, and counts the write as in flight. The strings of the claim's key are the store's own.
func (sh *shard) fill(b *Base) {
	b.claim.kept = true
	b.claim.guessed = b.Ambiguous
	sh.depart(&b.claim)
	sh.show(b)
}

// show shows what the claim has in the base.
func (sh *shard) show(b *Base) {
	c := &b.claim
	b.Kind, b.Numbers, b.Told, b.Version, b.View, b.Stored = c.kind, c.numbers, c.told, c.version, c.sent, c.stored
	b.Doubtful, b.Apart = c.doubt || c.shown, c.apart
	sh.taken[b.Kind]++
}

// release ends a reservation and gives back what was reserved.
func (sh *shard) release(c *claim, gone Epoch, now int64) {
	k, repeat := c.key, sh.land(c)
	sh.get(k, gone, now)
	if repeat != nil && (c.again || c.reads() || c.viewed) {
		sh.handOver(*c, repeat)
		return
	}
	repeat.startAnew()
	c.first.repeatable(now)
	reserved := c.reads() || c.viewed
	switch {
	case !reserved && c.doubt && c.key.sess.holder:
		sh.lose(k, ReasonEvicted) // it may have used the copy up
		return
	case !reserved && !(c.doubt && c.key.sess.named && c.numbers.Known() && c.since >= gone):
		return
	case c.since < gone:
		sh.lose(k, ReasonIndex)
		return
	case reserved && now-c.at >= sh.maxAge:
		sh.lose(k, ReasonAged)
		return
	}
	e := sh.put(k, gone, c.since, now)
	switch {
	case c.viewed:
		sh.giveBackView(e, c)
	case reserved:
		sh.giveBackRead(e, c)
	default:
		e.spend(&c.view) // what it sent may be in the document, and would count twice
	}
	if a := c.attempt; reserved && c.doubted && a != nil {
		a.state, a.numbers, a.client = inDoubt, c.numbers, nil
		e.repeats.keep(a)
	}
	sh.charge(e)
	sh.shrink(e)
}

// giveBackView puts the view that c had reserved where it was, unless the session has written since.
func (sh *shard) giveBackView(e *entry, c *claim) {
	if e.newestView <= c.order {
		sh.see(e, c.view, c.stored, c.sent)
	}
}

// giveBackRead puts the read that c had reserved where it was, unless a named session has read since.
func (sh *shard) giveBackRead(e *entry, c *claim) {
	if c.key.sess.named && e.newestRead > c.order {
		return
	}
	r := read{seen: c.seen, count: 1}
	if i := find(e.reads, c.numbers); i >= 0 {
		old := e.reads[i]
		r.order, r.at, r.count = min(r.order, old.order), max(r.at, old.at), old.count+1
		r.body, r.doubt = old.body, r.doubt || old.doubt
		e.reads = slices.Delete(e.reads, i, i+1)
	}
	if r.body == nil && c.sent != nil {
		r.body = sh.hold(e, c.numbers, c.sent)
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

// see makes v the entry's own view, newer than all before unless it has its place in the order. Its bodies are the
// store's own.
func (sh *shard) see(e *entry, v view, stored, sent []byte) {
	sh.clearView(e)
	v.set, v.storedBody, v.sentBody = true, nil, nil
	if v.order == 0 {
		sh.order++
		v.order = sh.order
		e.newestView = v.order
	}
	if stored != nil {
		v.storedBody = sh.hold(e, v.numbers, stored)
	}
	switch {
	case same(stored, sent):
		v.sentBody = v.storedBody
		v.sentBody.refs++
	case sent != nil:
		v.sentBody = sh.own(sent)
	}
	e.view = v
	e.lost = ReasonNone
}

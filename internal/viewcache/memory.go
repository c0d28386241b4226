// Package viewcache holds what sessions have seen of documents, within a bound of bytes: the revisions that clients have read and written,
// and may still write from. When the cache is full, the network that holds most of it makes room, and in that network the client that
// holds most.
//
// It doesn't choose a write's base: package choice and package session do. It reads no clock and takes no lock. Times are in
// nanoseconds since some moment.
package viewcache

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
	"optimist/internal/note"
	"optimist/internal/quota"
)

// The cost of entries beyond the bytes of strings and bodies: their structs, list elements, map slots and allocator rounding. A test
// holds these to the sizes of the structs.
const (
	entryCost    = 960
	attemptCost  = 144
	spentCost    = 16
	tracedCost   = 32
	sinceCost    = 512
	documentCost = 336
	readCost     = 80
	pastCost     = 144
	bodyCost     = 128
	markerCost   = 128
)

// Options configure a memory.
type Options struct {
	Seed    maphash.Seed
	MaxAge  int64        // how long a read or a view counts
	Bound   int64        // of all that is kept, in bytes
	Reads   int          // how many outstanding reads a session may have of a document, counted by revision
	Notes   *note.Book   // what the process before has noted; nil: nothing
	Changed func(*Entry) // is called when what a session knows of a document has changed
}

// Memory is what sessions have seen of the documents of a part of the key space. It is for one goroutine at a time.
type Memory struct {
	// Order is the place of the newest read or write. The next one comes after it.
	Order uint64

	carried uint64 // how many places before firstOrder are taken
	o       Options
	maxBody int64

	bytes    int64
	bodies   int
	lru      *simplelru.LRU[Key, *Entry]
	accounts accounts
	docs     map[docKey]*Document
	markers  *quota.Map[identity.Network, uint64, Reason] // of what was lost

	evicted, crowded uint64
}

// New returns a memory in which nothing was seen.
func New(o Options) *Memory {
	m := &Memory{Order: firstOrder, docs: make(map[docKey]*Document), accounts: newAccounts()}
	marks := o.Bound / 16 / markerCost
	o.Bound -= marks * markerCost
	m.o, m.maxBody = o, o.Bound/4
	// It errs on a size below 1 only. The number of entries is bounded by their bytes.
	m.lru, _ = simplelru.NewLRU[Key, *Entry](1<<31-1, nil)
	m.markers = quota.NewMap[identity.Network, uint64, Reason](int(marks))
	return m
}

// HasRoomFor reports whether a body is small enough to be kept.
func (m *Memory) HasRoomFor(data []byte) bool { return int64(len(data)) <= m.maxBody }

// Peek returns the entry of k as it is; nil: there is none. It doesn't count as a use of the entry.
func (m *Memory) Peek(k Key) *Entry {
	e, _ := m.lru.Peek(k)
	return e
}

// Get returns the entry of k; nil: there is none. It first drops what is too old. If the entry is from before the epoch gone, Get drops all
// of it.
func (m *Memory) Get(k Key, gone indexstate.Epoch, now int64) *Entry {
	e, ok := m.lru.Get(k)
	if !ok {
		return nil
	}
	return m.use(e, gone, now)
}

// Again is Get for a key of which e was the entry a while ago. e may be nil.
func (m *Memory) Again(e *Entry, k Key, gone indexstate.Epoch, now int64) *Entry {
	if e == nil || e.leaves {
		return m.Get(k, gone, now)
	}
	return m.use(e, gone, now)
}

// use drops what is too old of an entry. It returns nil if that is all of it.
func (m *Memory) use(e *Entry, gone indexstate.Epoch, now int64) *Entry {
	if e.epoch < gone {
		m.Forget(e, Index)
		return nil
	}
	e.Touched = now
	e.touch()
	known := e.hasSeen()
	m.RemoveReads(e, func(r *Read) bool { return now-r.At >= m.o.MaxAge })
	if e.View.Set && now-e.View.At >= m.o.MaxAge {
		m.clearView(e)
	}
	m.forgetHistory(e, func(p *Past) bool { return now-p.At >= m.o.MaxAge })
	if e.Recollection != nil && now >= e.Recollection.Till {
		e.Recollection, known = nil, true
	}
	if known && e.Empty() {
		e.Lost = Aged
	}
	return e
}

// Put returns the entry of k as Get does, for a request that comes from a network. If there is none, it makes one, of the epoch at.
func (m *Memory) Put(k Key, from identity.Network, gone, at indexstate.Epoch, now int64) *Entry {
	if e := m.Get(k, gone, now); e != nil {
		m.Use(e, from)
		return e
	}
	// Get drops old entries only if somebody asks for them. All others are dropped here: up to two for each new one.
	for range 2 {
		if _, old, ok := m.lru.GetOldest(); ok && now-old.Touched >= m.o.MaxAge {
			m.Forget(old, Aged)
		}
	}
	m.markers.Remove(m.mark(k))
	d := m.docs[k.doc()]
	if d == nil {
		k.Ref = k.Ref.Clone()
		d = &Document{Key: k.doc(), epoch: at}
		m.docs[d.Key] = d
		m.bytes += documentCost + refLen(k.Ref)
	} else if d.epoch < gone {
		d.renew(at)
	}
	k.Ref = d.Key.Ref
	e := &Entry{Key: k, epoch: at, Document: d, Touched: now}
	d.entries++
	e.held = documentCost + refLen(k.Ref)
	m.enter(e, identity.Client{Network: from, Credentials: k.Session.Credentials()})
	m.recall(e, now)
	m.charge(e)
	m.lru.Add(k, e)
	return e
}

// DocumentOf returns the document of k; nil: no session with the same credentials knows it. e is the entry of k, or nil.
func (m *Memory) DocumentOf(k Key, e *Entry, gone indexstate.Epoch) *Document {
	if e != nil {
		return e.Document
	}
	if d := m.docs[k.doc()]; d != nil && d.epoch >= gone {
		return d
	}
	return nil
}

// cost is how many bytes the entry itself takes.
func (e *Entry) cost() int64 {
	c := int64(entryCost + readCost*cap(e.Reads) + pastCost*cap(e.Past) + attemptCost*e.Repeats.Room() +
		spentCost*cap(e.spent) + tracedCost*cap(e.Traced))
	if e.Since != nil {
		c += sinceCost
	}
	return c
}

// charge counts the bytes of the entry itself again.
func (m *Memory) charge(e *Entry) {
	c := e.cost()
	if c == e.charged {
		return
	}
	m.bytes += c - e.charged
	m.account(e, c-e.charged)
	e.charged = c
}

// hold returns the body of a revision of the entry's document, with one reference more. If the body isn't known yet, hold keeps data
// itself, and no copy: nobody else may change it.
func (m *Memory) hold(e *Entry, n doc.Numbers, data []byte) *Body {
	b := e.Document.Find(n)
	switch {
	case b == nil:
		return m.List(e, n, data)
	case !bytes.Equal(b.Data, data): // the engine shows clients another form of the document than was written
		return m.Own(e, data)
	}
	m.Ref(e, b)
	return b
}

// List returns a new body of a revision. All sessions that read or write the revision share it.
func (m *Memory) List(e *Entry, n doc.Numbers, data []byte) *Body {
	b := m.Own(e, data)
	b.numbers, b.doc = n, e.Document
	e.Document.bodies = append(e.Document.bodies, b)
	return b
}

// Own returns a body that belongs to one entry alone.
func (m *Memory) Own(e *Entry, data []byte) *Body {
	b := &Body{Data: data}
	m.Ref(e, b)
	m.bytes += b.cost()
	m.bodies++
	return b
}

// free drops one reference of e to b. b may be nil.
func (m *Memory) free(e *Entry, b *Body) {
	if b == nil {
		return
	}
	m.account(e, -b.cost())
	if b.refs--; b.refs > 0 {
		if e.leaves && b.maker == e.account {
			m.dropDigest(e.Document, b) // its maker pays for it, and leaves; other clients may still refer to b
		}
		return
	}
	m.dropDigest(e.Document, b)
	m.bytes -= b.cost()
	m.bodies--
	b.doc.Unlist(b)
}

// freeBoth drops a view's references to its bodies.
func (m *Memory) freeBoth(e *Entry, v *View) {
	for b := range v.bodies {
		m.free(e, b)
	}
}

// dropDigest drops the digest of b, if one is kept. What other digests of the document share with it stays. From now on the makers of those
// pay for that, first that of the newest: otherwise, after some writes, nobody would pay for what all revisions share.
func (m *Memory) dropDigest(d *Document, b *Body) {
	if b.digest == nil {
		return
	}
	freed := b.digest.Drop()
	m.bytes -= freed
	m.accounts.charge(b.maker, -b.paid)
	rest := b.paid - freed // below 0: the others have paid for what was freed now
	b.digest, b.maker, b.paid = nil, nil, 0
	d.digested = slices.DeleteFunc(d.digested, func(o *Body) bool { return o == b })
	for _, o := range slices.Backward(d.digested) {
		if rest == 0 {
			break
		}
		more := max(rest, -o.paid)
		o.paid, rest = o.paid+more, rest-more
		m.accounts.charge(o.maker, more)
	}
}

// RemoveRead removes a read. If few reads are left of many, it also frees their room in the list.
func (m *Memory) RemoveRead(e *Entry, i int) {
	n := e.Reads[i].Numbers
	e.Traced = slices.DeleteFunc(e.Traced, func(r TracedRead) bool { return r.Numbers == n })
	m.free(e, e.Reads[i].Body)
	e.Reads = slices.Delete(e.Reads, i, i+1)
	if c := cap(e.Reads); c > 8 && len(e.Reads) <= c/4 {
		e.Reads = append(make([]Read, 0, c/2), e.Reads...)
		m.charge(e)
	}
}

// RemoveReads removes the reads that are over.
func (m *Memory) RemoveReads(e *Entry, isOver func(*Read) bool) {
	for i := len(e.Reads) - 1; i >= 0; i-- {
		if isOver(&e.Reads[i]) {
			m.RemoveRead(e, i)
		}
	}
}

// clearView removes the view.
func (m *Memory) clearView(e *Entry) {
	m.freeBoth(e, &e.View)
	e.View = View{}
}

// remove removes the entry and all that it holds.
func (m *Memory) remove(e *Entry) {
	e.leaves = true
	for _, r := range e.Reads {
		m.free(e, r.Body)
	}
	m.clearView(e)
	m.forgetHistory(e, all)
	e.Reads = nil
	m.lru.Remove(e.Key)
	m.exit(e)
	m.bytes -= e.charged
	d := e.Document
	if d.entries--; d.entries == 0 {
		m.bytes -= documentCost + refLen(d.Key.Ref)
		delete(m.docs, d.Key)
	}
}

// Settled is called after each change of e. It counts the bytes, calls Options.Changed, and evicts entries until the memory is within its
// bound: see accounts.next. e leaves last.
func (m *Memory) Settled(e *Entry) {
	m.charge(e)
	if m.o.Changed != nil {
		m.o.Changed(e)
	}
	for m.bytes > m.o.Bound {
		old := m.accounts.next(e)
		switch {
		case old == nil:
			return
		case old == e && len(e.Past) > 0:
			m.forgetPast(e, 0)
		case old == e && len(e.Reads) > 1:
			m.crowded++
			m.RemoveRead(e, 0)
		default:
			m.Forget(old, Evicted)
		}
	}
}

// limit removes the entry's oldest reads while there are too many, or while they hold too many bytes. One read always stays.
func (m *Memory) limit(e *Entry) {
	var size int64
	for i := range e.Reads {
		size += int64(len(e.Reads[i].Body.Bytes()))
	}
	for len(e.Reads) > 1 && (len(e.Reads) > m.o.Reads || size > m.maxBody) {
		size -= int64(len(e.Reads[0].Body.Bytes()))
		m.crowded++
		m.RemoveRead(e, 0)
	}
}

// Forget removes the entry. If there is, or was, anything in it, Forget leaves a marker with the reason.
func (m *Memory) Forget(e *Entry, why Reason) {
	was, from := e.Lost, e.account.client.Network
	if e.hasSeen() {
		was = why
		if why == Evicted {
			m.evicted++
		}
	}
	m.remove(e)
	if was != NoReason {
		m.markers.Add(from, m.mark(e.Key), was)
	}
}

// Lose notes that a base of k was lost, of a client in that network. If the entry of k has another base, Lose does nothing.
func (m *Memory) Lose(k Key, from identity.Network, why Reason) {
	if e, ok := m.lru.Peek(k); !ok {
		m.markers.Add(from, m.mark(k), why)
	} else if e.Empty() {
		e.Lost = why
	}
}

// Unlose notes that nothing of k is lost any more. e is the entry of k, or nil.
func (m *Memory) Unlose(k Key, e *Entry) {
	if e != nil {
		e.Lost = NoReason
	} else {
		m.markers.Remove(m.mark(k))
	}
}

// Lost returns why no base of k is known any more; NoReason: none was lost. e is the entry of k, or nil.
func (m *Memory) Lost(k Key, e *Entry) Reason {
	if e != nil {
		return e.Lost
	}
	why, _ := m.markers.Get(m.mark(k))
	return why
}

// mark is the hash that stands for a key among the markers. If two keys have the same, optimist reports a lost base that never existed.
func (m *Memory) mark(k Key) uint64 { return maphash.Comparable(m.o.Seed, k) }

func (m *Memory) forgetPast(e *Entry, i int) {
	m.freeBoth(e, &e.Past[i].View)
	e.Past = slices.Delete(e.Past, i, i+1)
}

// forgetHistory forgets what of the history is of no use any more. It looks at all of it, because that is in the order in which revisions
// were retired.
func (m *Memory) forgetHistory(e *Entry, isOver func(*Past) bool) {
	for i := len(e.Past) - 1; i >= 0; i-- {
		if isOver(&e.Past[i]) {
			m.forgetPast(e, i)
		}
	}
}

// all is for what is forgotten as a whole.
func all(*Past) bool { return true }

package session

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/memo"
	"optimist/internal/repeat"
)

// What things cost beyond the bytes of strings and bodies: their structs, list elements, map slots and allocator
// rounding. A test holds these to the sizes of the structs.
const (
	entryCost    = 912
	attemptCost  = 144
	spentCost    = 16
	tracedCost   = 32
	patternsCost = 416
	documentCost = 320
	readCost     = 64
	bodyCost     = 96
	markerCost   = 128
)

// shard holds the documents of a part of the key space. Its methods are called with mu held.
type shard struct {
	mu sync.Mutex

	seed       maphash.Seed
	maxAge     int64
	bound      int64
	maxBody    int64
	candidates int
	clock      func() int64
	left       func(context.Context) bool
	notes      *memo.Book // nil: there is none

	bytes    int64
	order    uint64
	bodies   int
	lru      *simplelru.LRU[key, *entry]
	holders  holders
	docs     map[docKey]*document
	markers  *simplelru.LRU[uint64, Reason] // of what was lost
	inFlight repeat.Flights[key]
	handed   map[*repeat.Attempt]*claim // what the first try of a repeat has given back, until the repeat looks

	reads []choice.Read // of the document that a write looks at
	view  choice.View   // of it, likewise

	taken            [KindGiven + 1]uint64
	evicted, crowded uint64
}

func newShard(s *Store, memory int64) *shard {
	sh := &shard{
		seed: s.seed, maxAge: int64(s.o.MaxAge), candidates: s.o.Candidates, clock: s.clock, left: s.o.Left, notes: s.notes,
		docs: make(map[docKey]*document), handed: make(map[*repeat.Attempt]*claim),
		holders: holders{of: make(map[Session]*holder)},
	}
	marks := memory / 16 / markerCost
	sh.bound = memory - marks*markerCost
	sh.maxBody = sh.bound / 4
	// Both err on a size below 1 only. The number of entries is bounded by their bytes.
	sh.lru, _ = simplelru.NewLRU[key, *entry](1<<31-1, nil)
	sh.markers, _ = simplelru.NewLRU[uint64, Reason](int(max(marks, 1)), nil)
	return sh
}

// get returns the entry of k with nothing in it that is void or too old, or nil.
func (sh *shard) get(k key, gone Epoch, now int64) *entry {
	e, ok := sh.lru.Get(k)
	if !ok {
		return nil
	}
	if e.epoch < gone {
		sh.forget(e, ReasonIndex)
		return nil
	}
	e.touched = now
	e.touch()
	known := !e.empty()
	for i := len(e.reads) - 1; i >= 0; i-- {
		if now-e.reads[i].at >= sh.maxAge {
			sh.removeRead(e, i)
		}
	}
	if e.view.set && now-e.view.at >= sh.maxAge {
		sh.clearView(e)
	}
	sh.ageHistory(e, now)
	if e.memo != nil && now >= e.memo.Till {
		e.memo, known = nil, true
	}
	if known && e.empty() {
		e.lost = ReasonAged
	}
	return e
}

// put returns the entry of k as get does, made if there is none.
func (sh *shard) put(k key, gone, at Epoch, now int64) *entry {
	if e := sh.get(k, gone, now); e != nil {
		return e
	}
	// Entries that nobody asks for any more leave by age here, two for one that comes.
	for range 2 {
		if _, old, ok := sh.lru.GetOldest(); ok && now-old.touched >= sh.maxAge {
			sh.forget(old, ReasonAged)
		}
	}
	sh.markers.Remove(sh.mark(k))
	d := sh.docs[k.doc()]
	if d == nil {
		k.ref = k.ref.Clone()
		d = &document{key: k.doc(), epoch: at}
		sh.docs[d.key] = d
		sh.bytes += documentCost + refLen(k.ref)
	} else if d.epoch < gone {
		d.renew(at)
	}
	k.ref = d.key.ref
	e := &entry{key: k, epoch: at, doc: d, touched: now}
	d.entries++
	e.held = documentCost + refLen(k.ref)
	sh.enter(e, k.sess)
	sh.recall(e, now)
	sh.charge(e)
	sh.lru.Add(k, e)
	return e
}

// documentOf returns the document of k, whose entry is e, which may be nil. It is nil where nothing is known of it.
func (sh *shard) documentOf(k key, e *entry, gone Epoch) *document {
	if e != nil {
		return e.doc
	}
	if d := sh.docs[k.doc()]; d != nil && d.epoch >= gone {
		return d
	}
	return nil
}

// charge brings the account of the entry itself up to date.
func (sh *shard) charge(e *entry) {
	c := int64(entryCost + readCost*cap(e.reads) + pastCost*cap(e.past) + attemptCost*e.repeats.Room() +
		spentCost*cap(e.spent) + tracedCost*cap(e.traced))
	if e.patterns != nil {
		c += patternsCost
	}
	if c == e.charged {
		return
	}
	sh.bytes += c - e.charged
	sh.account(e, c-e.charged)
	e.charged = c
}

// hold returns the body of a revision of the entry's document, with one reference more. data is kept as it is: it must
// be the store's own.
func (sh *shard) hold(e *entry, n doc.Numbers, data []byte) *body {
	b := e.doc.find(n)
	switch {
	case b == nil:
		return sh.list(e, n, data)
	case !bytes.Equal(b.data, data): // what clients are shown isn't what was written
		return sh.own(e, data)
	}
	sh.ref(e, b)
	return b
}

// list returns a body that is shared by all who read or write the revision.
func (sh *shard) list(e *entry, n doc.Numbers, data []byte) *body {
	b := sh.own(e, data)
	b.numbers, b.doc = n, e.doc
	e.doc.bodies = append(e.doc.bodies, b)
	return b
}

// own returns a body that belongs to one entry alone.
func (sh *shard) own(e *entry, data []byte) *body {
	b := &body{data: data}
	sh.ref(e, b)
	sh.bytes += b.cost()
	sh.bodies++
	return b
}

// free ends one of the places where e refers to b, which may be nil.
func (sh *shard) free(e *entry, b *body) {
	if b == nil {
		return
	}
	sh.account(e, -b.cost())
	if b.refs--; b.refs > 0 {
		if e.leaves && b.maker == e.holder {
			sh.dropDigest(b) // who still refers to b may be another client
		}
		return
	}
	sh.dropDigest(b)
	sh.bytes -= b.cost()
	sh.bodies--
	b.doc.unlist(b)
}

// freeBoth frees what a view refers to: one place where it stored what it sent.
func (sh *shard) freeBoth(e *entry, v *view) {
	if v.sentBody != nil && v.sentBody == v.storedBody {
		v.sentBody.refs--
		v.sentBody = nil
	}
	sh.free(e, v.storedBody)
	sh.free(e, v.sentBody)
}

func (sh *shard) dropDigest(b *body) {
	if b.digest != nil {
		sh.bytes -= b.digest.Size()
		sh.holders.charge(b.maker, -b.digest.Size())
		b.digest, b.maker = nil, nil
	}
}

// removeRead takes a read out, and gives back the room that many reads had taken.
func (sh *shard) removeRead(e *entry, i int) {
	n := e.reads[i].numbers
	e.traced = slices.DeleteFunc(e.traced, func(r tracedRead) bool { return r.numbers == n })
	sh.free(e, e.reads[i].body)
	e.reads = slices.Delete(e.reads, i, i+1)
	if c := cap(e.reads); c > 8 && len(e.reads) <= c/4 {
		e.reads = append(make([]read, 0, c/2), e.reads...)
		sh.charge(e)
	}
}

func (sh *shard) clearView(e *entry) {
	sh.freeBoth(e, &e.view)
	e.view = view{}
}

// remove takes the entry out with all that it holds.
func (sh *shard) remove(e *entry) {
	e.leaves = true
	for _, r := range e.reads {
		sh.free(e, r.body)
	}
	sh.clearView(e)
	sh.forgetHistory(e)
	e.reads = nil
	sh.lru.Remove(e.key)
	sh.exit(e)
	sh.bytes -= e.charged
	d := e.doc
	if d.entries--; d.entries == 0 {
		sh.bytes -= documentCost + refLen(d.key.ref)
		delete(sh.docs, d.key)
	}
}

// settled brings the accounts and the notes up to date after a change of e, and evicts until the shard is within its bound: the oldest
// entry of the client that holds most, and e last.
func (sh *shard) settled(e *entry) {
	sh.charge(e)
	sh.note(e)
	for sh.bytes > sh.bound {
		old := sh.holders.next(e)
		switch {
		case old == nil:
			return
		case old == e && len(e.past) > 0:
			sh.forgetPast(e, 0)
		case old == e && len(e.reads) > 1:
			sh.crowded++
			sh.removeRead(e, 0)
		default:
			sh.forget(old, ReasonEvicted)
		}
	}
}

// limit takes out the entry's oldest reads while there are too many of them, or too many bytes in them.
func (sh *shard) limit(e *entry) {
	var held int64
	for i := range e.reads {
		held += int64(len(e.reads[i].body.bytes()))
	}
	for len(e.reads) > 1 && (len(e.reads) > sh.candidates || held > sh.maxBody) {
		held -= int64(len(e.reads[0].body.bytes()))
		sh.crowded++
		sh.removeRead(e, 0)
	}
}

// forget takes the entry out and leaves a marker if there is, or was, anything in it.
func (sh *shard) forget(e *entry, why Reason) {
	was := e.lost
	if !e.empty() {
		was = why
		if why == ReasonEvicted {
			sh.evicted++
		}
	}
	sh.remove(e)
	if was != ReasonNone {
		sh.markers.Add(sh.mark(e.key), was)
	}
}

// lose notes that something of k was lost, unless something better is known.
func (sh *shard) lose(k key, why Reason) {
	if e, ok := sh.lru.Peek(k); !ok {
		sh.markers.Add(sh.mark(k), why)
	} else if e.empty() {
		e.lost = why
	}
}

// lost returns why nothing is known of k where something was. e is its entry, which may be nil.
func (sh *shard) lost(k key, e *entry) Reason {
	if e != nil {
		return e.lost
	}
	why, _ := sh.markers.Get(sh.mark(k))
	return why
}

// mark is what stands for a key among the markers. Two keys with the same mark make a base lost that there never was.
func (sh *shard) mark(k key) uint64 { return maphash.Comparable(sh.seed, k) }

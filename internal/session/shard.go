package session

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"optimist/internal/doc"
)

// What things cost beyond the bytes of strings and bodies: their structs, list elements, map slots and allocator
// rounding. A test holds these to the sizes of the structs.
const (
	entryCost    = 720
	recentCost   = 144
	spentCost    = 16
	documentCost = 320
	readCost     = 64
	bodyCost     = 96
	markerCost   = 128
)

// docKey is a document as seen under some credentials: nothing is ever shared across different ones.
type docKey struct {
	credentials Credentials
	ref         doc.Ref
}

// key is a document as seen by a session.
type key struct {
	sess Session
	ref  doc.Ref
}

func (k key) doc() docKey { return docKey{credentials: k.sess.credentials, ref: k.ref} }

// document holds the bodies of its revisions once for all sessions with the same credentials. It lives as long as an
// entry of one of them.
type document struct {
	key     docKey
	epoch   Epoch
	entries int
	bodies  []*body
}

// body is the bytes of a revision, or of something that was sent (which has no document).
type body struct {
	numbers doc.Numbers
	doc     *document
	refs    int
	data    []byte
}

// bytes returns the bytes, nil for no body.
func (b *body) bytes() []byte {
	if b == nil {
		return nil
	}
	return b.data
}

// seen is a revision that a client has read or written.
type seen struct {
	numbers doc.Numbers // zero: the document was absent
	version int64
	order   uint64 // its place among what the shard's clients have seen
	at      int64
	doubt   bool // the base of a write of which nobody knows what became; in a named session, not read since
}

// read is the outstanding, unreserved reads of one revision. They count as old as the first of them when it is about
// order, and as young as the last when it is about age.
type read struct {
	seen
	body  *body // nil: only the numbers are known
	count int
}

// view is what the session's last write of the document left.
type view struct {
	seen
	set, absent bool        // absent: it was a delete
	told        doc.Numbers // that the answer to the write carried
	storedBody  *body
	sentBody    *body
	apart       bool // other bytes were stored than were sent

	// shown says that the session has been shown the document otherwise since: see Store.Shown. returned, that a write has failed since then.
	shown, returned bool
}

// entry is what one session knows of one document.
type entry struct {
	key     key
	epoch   Epoch
	doc     *document
	reads   []read // by order
	view    view
	lost    Reason // why there is nothing where something was
	touched int64
	charged int64

	asked  uint64     // the place of the last read that was asked for
	missed missed     // a read was taken by what may be a repetition
	recent []*attempt // what was written last in an inferred session, or may have been, oldest first

	spent []doc.Numbers // of the bases that a named session has written from, oldest first

	// newestRead and newestView are the order of the last of each, also where it is reserved or used up.
	newestRead, newestView uint64
}

func (e *entry) empty() bool { return len(e.reads) == 0 && !e.view.set }

// shard holds the documents of a part of the key space. Its methods are called with mu held.
type shard struct {
	mu sync.Mutex

	seed       maphash.Seed
	maxAge     int64
	bound      int64
	maxBody    int64
	candidates int

	bytes    int64
	order    uint64
	bodies   int
	lru      *simplelru.LRU[key, *entry]
	docs     map[docKey]*document
	markers  *simplelru.LRU[uint64, Reason]
	inFlight map[key]*inFlight
	idle     []*inFlight
	n        Stats
}

func newShard(memory, maxAge int64, candidates int, seed maphash.Seed) *shard {
	sh := &shard{
		seed: seed, maxAge: maxAge, candidates: candidates,
		docs:     make(map[docKey]*document),
		inFlight: make(map[key]*inFlight),
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
	sh.age(e, now)
	return e
}

// age takes out what is too old.
func (sh *shard) age(e *entry, now int64) {
	before := e.empty()
	for i := 0; i < len(e.reads); {
		if now-e.reads[i].at < sh.maxAge {
			i++
			continue
		}
		sh.removeRead(e, i)
	}
	if e.view.set && now-e.view.at >= sh.maxAge {
		sh.clearView(e)
	}
	if e.empty() && !before {
		e.lost = ReasonAged
	}
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
	d := sh.document(k.doc(), gone, at)
	k.ref = d.key.ref
	e := &entry{key: k, epoch: at, doc: d, touched: now}
	d.entries++
	sh.charge(e)
	sh.lru.Add(k, e)
	return e
}

func (sh *shard) document(k docKey, gone, at Epoch) *document {
	d := sh.docs[k]
	if d == nil {
		k.ref = cloneRef(k.ref)
		d = &document{key: k, epoch: at}
		sh.docs[k] = d
		sh.bytes += documentCost + refLen(k.ref)
		return d
	}
	if d.epoch < gone {
		// The same numbers mean other bytes now. Who still holds the old ones keeps them until it is looked at.
		for _, b := range d.bodies {
			b.doc = nil
		}
		d.bodies = nil
		d.epoch = at
	}
	return d
}

func refLen(r doc.Ref) int64 { return int64(len(r.Index) + len(r.Routing) + len(r.ID)) }

// cloneRef copies a reference whose strings may be in a buffer that is reused.
func cloneRef(r doc.Ref) doc.Ref {
	var b strings.Builder
	b.Grow(int(refLen(r)))
	b.WriteString(r.Index)
	b.WriteString(r.Routing)
	b.WriteString(r.ID)
	s, i, j := b.String(), len(r.Index), len(r.Index)+len(r.Routing)
	return doc.Ref{Index: s[:i], Routing: s[i:j], ID: s[j:]}
}

// charge brings the account of the entry itself up to date.
func (sh *shard) charge(e *entry) {
	c := int64(entryCost + readCost*cap(e.reads) + recentCost*cap(e.recent) + spentCost*cap(e.spent))
	sh.bytes += c - e.charged
	e.charged = c
}

// hold returns the body of a revision of the entry's document, with one reference more. data is kept as it is: it must
// be the store's own.
func (sh *shard) hold(e *entry, n doc.Numbers, data []byte) *body {
	if b := e.doc.find(n); b != nil {
		b.refs++
		return b
	}
	b := sh.own(data)
	b.numbers, b.doc = n, e.doc
	e.doc.bodies = append(e.doc.bodies, b)
	return b
}

// own returns a body that belongs to one entry alone.
func (sh *shard) own(data []byte) *body {
	sh.bytes += bodyCost + int64(len(data))
	sh.bodies++
	return &body{data: data, refs: 1}
}

func (d *document) find(n doc.Numbers) *body {
	for i := len(d.bodies) - 1; i >= 0; i-- { // the newest are asked for most
		if d.bodies[i].numbers == n {
			return d.bodies[i]
		}
	}
	return nil
}

func (sh *shard) free(b *body) {
	if b == nil {
		return
	}
	if b.refs--; b.refs > 0 {
		return
	}
	sh.bytes -= bodyCost + int64(len(b.data))
	sh.bodies--
	if d := b.doc; d != nil {
		i := slices.Index(d.bodies, b)
		d.bodies = slices.Delete(d.bodies, i, i+1)
	}
}

func (sh *shard) removeRead(e *entry, i int) {
	sh.free(e.reads[i].body)
	e.reads = slices.Delete(e.reads, i, i+1)
	if len(e.reads) == 0 && cap(e.reads) > 8 {
		e.reads = nil
		sh.charge(e)
	}
}

func (sh *shard) clearView(e *entry) {
	sh.free(e.view.storedBody)
	sh.free(e.view.sentBody)
	e.view = view{}
}

// remove takes the entry out with all that it holds.
func (sh *shard) remove(e *entry) {
	for _, r := range e.reads {
		sh.free(r.body)
	}
	sh.clearView(e)
	e.reads = nil
	sh.lru.Remove(e.key)
	sh.bytes -= e.charged
	d := e.doc
	if d.entries--; d.entries == 0 {
		sh.bytes -= documentCost + refLen(d.key.ref)
		delete(sh.docs, d.key)
	}
}

// shrink evicts until the shard is within its bound, e last.
func (sh *shard) shrink(e *entry) {
	for sh.bytes > sh.bound {
		_, old, ok := sh.lru.GetOldest()
		if !ok {
			return
		}
		if old == e && len(e.reads) > 1 {
			sh.n.Crowded++
			sh.removeRead(e, 0)
			sh.trim(e)
			continue
		}
		sh.forget(old, ReasonEvicted)
	}
}

// trim gives back the room that many reads had taken.
func (sh *shard) trim(e *entry) {
	if cap(e.reads) > 8 && len(e.reads) <= cap(e.reads)/4 {
		e.reads = append(make([]read, 0, 2*len(e.reads)), e.reads...)
		sh.charge(e)
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
		sh.n.Crowded++
		sh.removeRead(e, 0)
	}
}

// same reports whether a and b are the same bytes, and there.
func same(a, b []byte) bool { return a != nil && b != nil && bytes.Equal(a, b) }

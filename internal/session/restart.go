package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"optimist/internal/doc"
)

// What a session knows goes with the process. The numbers of it are noted in a Notebook, which outlives the process. For the age of
// what is known after a start, a document of which a session knows nothing has a memo: what the process before has noted. A write that
// has nothing else is guarded by it. It is never merged: nobody has the body, and the write may be one that was sent before.
//
// Of an inferred session the oldest is noted that any of its clients may have in hand. A client with something newer is refused where it
// needn't be, and reads again.

// Note is what is noted of what a session knows of a document.
type Note struct {
	// Numbers are of what a client of the session had in hand, or of something older. They are zero where there was no document.
	Numbers doc.Numbers
	// At is when that was noted, in nanoseconds since 1970.
	At int64
	// Clients is how many may have had something in hand. 0 of a note that is none.
	Clients int
	// Written says that the session wrote the revision, and hadn't read it.
	Written bool
	// Apart says that what the client had in hand isn't what the engine holds at Numbers.
	Apart bool
}

// NoteID is where a note stands: keyed hashes of the session and the document, and of the document's index.
type NoteID struct{ Place, Tag, Index uint64 }

// Notebook keeps notes for the next process. It must be safe for concurrent use. It is called with locks held.
type Notebook interface {
	// Secret keys the hashes in the ids. It doesn't change, from process to process.
	Secret() [sha256.Size]byte
	// Put notes n under id. A note of no clients erases what is noted there.
	Put(id NoteID, n Note)
	// Get returns what is noted under id, unless that was before its index was dropped.
	Get(id NoteID) (Note, bool)
	// Drop makes all notes of an index, of which that is the hash, none that were made up to the moment at.
	Drop(index uint64, at int64)
	// DropAll is Drop for all indices.
	DropAll(at int64)
}

// notebook is the store's: a Notebook, what the process before has left in it, and until when that counts.
type notebook struct {
	Notebook
	secret  [sha256.Size]byte
	started int64 // in nanoseconds since 1970
	maxAge  int64
}

func newNotebook(b Notebook, start time.Time, maxAge time.Duration) *notebook {
	if b == nil {
		return nil
	}
	return &notebook{Notebook: b, secret: b.Secret(), started: start.UnixNano(), maxAge: int64(maxAge)}
}

// idOf is where notes of k stand.
func (b *notebook) idOf(k *key) NoteID {
	var space [320]byte // what is longer has to be allocated
	buf := append(space[:0], b.secret[:]...)
	buf = append(buf, k.sess.credentials[:]...)
	buf = append(buf, k.sess.name[:]...)
	named := byte(0)
	if k.sess.named {
		named = 1
	}
	buf = append(buf, named)
	for _, s := range [...]string{k.ref.Index, k.ref.Routing, k.ref.ID} {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	sum := sha256.Sum256(buf)
	return NoteID{
		Place: binary.LittleEndian.Uint64(sum[0:]),
		Tag:   binary.LittleEndian.Uint64(sum[8:]) | 1,
		Index: b.index(k.ref.Index),
	}
}

// index is the hash of an index's name.
func (b *notebook) index(name string) uint64 {
	var space [320]byte
	buf := append(space[:0], b.secret[:]...)
	sum := sha256.Sum256(append(buf, name...))
	return binary.LittleEndian.Uint64(sum[:])
}

// drop makes what is noted of the index none.
func (b *notebook) drop(index string, now int64) {
	if b != nil {
		b.Drop(b.index(index), b.started+now)
	}
}

func (b *notebook) dropAll(now int64) {
	if b != nil {
		b.DropAll(b.started + now)
	}
}

// counts reports whether what the process before has noted counts for k.
func (b *notebook) counts(k *key, now int64) bool {
	return b != nil && now < b.maxAge && !k.sess.holder
}

// memo is a note of the process before, as long as a client may write from what it stands for.
type memo struct {
	Note
	till int64 // on the store's clock
	left int   // how many writes of an inferred session it is the base of at most that may have another
}

// maxLeft bounds how many writes of an inferred session are refused, at most, because they may be made from what is noted, and not
// from what was read since.
const maxLeft = 32

// recall returns what the process before has noted under id.
func (b *notebook) recall(id NoteID, now int64) *memo {
	n, ok := b.Get(id)
	// What this process has noted, it has forgotten for a reason. A clock that was set back makes the rest older.
	if !ok || n.At >= b.started || b.started+now-n.At >= b.maxAge {
		return nil
	}
	return &memo{Note: n, till: n.At - b.started + b.maxAge, left: maxLeft}
}

// noted reports whether the process before has noted something of k.
func (sh *shard) noted(k *key, now int64) bool {
	if !sh.notes.counts(k, now) {
		return false
	}
	return sh.notes.recall(sh.notes.idOf(k), now) != nil
}

// recall gives a new entry its place in the notebook, and what the process before has noted there.
func (sh *shard) recall(e *entry, now int64) {
	if sh.notes == nil || e.key.sess.holder {
		return
	}
	e.noteID = sh.notes.idOf(&e.key)
	if sh.notes.counts(&e.key, now) {
		e.memo = sh.notes.recall(e.noteID, now)
	}
}

// note notes what the entry's session has in hand, for the next process.
func (sh *shard) note(e *entry) {
	if sh.notes == nil || e.key.sess.holder {
		return
	}
	n := e.note(sh.inFlight[e.key])
	n.At = sh.notes.started + e.touched
	sh.notes.Put(e.noteID, n)
}

// note is what of the entry is noted; f is what is in flight of it.
func (e *entry) note(f *inFlight) (n Note) {
	if e.key.sess.named {
		return e.noteOfThread(f)
	}
	var guards []doc.Numbers
	if f != nil {
		guards = f.guards
	}
	if e.memo != nil {
		n = e.memo.Note
	}
	for i := range e.reads {
		n.add(Note{Numbers: e.reads[i].numbers, Clients: e.reads[i].count})
	}
	for _, g := range guards {
		n.add(Note{Numbers: g, Clients: 1})
	}
	if e.view.set && (e.shared || n.Clients == 0) {
		n.add(e.view.note())
	}
	for i := range e.past {
		v := e.past[i].view.note()
		v.Clients = 0 // hardly anybody has it in hand
		n.add(v)
	}
	return n
}

// noteOfThread is what is noted of a named session, in which the newest replaces what was before.
func (e *entry) noteOfThread(f *inFlight) (n Note) {
	switch {
	case len(e.reads) > 0:
		return Note{Numbers: e.reads[0].numbers, Clients: 1}
	case f != nil && len(f.guards) > 0:
		for _, g := range f.guards {
			n.add(Note{Numbers: g, Clients: 1})
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
func (v *view) note() Note {
	n := Note{Numbers: v.numbers, Clients: 1, Written: !v.absent, Apart: v.difference}
	if v.absent {
		n.Numbers = doc.Numbers{}
	}
	if v.answer.Known() && v.answer != v.numbers {
		n = Note{Numbers: v.answer, Clients: 1, Apart: true}
	}
	return n
}

// add makes n the older of n and o, of the clients of both.
func (n *Note) add(o Note) {
	clients := n.Clients + o.Clients
	if n.Clients == 0 || older(o.Numbers, n.Numbers) {
		*n = o
	} else if o.Numbers == n.Numbers {
		n.Apart = n.Apart || o.Apart
	}
	n.Clients = clients
}

func older(a, b doc.Numbers) bool {
	return cmp.Or(cmp.Compare(a.PrimaryTerm, b.PrimaryTerm), cmp.Compare(a.SeqNo, b.SeqNo)) < 0
}

// outlives takes the memo away where it stands for nothing any more: the session has read or written since, if it is named; or what
// stands there is known by now, because somebody has read it.
func (e *entry) outlives(n doc.Numbers) {
	if m := e.memo; m != nil && (e.key.sess.named || n == m.Numbers && !m.Apart) {
		e.memo = nil
	}
}

// takesMemo reports whether the memo is the base of the write. In an inferred session it is, unless the write shows that it was made
// from something that the session has seen since.
func (t *taking) takesMemo(e *entry, f *inFlight) bool {
	switch {
	case e == nil || e.memo == nil || t.given.Known():
		return false
	case t.named:
		return e.empty() && !f.any()
	case t.on != nil || t.traced:
		return false
	case e.empty() && len(e.past) == 0:
		return true
	case e.memo.left == 0 || t.repeat >= unheardRepeat || t.doubt != nil:
		return false
	}
	recent := false
	if t.extends, recent = e.isRecent(t.sent); recent {
		return false
	}
	if !t.s.dryRun {
		e.memo.left--
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
	t.reserveGuard(e, Note{Numbers: t.extends.numbers, Clients: 2}, b)
	b.View, b.Stored, b.Doubtful = t.extends.data, t.extends.data, false
	b.claim.sent, b.claim.stored, b.claim.doubt = b.View, b.View, false
}

// reserveMemo makes the memo the base.
func (t *taking) reserveMemo(e *entry, b *Base) { t.reserveGuard(e, e.memo.Note, b) }

// reserveGuard makes the base what is noted, of which nobody has the body.
func (t *taking) reserveGuard(e *entry, m Note, b *Base) {
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
	b.Guessed = !t.named
	b.Ambiguous = b.Guessed && (m.Clients > 1 || !e.empty())
	t.count(b.Kind)
	if !t.s.dryRun {
		t.sh.depart(c)
		t.sh.note(e)
	}
}

// Package note makes notes of what sessions know of documents. The notes outlive the process.
//
// It doesn't keep them: see Notebook. It reads no clock.
package note

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"optimist/internal/doc"
)

// Note is a note of a session's knowledge of a document.
type Note struct {
	// Numbers are of what a client of the session had in hand, or of something older. They are zero where there was no document.
	Numbers doc.Numbers
	// At is when that was noted, in nanoseconds on the clock of the Notebook.
	At int64
	// Clients is how many may have had something in hand. 0 of a note that is none.
	Clients int
	// Written says that the session wrote the revision, and hadn't read it.
	Written bool
	// StoredDiffers says that the client's view isn't the document that the engine holds at Numbers.
	StoredDiffers bool
	// Network stands for the network of the note's clients, which has a share of the room: see Book.Network. 0: it isn't known.
	Network uint32
}

// ID is where a note stands: keyed hashes of the session and the document, and of the document's index.
type ID struct{ Place, Tag, Index uint64 }

// Notebook keeps notes for the next process. It must be safe for concurrent use. It is called with locks held.
//
// It has a clock of its own, in nanoseconds, which a process reads when it begins, and then counts on itself. The clock never goes back,
// whatever becomes of the system's: so all notes of the processes before are from before the process began.
type Notebook interface {
	// Begin returns the moment at which a process begins, which is after all moments of the processes before.
	Begin() int64
	// Secret keys the hashes in the ids. It doesn't change, from process to process.
	Secret() [sha256.Size]byte
	// Put notes n under id. A note of no clients erases what is noted there.
	Put(id ID, n Note)
	// Get returns the note under id, unless it is from before its index was dropped.
	Get(id ID) (Note, bool)
	// Drop makes all notes of an index, of which that is the hash, none that were made up to the moment at.
	Drop(index uint64, at int64)
	// DropAll is Drop for all indices.
	DropAll(at int64)
}

// Book is a Notebook as one process uses it: the pages, what the process before has left in it, and until when that counts.
type Book struct {
	pages   Notebook
	secret  [sha256.Size]byte
	started int64 // on the clock of pages
	maxAge  int64
}

// NewBook returns the use of the notebook, which may be nil, by a process that begins now. A note counts for maxAge.
func NewBook(b Notebook, maxAge time.Duration) *Book {
	if b == nil {
		return nil
	}
	return &Book{pages: b, secret: b.Secret(), started: b.Begin(), maxAge: int64(maxAge)}
}

// Key is whose note it is, and of which document.
type Key struct {
	Credentials, Session [16]byte
	Named                bool // Session is a name of the client's own
	Ref                  doc.Ref
}

// ID is where notes of k stand.
func (b *Book) ID(k *Key) ID {
	var space [320]byte // what is longer has to be allocated
	buf := append(space[:0], b.secret[:]...)
	buf = append(buf, k.Credentials[:]...)
	buf = append(buf, k.Session[:]...)
	named := byte(0)
	if k.Named {
		named = 1
	}
	buf = append(buf, named)
	for _, s := range [...]string{k.Ref.Index, k.Ref.Routing, k.Ref.ID} {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	sum := sha256.Sum256(buf)
	return ID{
		Place: binary.LittleEndian.Uint64(sum[0:]),
		Tag:   binary.LittleEndian.Uint64(sum[8:]) | 1,
		Index: b.index(k.Ref.Index),
	}
}

// index is the hash of an index's name.
func (b *Book) index(name string) uint64 {
	var space [320]byte
	buf := append(space[:0], b.secret[:]...)
	sum := sha256.Sum256(append(buf, name...))
	return binary.LittleEndian.Uint64(sum[:])
}

// Network stands for a network of clients: a keyed hash. 0 is no network.
func (b *Book) Network(network uint64) uint32 {
	if network == 0 {
		return 0
	}
	h := (network ^ binary.LittleEndian.Uint64(b.secret[:])) * (binary.LittleEndian.Uint64(b.secret[8:]) | 1)
	h = (h ^ h>>32) * (binary.LittleEndian.Uint64(b.secret[16:]) | 1)
	return uint32(h>>32) | 1
}

// DropIndex makes what is noted of the index none.
func (b *Book) DropIndex(index string, now int64) {
	if b != nil {
		b.pages.Drop(b.index(index), b.started+now)
	}
}

// DropIndices is DropIndex for all of them.
func (b *Book) DropIndices(now int64) {
	if b != nil {
		b.pages.DropAll(b.started + now)
	}
}

// Counts reports whether what the process before has noted counts at that moment.
func (b *Book) Counts(now int64) bool { return b != nil && now < b.maxAge }

// Started is when the process began, on the clock of the Notebook. Moments of it count from there.
func (b *Book) Started() int64 { return b.started }

// Recollection is a note of the process before, as long as a client may write from what it stands for.
type Recollection struct {
	Note
	Till int64 // on the clock of this process
	Left int   // how many writes of an inferred session it is the base of at most that may have another
}

// MaxLeft bounds how many writes of an inferred session are refused because they may be made from a noted revision, and not from a later
// read.
const MaxLeft = 32

// Recall returns what the process before has noted under id.
func (b *Book) Recall(id ID, now int64) *Recollection {
	n, ok := b.pages.Get(id)
	// What this process has noted, it has forgotten for a reason.
	if !ok || n.At >= b.started || b.started+now-n.At >= b.maxAge {
		return nil
	}
	return &Recollection{Note: n, Till: n.At - b.started + b.maxAge, Left: MaxLeft}
}

// Put notes n under id.
func (b *Book) Put(id ID, n Note) { b.pages.Put(id, n) }

// Add makes n the older of n and o, of the clients of both.
func (n *Note) Add(o Note) {
	clients := n.Clients + o.Clients
	if n.Clients == 0 || o.Numbers.Compare(n.Numbers) < 0 {
		*n = o
	} else if o.Numbers == n.Numbers {
		n.StoredDiffers = n.StoredDiffers || o.StoredDiffers
	}
	n.Clients = clients
}

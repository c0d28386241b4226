// Package notetest keeps the notes of sessions in memory, for tests.
//
// It is for tests only. Nothing of the program imports it. A Notebook isn't safe for concurrent use.
package notetest

import (
	"crypto/sha256"
	"time"

	"optimist/internal/note"
)

// Notebook is a note.Notebook in memory. Give it to one process after the other, as a file is.
type Notebook struct {
	secret  [sha256.Size]byte
	notes   map[note.ID]note.Note
	dropped map[uint64]int64
	all     int64
	last    int64 // moment of a note, or of a drop

	// Now is the clock. It must not go back. Nil: no time goes by from one process to the next.
	Now func() time.Time
}

// New returns an empty notebook. Its secret begins with the given byte: with another one, notes have other ids.
func New(secret byte) *Notebook {
	return &Notebook{secret: [sha256.Size]byte{secret}, notes: map[note.ID]note.Note{}, dropped: map[uint64]int64{}}
}

// Begin implements note.Notebook.
func (b *Notebook) Begin() int64 {
	if b.Now != nil {
		return max(b.last+1, b.Now().UnixNano())
	}
	return b.last + 1
}

// Secret implements note.Notebook.
func (b *Notebook) Secret() [sha256.Size]byte { return b.secret }

// Put implements note.Notebook.
func (b *Notebook) Put(id note.ID, n note.Note) {
	b.last = max(b.last, n.At)
	b.notes[id] = n
	if n.Clients == 0 {
		delete(b.notes, id)
	}
}

// Get implements note.Notebook.
func (b *Notebook) Get(id note.ID) (note.Note, bool) {
	n, ok := b.notes[id]
	return n, ok && n.At > max(b.dropped[id.Index], b.all)
}

// Drop implements note.Notebook.
func (b *Notebook) Drop(index uint64, at int64) { b.dropped[index], b.last = at, max(b.last, at) }

// DropAll implements note.Notebook.
func (b *Notebook) DropAll(at int64) { b.all, b.last = at, max(b.last, at) }

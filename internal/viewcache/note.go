package viewcache

import (
	"optimist/internal/doc"
	"optimist/internal/note"
)

// keepsNotes reports whether the notes of the process before count for k.
func (m *Memory) keepsNotes(k *Key, now int64) bool {
	return !k.Session.IsImplicit() && m.o.Notes.Counts(now)
}

// Noted returns k in the form that notes use.
func (k *Key) Noted() *note.Key {
	return &note.Key{Credentials: k.Session.Credentials(), Session: k.Session.Name(), Named: k.Session.IsNamed(), Ref: k.Ref}
}

// Noted reports whether the process before has noted something of k.
func (m *Memory) Noted(k *Key, now int64) bool {
	if !m.keepsNotes(k, now) {
		return false
	}
	return m.o.Notes.Recall(m.o.Notes.ID(k.Noted()), now) != nil
}

// recall gives a new entry its place in the notebook, and the note that the process before left there.
func (m *Memory) recall(e *Entry, now int64) {
	if m.o.Notes == nil || e.Key.Session.IsImplicit() {
		return
	}
	e.NoteID = m.o.Notes.ID(e.Key.Noted())
	if m.keepsNotes(&e.Key, now) {
		e.Recollection = m.o.Notes.Recall(e.NoteID, now)
	}
}

// Note returns the note of a view. If the write's answer had other numbers than the revision, the note has those of the answer.
func (v *View) Note() note.Note {
	n := note.Note{Numbers: v.Numbers, Clients: 1, Written: !v.Absent, StoredDiffers: v.Difference}
	if v.Absent {
		n.Numbers = doc.Numbers{}
	}
	if v.Answer.Known() && v.Answer != v.Numbers {
		n = note.Note{Numbers: v.Answer, Clients: 1, StoredDiffers: true}
	}
	return n
}

// outlives is called when the session has read or written the revision n. It drops the recollection if that isn't needed any more: in a
// named session always, because n is newer; in an inferred session if n is the revision that was noted.
func (e *Entry) outlives(n doc.Numbers) {
	if m := e.Recollection; m != nil && (e.Key.Session.IsNamed() || n == m.Numbers && !m.StoredDiffers) {
		e.Recollection = nil
	}
}

// SpendRecollection is called when a client has written from the recollection, and nobody else had written since. It drops the recollection
// if one client alone had something in hand: that client has written now, and a read serves one write.
func (e *Entry) SpendRecollection() {
	if m := e.Recollection; m != nil && m.Clients <= 1 {
		e.Recollection = nil
	}
}

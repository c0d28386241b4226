package session

import (
	"optimist/internal/doc"
	"optimist/internal/note"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// note notes two things: with a named session's writes in flight, what the session has seen meanwhile; and for the next process, which
// revisions the clients of the entry's session may write from.
func (sh *shard) note(e *viewcache.Entry) {
	if e.Key.Session.IsNamed() {
		sh.pending.Of(e.Key).Saw(e.NewestRead, e.NewestView)
	}
	notes := sh.store.notes
	if notes == nil || e.Key.Session.IsImplicit() {
		return
	}
	n := noteOf(e, sh.pending.Of(e.Key))
	if viewcache.IsCarried(n.Numbers) {
		n.Numbers = doc.Numbers{} // they guard nothing; "there was no document" has the engine refuse the write of a document that is there
	}
	n.At, n.Network = notes.Started()+e.Touched, notes.Network(uint64(e.Network()))
	notes.Put(e.NoteID, n)
}

// noteOf makes the note of an entry. f has the document's writes in flight.
func noteOf(e *viewcache.Entry, f *repeat.Pending) (n note.Note) {
	if e.Key.Session.IsNamed() {
		return noteOfThread(e, f)
	}
	if e.Recollection != nil {
		n = e.Recollection.Note
	}
	for i := range e.Reads {
		n.Add(note.Note{Numbers: e.Reads[i].Numbers, Clients: int(e.Reads[i].Count)})
	}
	for _, g := range f.Guards() {
		n.Add(note.Note{Numbers: g, Clients: 1})
	}
	if e.View.Set && (e.Shared || n.Clients == 0) {
		n.Add(e.View.Note())
	}
	if !e.Shared {
		return n // as far as optimist knows there is one client, which writes from its last read or write
	}
	for i := range e.Past {
		v := e.Past[i].View.Note()
		v.Clients = 0 // hardly any client writes from it
		n.Add(v)
	}
	return n
}

// noteOfThread makes the note of a named session: the revision that it has seen last.
func noteOfThread(e *viewcache.Entry, f *repeat.Pending) (n note.Note) {
	switch {
	case len(e.Reads) > 0:
		return note.Note{Numbers: e.Reads[0].Numbers, Clients: 1}
	case len(f.Guards()) > 0:
		for _, g := range f.Guards() {
			n.Add(note.Note{Numbers: g, Clients: 1})
		}
		return n
	case e.View.Set:
		return e.View.Note()
	}
	if e.Recollection != nil {
		return e.Recollection.Note
	}
	return n
}

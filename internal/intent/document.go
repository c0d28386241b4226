package intent

import (
	"bytes"

	"optimist/internal/doc"
	"optimist/rewrite/merge"
)

// Base is what a client had seen when it made its change.
type Base struct {
	Numbers doc.Numbers // zero: there was no document, or nothing is known
	View    []byte      // what the client saw; nil: there was no document, or it isn't known
	Absent  bool        // the client saw that there was no document
	// Stored says that View is the document that the engine holds at Numbers. There the sent document needs no merge.
	Stored bool
	Read   bool // the client has read View from the engine
	// Index knows whether the index was made anew since. Nil: it wasn't.
	Index interface{ IsVoid() bool }
}

// is reports whether cur is the base, all of which the client has seen. If the index was made anew, another document may have the base's
// numbers. That is known of the index, or another content than the client has read shows it. Another content than the client has written
// shows nothing: the client may be shown less.
func (b *Base) is(cur doc.Revision) bool {
	switch {
	case b.Absent:
		return absent(cur)
	case !cur.Known(), cur.Numbers != b.Numbers, !b.Stored, b.Index != nil && b.Index.IsVoid():
		return false
	}
	return !b.Read || b.View == nil || cur.Source == nil || Equal(b.View, cur.Source, nil)
}

// Known reports whether the client's change can be told from the base.
func (b *Base) Known() bool { return b.View != nil || b.Absent }

// Document is a document that is written whole.
type Document struct {
	Base Base
	Sent []byte
	// Guard is the client's own, where the write may take the place of that revision only; the zero value is none.
	Guard doc.Numbers
	// Recreate says that a document which was deleted meanwhile is made again.
	Recreate bool
	Merger   Merger
}

// Merger merges three ways, as a rule says; a *merge.Merger is one.
type Merger interface {
	Merge(base, sent, current []byte) (merge.Result, error)
	// Repeatable tells whether the change from base to sent may be applied to current, which may have it already.
	Repeatable(base, sent, current []byte) (bool, error)
}

// unmoved reports whether cur is the client's base, and the client has seen all of it.
func (d *Document) unmoved(cur doc.Revision) bool {
	if d.Guard.Known() {
		return cur.Numbers == d.Guard
	}
	return d.Base.is(cur)
}

// Next implements Intent.
func (d *Document) Next(cur doc.Revision) (Draft, error) {
	switch {
	case d.unmoved(cur):
		return Draft{Body: d.Sent, AsSent: true}, nil
	case d.Guard.Known():
		return Draft{}, &MovedError{Guard: d.Guard, Current: cur.Numbers}
	case absent(cur) && d.Recreate:
		return Draft{Body: d.Sent}, nil
	case absent(cur):
		return Draft{}, ErrDeleted
	case unread(cur):
		return Draft{}, ErrUnread
	case !d.Base.Known():
		return Draft{}, ErrUnmergeable
	}
	r, err := d.Merger.Merge(d.Base.View, d.Sent, cur.Source)
	if err != nil {
		return Draft{}, err
	}
	draft := mergedDraft(&r, d.Sent, cur.Source)
	draft.AsSent = cur.Numbers == d.Base.Numbers && bytes.Equal(r.Doc, d.Sent)
	return draft, nil
}

// Merges implements Intent.
func (d *Document) Merges(cur doc.Revision) bool {
	return !d.unmoved(cur) && !absent(cur) && !d.Guard.Known()
}

// Repeatable implements Intent.
func (d *Document) Repeatable(_ *Draft, cur doc.Revision) bool {
	if !d.Base.Known() || cur.Source == nil || d.Sent == nil {
		return false
	}
	ok, err := d.Merger.Repeatable(d.Base.View, d.Sent, cur.Source)
	return ok && err == nil
}

// Delete is a document that shall not be there.
type Delete struct {
	Base Base
	// Stale says that the document goes though others changed it since; otherwise that is an error.
	Stale bool
}

// Next implements Intent. ErrGone is a success: somebody else has deleted the document.
func (d *Delete) Next(cur doc.Revision) (Draft, error) {
	switch {
	case absent(cur):
		return Draft{}, ErrGone
	case d.Base.is(cur):
		return Draft{Delete: true, AsSent: true}, nil
	case !d.Stale:
		return Draft{}, ErrUnmergeable
	}
	return Draft{Delete: true, Overwrote: []string{""}}, nil
}

// Merges implements Intent.
func (*Delete) Merges(doc.Revision) bool { return false }

// Repeatable implements Intent: a document that is there now may have been made since the delete.
func (*Delete) Repeatable(*Draft, doc.Revision) bool { return false }

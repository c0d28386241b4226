// Package doubt keeps the record of writes to one document that may have been applied although the engine acknowledged none of them.
//
// A lost answer leaves the outcome open. A conflict does, too, if the shard's primary changed meanwhile: the engine then tries
// again by itself, and may conflict with its own first try. The package asks nobody: its callers tell it what they have found
// out.
package doubt

import (
	"bytes"
	"time"

	"optimist/internal/catalog"
	"optimist/internal/doc"
)

// Record is what is known of the tries to write one document. The zero value is of none.
type Record struct {
	Guard   doc.Numbers      // of the last write
	version int64            // of the revision that it was guarded by; 0: none, or not known
	Last    Try              // the last write, until it is judged
	Pending catalog.Conflict // conflicts of which it isn't known yet whether they were conflicts with others
}

// Try is a write that was sent.
type Try struct {
	catalog.Conflict
	version int64 // of the revision that it was guarded by; 0: none, or not known
	body    []byte
}

// Send notes that a document is written in place of a revision. A nil body deletes it.
func (d *Record) Send(over *doc.Revision, body []byte) {
	d.Guard, d.version = over.Numbers, over.Version
	d.Last = Try{Conflict: catalog.Conflict{Guard: over.Numbers, Sent: time.Now()}, version: over.Version, body: body}
}

// Conflicted notes the conflict of a node that names a shard.
func (d *Record) Conflicted(node, shard string) {
	d.Last.Answered, d.Last.Node, d.Last.Shard = time.Now(), node, shard
}

// Open reports whether a conflict may have been one with an earlier try of the same write.
func (d *Record) Open() bool { return !d.Last.Answered.IsZero() || d.IsPending() }

// IsPending reports whether that is so of a conflict before the last one.
func (d *Record) IsPending() bool { return !d.Pending.Answered.IsZero() }

// Inherited is what an attempt has that goes on for one of the changes.
func (d *Record) Inherited() Record { return Record{Pending: d.Pending} }

// Merged takes the last write's conflict to those that are pending, and returns these.
func (d *Record) Merged() catalog.Conflict {
	switch {
	case d.Pending.Answered.IsZero():
		d.Pending = d.Last.Conflict
	case !d.Last.Answered.IsZero():
		d.Pending.Answered, d.Pending.Node, d.Pending.Shard = d.Last.Answered, d.Last.Node, d.Last.Shard
	}
	d.Last = Try{}
	return d.Pending
}

// Dispel notes that no conflict was one with an earlier try of the same write, or that the results of all tries are known.
func (d *Record) Dispel() { d.Last, d.Pending = Try{}, catalog.Conflict{} }

// StillAt reports whether the current revision is that which the last write was to replace. It wasn't applied then.
func (d *Record) StillAt(cur *doc.Revision) bool { return cur.Numbers == d.Guard && d.Guard.Known() }

// MayBeAnew reports whether the current document may be another one than the last write was to replace: one that was made after that was
// deleted. Where there was no document, any that is there now may be.
func (d *Record) MayBeAnew(cur *doc.Revision) bool {
	return !d.Guard.Known() || cur.Version != 0 && cur.Version <= d.version
}

// OthersWrote reports whether the current revision shows by itself that the last try wasn't applied: one write has been made
// since the guard, and it left something else. exact says that the engine holds the bytes that are written.
func (d *Record) OthersWrote(cur *doc.Revision, exact bool) bool {
	t := &d.Last
	if t.body == nil && cur.Known() {
		return true // a delete leaves nothing
	}
	return (t.version > 0 || !t.Guard.Known()) && cur.Version == t.version+1 && exact &&
		!bytes.Equal(bytes.TrimSpace(cur.Source), bytes.TrimSpace(t.body))
}

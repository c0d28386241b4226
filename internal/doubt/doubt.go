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
	last    catalog.Conflict // the last try; Answered is zero unless the answer was a conflict that nobody has judged yet
	version int64            // of the revision that it was guarded by; 0: none, or not known
	body    []byte
}

// Send notes that a document is written in place of a revision. A nil body deletes it.
func (d *Record) Send(over *doc.Revision, body []byte) {
	*d = Record{catalog.Conflict{Guard: over.Numbers, Sent: time.Now()}, over.Version, body}
}

// Conflicted notes the conflict of a node that names a shard.
func (d *Record) Conflicted(node, shard string) {
	d.last.Answered, d.last.Node, d.last.Shard = time.Now(), node, shard
}

// Open reports whether a conflict may have been one with an earlier try of the same write.
func (d *Record) Open() bool { return !d.last.Answered.IsZero() }

// Conflict is that conflict, if Open reports one.
func (d *Record) Conflict() catalog.Conflict { return d.last }

// Dispel notes that no conflict was one with an earlier try of the same write, or that the results of all tries are known.
func (d *Record) Dispel() { d.last.Answered = time.Time{} }

// StillAt reports whether the current revision is that which the last write was to replace. It wasn't applied then.
func (d *Record) StillAt(cur *doc.Revision) bool {
	return cur.Numbers == d.last.Guard && cur.Known()
}

// MayBeAnew reports whether the current document may be another one than the last write was to replace: one that was made after that was
// deleted. Where there was no document, any that is there now may be.
func (d *Record) MayBeAnew(cur *doc.Revision) bool {
	return !d.last.Guard.Known() || cur.Version != 0 && cur.Version <= d.version
}

// OthersWrote reports whether the current revision shows by itself that the last try wasn't applied: one write has been made
// since the guard, and it left something else. exact says that the engine holds the bytes that are written.
func (d *Record) OthersWrote(cur *doc.Revision, exact bool) bool {
	if d.body == nil && cur.Known() {
		return true // a delete leaves nothing
	}
	return (d.version > 0 || !d.last.Guard.Known()) && cur.Version == d.version+1 && exact &&
		!bytes.Equal(bytes.TrimSpace(cur.Source), bytes.TrimSpace(d.body))
}

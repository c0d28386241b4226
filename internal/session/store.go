package session

import (
	"context"

	"optimist/internal/doc"
)

// Store is what clients have seen. It is safe for concurrent use.
type Store struct{}

type claim struct{}

// New returns an empty store. It starts no goroutine and needs no closing.
func New(o Options) *Store { return &Store{} }

// Epoch returns the current moment in the life of the indices.
func (s *Store) Epoch() Epoch { return 0 }

// Read remembers that the session read rev of ref. rev.Source is copied unless the same revision is already held under
// the same credentials; nil means that only the numbers are known. In a named session it replaces the reads before it.
// The strings of ref and rev.Source may be reused by the caller after the call. at is the epoch from before the request was sent.
func (s *Store) Read(sess Session, ref doc.Ref, rev doc.Revision, at Epoch) {}

// ReadAbsent remembers that the session saw that there was no document ref.
func (s *Store) ReadAbsent(sess Session, ref doc.Ref, at Epoch) {}

// Take chooses the base of a write of sent (nil for a delete) and reserves it. Where the only bases are reserved by other
// writes of the session in flight, it waits for one of them to end, or for ctx: its error is then ctx's, and the only one
// there is. With a ctx that has ended it never waits. Whoever holds one base while taking another must not wait: two such
// writes in opposite order would wait for each other.
//
// ref must stay unchanged until the reservation is ended.
func (s *Store) Take(ctx context.Context, sess Session, ref doc.Ref, sent []byte) (Base, error) {
	return Base{}, nil
}

// TakeAt reserves the base whose numbers the client named itself (If-Match, a stamp, its own guard), so that its body is
// there to merge from, and the read is used up. It never waits. What the session doesn't know is KindGiven, with a body if
// another session under the same credentials holds it.
func (s *Store) TakeAt(sess Session, ref doc.Ref, n doc.Numbers, sent []byte) Base { return Base{} }

// Commit ends the reservation after an acknowledged write.
func (b *Base) Commit(a Ack) {}

// Delete ends the reservation after an acknowledged delete: the session has seen that the document is absent.
func (b *Base) Delete() {}

// Release ends the reservation after a write that failed: what was reserved is given back, as old as it was.
func (b *Base) Release() {}

// Wrote marks that index sees writes other than creates, so that bodies read from it are worth keeping.
func (s *Store) Wrote(index string) {}

// DropIndex forgets all that is known of index: its numbers may mean other documents from now on. Call it after the
// answer to a request that changes an index or alias, whatever it says.
func (s *Store) DropIndex(index string) {}

// DropAll forgets all that is known, for changes whose indices can't be told (wildcards, aliases).
func (s *Store) DropAll() {}

// Stats returns the store's counters since its start and its present size.
func (s *Store) Stats() Stats { return Stats{} }

// Stats are counters since the store's start, and gauges.
type Stats struct {
	// Reads counts reads and absences that were remembered.
	Reads uint64
	// Taken counts bases by kind.
	Taken [6]uint64
	// Lost counts lost bases by reason, Blind takes of blind writers.
	Lost  [6]uint64
	Blind uint64
	// Ambiguous counts bases chosen among several candidates, Waited takes that waited for a write in flight.
	Ambiguous uint64
	Waited    uint64
	// Evicted, Aged and Dropped count entries that left by memory, by age and by a change of their index.
	Evicted uint64
	Aged    uint64
	Dropped uint64
	// TooLarge counts bodies that were not kept for their size.
	TooLarge uint64
	// Bytes, Entries, Bodies, Markers and Indices are present sizes.
	Bytes   int64
	Entries int
	Bodies  int
	Markers int
	Indices int
}

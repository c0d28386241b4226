package session

import (
	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/viewcache"
)

// An index that was deleted and made anew around optimist counts from 0 again, and the engine accepts the numbers of the old one.
// It shows by one of these, and then nothing that was known of the index is a base any more:
//
//   - a read that was asked for after a write was known to be acknowledged, and answers an older revision under the same primary term;
//   - the answer to a write that has taken its base after another was acknowledged, and left an older revision likewise;
//   - another document under the numbers of one that was read;
//   - a read that was asked for after the last acknowledged write, and says that the index is missing.
//
// Searches prove nothing, because they see the index as it was at its last refresh. Bytes that were written prove nothing, either,
// because clients may be shown less than that.

// acknowledged notes that a write of the entry's document was acknowledged, and left the revision n. If n isn't known, it does nothing.
func (sh *shard) acknowledged(e *viewcache.Entry, ix *indexstate.Index[Session], n doc.Numbers, ticket uint64) {
	if n.Known() {
		sh.Acknowledge(e, n, ticket)
		ix.Acknowledged(ticket)
	}
}

// IndexMissing notes an answer to a read that says that there is no such index. ticket is the read's. The store forgets the index, unless
// a write was acknowledged since: that write has created the index.
func (s *Store) IndexMissing(c Credentials, name string, ticket uint64) {
	if !s.dryRun && s.index(name, c, s.clock()).Missing(indexstate.Owner(c), ticket) {
		s.notes.DropIndex(name, s.clock())
		s.o.Renewed.Call(c, name)
	}
}

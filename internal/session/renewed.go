package session

import (
	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/viewcache"
)

// Clients may delete an index and create it again without optimist seeing it. Its sequence numbers then begin at 0 again, and the engine
// takes guards with the numbers of the old index. Any of these shows it, and then nothing that was known of the index is a base any more:
//
//   - a read returns an older revision than a write had left that was acknowledged before the read was sent (under the same primary term);
//   - a write leaves an older revision than another write that was acknowledged before this one took its base (likewise);
//   - a read returns another document under the same numbers as an earlier read;
//   - a read that was sent after the last acknowledged write finds no index.
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

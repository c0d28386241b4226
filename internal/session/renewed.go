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
func (sh *shard) acknowledged(e *viewcache.Entry, ix indexstate.Index[Session], n doc.Numbers, ticket uint64) {
	if n.Known() {
		sh.Acknowledge(e, n, ticket)
		ix.Acknowledged(ticket)
	}
}

// TermBefore is the primary term under which the engine has acknowledged a write of the document before the base was taken; 0: it isn't
// known. The shard has had that primary since then, unless it has a later one by now.
func (b *Base) TermBefore() int64 {
	c := &b.claim
	if c.sh == nil {
		return 0
	}
	gone := c.store.find(c.key.Ref.Index, c.key.Session.Credentials(), c.store.clock()).Gone()
	c.sh.mu.Lock()
	defer c.sh.mu.Unlock()
	return c.sh.DocumentOf(c.key, nil, gone).TermAt(c.takenAt)
}

// IndexMissing notes an answer to a read that says that there is no such index. ticket is the read's. The store forgets the index, unless
// a write was acknowledged since: that write has created the index.
func (s *Store) IndexMissing(c Credentials, name string, ticket uint64) {
	if !s.dryRun && s.find(name, c, s.clock()).Missing(ticket) {
		s.notes.DropIndex(name, s.clock())
		s.o.Renewed.Call(c, name)
	}
}

// What clients with some credentials find out of an index is only a suspicion for clients with others: they may be of another cluster, in
// which the name stands for another index. Before the next read or write of such a client is noted, the engine has to be asked with its
// credentials whether its index is still the same. If nobody asks, or the engine doesn't say, its bases are lost.

// Begin begins a new epoch.
func (s *Store) Begin() Epoch { return s.indices.Begin() }

// Suspicion reports whether there is one about the index for clients with those credentials, and since which epoch.
func (s *Store) Suspicion(c Credentials, index string) (mark Epoch, open bool) {
	return s.find(index, c, s.clock()).Suspicion()
}

// Settle ends the suspicions that began up to the mark. What the clients have known since the epoch from is of the index that is there now,
// and what they knew before it is forgotten. If it is all of another index, from is the mark.
func (s *Store) Settle(c Credentials, index string, mark, from Epoch) {
	s.find(index, c, s.clock()).Settle(mark, from)
}

// giveUp settles a suspicion that is still open, because nobody has asked, or the engine doesn't say: nothing is proven.
func giveUp(ix indexstate.Index[Session]) {
	if mark, open := ix.Suspicion(); open {
		ix.Settle(mark, mark)
	}
}

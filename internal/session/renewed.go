package session

import (
	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/viewcache"
)

// Clients may delete an index and create it again without optimist seeing it. Its sequence numbers then begin at 0 again, and the engine
// takes guards with the numbers of the old index. Each of these events shows it. Then no earlier read or write of the index is a base any
// more:
//
//   - a read returns an older revision than a write had left that was acknowledged before the read was sent (under the same primary term);
//   - a write leaves an older revision than another write that was acknowledged before this one took its base (likewise);
//   - a write leaves an older revision than its base, or one of an older primary term than its base or such another write;
//   - a read returns another document under the same numbers as an earlier read;
//   - a read that was sent after the last acknowledged write finds no index.
//
// A search proves nothing, because it sees the index as it was at its last refresh. A read with other bytes than a client has written
// proves nothing, either, because the engine may show clients less than the whole document. A read of an older primary term proves nothing,
// either: it may come from a node that is cut off from the others. Such a node acknowledges no write. It may also show an old copy of the
// shard under the same primary term. So before a read of an older revision is noted, the engine is asked what the index is: see
// ReadUnlessOlder.

// acknowledged notes that a write of the entry's document was acknowledged, and left the revision n. If n isn't known, it does nothing.
func (sh *shard) acknowledged(e *viewcache.Entry, ix indexstate.Index[Session], n doc.Numbers, ticket uint64) {
	if n.Known() {
		sh.Acknowledge(e, n, ticket)
		ix.Acknowledged(ticket)
	}
}

// showsAnotherIndex reports whether the write was acknowledged by another index than the one that the base, or d, is of. d may be nil.
func (c *claim) showsAnotherIndex(a *Ack, d *viewcache.Document) bool {
	left, before := a.Stored.Numbers, c.takenAt
	if a.Began.known {
		before = a.Began.order
	}
	switch {
	case d.KnewNewer(left, 0, before):
		return true
	case !a.Written || !left.Known():
		return false
	case (c.reserves() || c.took == choice.TakePast) && (c.Numbers.PrimaryTerm > left.PrimaryTerm || viewcache.Newer(c.Numbers, left)):
		return true
	}
	return d.KnewLaterTerm(left, before)
}

// TermBefore is the primary term under which the engine has acknowledged a write of the document before the base was taken; 0: it isn't
// known. The shard has had that primary since then, unless it has a later one by now.
func (b *Base) TermBefore() int64 {
	c := &b.claim
	if c.sh == nil {
		return 0
	}
	gone := c.sh.store.findOf(c.key, c.sh.store.clock()).Gone()
	c.sh.mu.Lock()
	defer c.sh.mu.Unlock()
	return c.sh.DocumentOf(c.key, nil, gone).TermAt(c.takenAt)
}

// IsVoid reports whether the index was forgotten since the base was taken: another document may have the base's numbers now.
func (b *Base) IsVoid() bool {
	c := &b.claim
	return c.sh != nil && c.sh.store.Dropped(c.key.Session.Credentials(), c.key.Ref.Index, c.since)
}

// IndexMissing notes an answer to a read that says that there is no such index. ticket is the read's. The store forgets the index, unless
// a write was acknowledged since: that write has created the index.
func (s *Store) IndexMissing(c Credentials, name string, ticket uint64) {
	if !s.dryRun && s.find(name, c, s.clock()).Missing(ticket) {
		s.renewed(c, name)
	}
}

// If clients with some credentials show that an index was made anew, this is only a suspicion for clients with other credentials. Those may
// be clients of another cluster, in which the name stands for another index. Before the store notes the next read or write of such a
// client, its caller has to ask the engine, with that client's credentials, whether the index is still the same. If nobody asks, or the
// engine doesn't say, the client's bases are lost.

// Begin begins a new epoch.
func (s *Store) Begin() Epoch { return s.indices.Begin() }

// Suspicion reports whether there is a suspicion about the index for clients with those credentials, and the epoch at which it began.
func (s *Store) Suspicion(c Credentials, index string) (mark Epoch, open bool) {
	return s.find(index, c, s.clock()).Suspicion()
}

// Settle ends the suspicions that began up to the mark. from is the epoch since which the name has stood for the present index. The store
// keeps what these clients have read and written since from, and forgets the rest. If all of that is of another index, from is the mark.
func (s *Store) Settle(c Credentials, index string, mark, from Epoch) {
	s.find(index, c, s.clock()).Settle(mark, from)
}

// giveUp settles a suspicion that is still open because nobody has asked, or the engine hasn't said. All bases from before are lost.
func giveUp(ix indexstate.Index[Session]) {
	if mark, open := ix.Suspicion(); open {
		ix.Settle(mark, mark)
	}
}

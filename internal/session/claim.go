package session

import (
	"optimist/internal/identity"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// claim is a write's reservation, with all that is needed to end it. The caller may change the exported fields of Base, so claim has
// copies of those that are given back.
type claim struct {
	store *Store
	sh    *shard // of key
	key   viewcache.Key
	entry *viewcache.Entry // of key, when the base was taken; nil: there was none
	// network is where the write comes from.
	network identity.Network
	since   Epoch
	// takenAt is the shard's order when the base was taken.
	takenAt uint64
	// arrived is the shard's order when the write came, before it waited for its base.
	arrived uint64
	kind    Kind

	leavesBase   bool // the revision that this write leaves can be a later write's base
	blind        bool // nothing was known of the document: if the write overwrites it, it was blind
	reservesView bool // the session's own view is reserved
	fromHistory  bool // the base is from the history; nothing of that is reserved
	// outcomeUnknown says that the result of this write, or of its first try, is unknown. (Doubt says so of any write with this base.)
	outcomeUnknown bool

	pending *repeat.Pending // the writes in flight of which it is one; nil: it isn't
	series  *Series         // that learns what the write leaves; nil: it is alone
	attempt *repeat.Attempt // nil: nobody looks for repeats of it
	guessed bool            // the base is one of several candidates
	trace   Trace           // the trace in which the reserved read was made
	program Program         // that made the reserved read; 0: it isn't known
	// again says that the write repeats one that was acknowledged. Nothing is reserved for it.
	again bool
	// first is the acknowledged write that this one repeats, if its client is known to have given it up. The base may be the view then.
	first    *repeat.Attempt
	spent    bool // the reserved read was spent before: see viewcache.Read
	sentPart bool // sent is a part of a document, and not what the client has seen

	viewcache.View        // the reserved view; for a read, only the fields that reads have, too
	sent, stored   []byte // the bodies of View
}

// reads reports whether an outstanding read is reserved.
func (c *claim) reads() bool {
	return !c.reservesView && !c.fromHistory && (c.kind == KindRead || c.kind == KindAbsent)
}

// guards reports whether the base is a revision that a client has in hand.
func (c *claim) guards() bool { return c.reservesView || c.fromHistory || c.reads() }

// departure returns the claim's write in the form in which the table of pending writes keeps it.
func (c *claim) departure() repeat.PendingWrite {
	d := repeat.PendingWrite{Arrived: c.arrived, Attempt: c.attempt, Reads: c.reads(), Guards: c.guards()}
	if d.Guards {
		d.Guard = c.Note().Numbers
	}
	return d
}

package session

import (
	"optimist/internal/choice"
	"optimist/internal/identity"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// claim is a write's reservation, with all that is needed to end it. The caller may change the exported fields of Base, so claim has
// copies of those that are given back.
type claim struct {
	store   *Store
	sh      *shard // of key
	key     viewcache.Key
	entry   *viewcache.Entry // of key, when the base was taken; nil: there was none
	network identity.Network // where the write comes from
	since   Epoch

	arrived uint64 // the shard's order when the write came, before it waited for its base
	came    int64  // the time at that moment
	takenAt uint64 // the shard's order when the base was taken

	// took is where the base comes from; TakeNothing also stands for a recollection. Only TakeRead and TakeView reserve something. TakeSent
	// says that the write repeats one that was acknowledged. TakePast also stands for a view that another write has taken.
	took           choice.Action
	kind           Kind
	viewcache.View        // for a read, only the fields that reads have, too
	sent, stored   []byte // the bodies of View
	sentPart       bool   // sent is a part of a document, and not what the client has seen
	guessed        bool   // the base is one of several candidates

	// Of a reserved read:
	trace   Trace   // in which it was made
	program Program // that made it; 0: it isn't known
	spent   bool    // it was spent before: see viewcache.Read

	leavesBase bool            // the revision that this write leaves can be a later write's base
	blind      bool            // nothing was known of the document: if the write overwrites it, it was blind
	series     *Series         // that learns what the write leaves; nil: it is alone
	pending    *repeat.Pending // the writes in flight of which it is one; nil: it isn't
	attempt    *repeat.Attempt // nil: nobody looks for repeats of it
	first      *repeat.Attempt // the acknowledged write that this one repeats, if its client is known to have given it up; else nil
	// outcomeUnknown says that the result of this write, or of its first try, is unknown. (Doubt says so of any write with this base.)
	outcomeUnknown bool
}

// reserves reports whether a read, or the session's own view, is reserved.
func (c *claim) reserves() bool { return c.took == choice.TakeRead || c.took == choice.TakeView }

// use is what the base of c may be used for. unclear and changed say what the client may have seen or done since.
func (c *claim) use(unclear, changed bool) Use {
	switch {
	case c.Doubt:
		return UseGuard
	case unclear:
		return UseUnclear
	case changed:
		return UseGuard
	}
	return UseMerge
}

// departure returns the claim's write in the form in which the table of pending writes keeps it.
func (c *claim) departure() repeat.PendingWrite {
	d := repeat.PendingWrite{Arrived: c.arrived, Attempt: c.attempt, Reads: c.took == choice.TakeRead}
	if d.Guards = c.reserves() || c.took == choice.TakePast; d.Guards { // clients have it in hand
		d.Guard = c.Note().Numbers
	}
	return d
}

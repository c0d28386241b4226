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
	sh      *shard // of key; nil: the claim is ended, or there was none
	key     viewcache.Key
	entry   *viewcache.Entry // of key, when the base was taken; nil: there was none
	network identity.Network // of the client that writes
	since   Epoch

	arrived uint64 // the shard's order when the write came, before it waited for its base
	came    int64  // the time when the write came
	takenAt uint64 // the shard's order when the base was taken

	// took says where the base comes from. Only TakeRead and TakeView reserve something. TakeSent says that the write repeats an acknowledged
	// one. TakeNothing also stands for a recollection, and TakePast also for a view that another write has taken.
	took           choice.Action
	kind           Kind
	viewcache.View        // for a read, only the fields that reads have, too
	sent, stored   []byte // the bodies of View
	sentPart       bool   // sent is a part of a document, and not what the client has seen
	ambiguous      bool   // as of Base
	recalled       bool   // the base is the recollection

	// Of a reserved read:
	trace   Trace   // the trace in which it was made
	program Program // the program that made it; 0: it isn't known
	spent   bool    // a client has perhaps written a part from it: see viewcache.Read

	// pending has the document's writes in flight, among them this one. nil: this write isn't among them. What it leaves is then no later
	// write's base, unless it creates the document: see Base.Commit.
	pending *repeat.Pending
	blind   bool            // the session knew nothing of the document: if the write overwrites the document, its client is a blind writer
	series  *Series         // the write's series, which learns what it leaves; nil: the write is in none
	givenUp bool            // the session is named, and its client has read and written since the write came: see saw
	attempt *repeat.Attempt // nil: nobody looks for repeats of it
	first   *repeat.Attempt // the acknowledged write that this one repeats, if its client is known to have given it up; else nil
	// outcomeUnknown says that the outcome of this write, or of its first try, is unknown. (Doubt says so of an earlier write with this base.)
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
	if d.Guards = c.reserves() || c.took == choice.TakePast; d.Guards { // clients hold the base
		d.Guard = c.Note().Numbers
	}
	return d
}

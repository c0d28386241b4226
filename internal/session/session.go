// Package session remembers which revisions of documents clients have seen, and chooses one of them as the base of a write.
//
// It promises nothing about a document's current state: a base is what a client had seen, however old. A session that is inferred
// from credentials and address may have several reads of a document outstanding. The base of its next write is then a guess among these
// reads. The guess is certainly right only if every read is written back once.
//
// The package holds a bounded number of bytes, and forgets the rest. At the end of the process it forgets everything but the
// numbers in its notebook.
package session

import (
	"context"
	"time"

	"optimist/internal/hook"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
	"optimist/internal/note"
	"optimist/internal/rank"
)

// How clients are told apart: the words of package identity that callers of the store need.
type (
	// Credentials is identity.Credentials.
	Credentials = identity.Credentials
	// Session is identity.Session.
	Session = identity.Session
	// Trace is identity.Trace.
	Trace = identity.Trace
	// Program is identity.Program.
	Program = identity.Program
	// Copy is identity.Copy.
	Copy = identity.Copy
)

// Options configure a Store. The zero value is usable.
type Options struct {
	// MaxAge is how long a read or an own view can be a base, and how long a blind writer stays one. Default 5 minutes.
	MaxAge time.Duration
	// Memory bounds what the store holds, in bytes, its own overhead included. Default 256 MiB, at least 64 KiB. It is
	// divided among up to 16 shards; of a document larger than a quarter of a shard's part only the numbers are kept.
	Memory int64
	// Candidates bounds how many distinct revisions of a document a session can have outstanding; the oldest go first.
	// Default 128.
	Candidates int
	// Rank chooses the candidate from which sent was most likely made, and says whether another candidate is nearly as likely. The candidates
	// come oldest first. Rank makes the digests that candidates don't have yet. Default rank.Likeliest.
	Rank func(cs []rank.Candidate, sent rank.Sent) rank.Choice
	// Left reports whether the client of a write has left; ctx is the context of the write. It is called for few writes, with a lock
	// held, and mustn't wait. It may be called after the write, and ctx, have ended. Default: whether ctx was cancelled.
	Left func(ctx context.Context) bool
	// Renewed is called with the name of an index that clients have made anew, without a lock held. Reads or writes of clients with those
	// credentials have shown this to the store, and the store has forgotten the index.
	Renewed hook.Func2[Credentials, string]
	// Notes is the notebook that outlives the process, for the next process: see note.Notebook. Nil: nothing outlives the process.
	Notes note.Notebook
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Epoch is a moment. It tells an index from one of the same name that was made anew. Take one with Store.Epoch before a request is sent,
// and hand it in with what the answer says. So the store doesn't remember an answer if the index was deleted before the answer came.
type Epoch = indexstate.Epoch

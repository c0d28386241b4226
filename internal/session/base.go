package session

import (
	"bytes"

	"optimist/internal/doc"
	"optimist/internal/repeat"
	"optimist/internal/seen"
)

// Kind says where a base comes from.
type Kind uint8

// The kinds of bases.
const (
	KindNone   Kind = iota // nothing is known of what the client has seen
	KindRead               // the client read the revision
	KindView               // the client wrote the revision; it has seen what it sent
	KindAbsent             // the client saw that there was no such document
	KindLost               // the client may have seen a revision, but it isn't known any more; Reason says why
	KindGiven              // the client named the numbers itself, and this session doesn't know them
)

// String returns the kind as it stands in the outcome header and in metrics.
func (k Kind) String() string {
	return [...]string{"none", "read", "view", "absent", "lost", "given"}[k]
}

// Reason is seen.Reason.
type Reason = seen.Reason

// The reasons.
const (
	ReasonNone    = seen.NoReason
	ReasonEvicted = seen.Evicted
	ReasonAged    = seen.Aged
	ReasonRestart = seen.Restart
	ReasonIndex   = seen.Index
	ReasonBlind   = seen.Blind
)

// Base is what a client had when it made its change, reserved for one write. Exactly one of Commit, Delete, Doubt and Release
// ends the reservation; further calls, and calls on the zero value, do nothing. Its bodies are immutable and stay valid
// after the end. A Base is for one goroutine at a time, and only one copy of it may be ended.
type Base struct {
	Kind   Kind
	Reason Reason // why it is lost, or none
	// Ambiguous is true where there was more than one distinct candidate.
	Ambiguous bool
	// Guessed is true where nobody has named the revision: another client of an inferred session may have read it, or this client
	// something else that isn't known any more.
	Guessed bool
	// Doubtful is true where nobody knows what became of a write with this base, which may be the same write: see Doubt. It is
	// also true where the client may have written from something else: see Store.ReadUnnumbered. A doubtful base must not be merged.
	Doubtful bool
	// Numbers are the revision's, for the guard. They are zero where there is none: for KindNone, KindLost and KindAbsent.
	Numbers doc.Numbers
	// AnswerNumbers are the numbers that the answer to the write named which left a view: others than Numbers where something else was
	// stored than was sent. They are zero for everything else, and where they aren't known.
	AnswerNumbers doc.Numbers
	Version       int64 // the revision's _version; 0: not known
	// View is what the client saw: what it read, or, after a write, what it sent. nil where it isn't known.
	View []byte
	// Stored is what the engine holds at Numbers: View itself for reads. nil where it isn't known.
	Stored []byte
	// StoredDiffers is true where the engine holds something else at Numbers than the client has seen of it, be View and Stored known or
	// not.
	StoredDiffers bool

	claim      claim
	joined     *Base     // ends together with it; nil: none
	unanswered answering // after a Commit, while its client has no answer yet
}

// SeenSince reports whether the client has seen the base after a moment, of Now.
func (b *Base) SeenSince(moment int64) bool { return b.claim.At > moment }

// Ack is an acknowledged write. Its bodies are copied.
type Ack struct {
	// Stored is the revision that the write left: the numbers that the engine answered with, and the bytes that it
	// holds there; no bytes where they aren't known (an ingest pipeline).
	Stored doc.Revision
	// Sent is what the client sent: what it has seen of the stored revision.
	Sent []byte
	// AnswerNumbers are the numbers that the answer to the client names, where they are not Stored's. TakeAt knows the view by both.
	AnswerNumbers doc.Numbers
	// Copy is what the answer hands out for what was sent, so that TakeCopy knows it. Without a Token it is none.
	Copy Copy
	// StoredDiffers says that something else was stored than was sent, though it isn't known what.
	StoredDiffers bool
	// Created says that the engine made the document instead of overwriting one.
	Created bool
}

// differs reports whether something else was stored than was sent.
func (a *Ack) differs() bool {
	return a.StoredDiffers || a.Stored.Source != nil && a.Sent != nil && !bytes.Equal(a.Stored.Source, a.Sent)
}

// alias is what the answer to the write names, where something else is stored than was sent.
func (a *Ack) alias() doc.Numbers {
	switch {
	case seen.Same(a.Stored.Source, a.Sent):
		return doc.Numbers{}
	case a.AnswerNumbers.Known():
		return a.AnswerNumbers
	}
	return a.Stored.Numbers
}

// answering is a write that was acknowledged, while its client has no answer yet.
type answering struct {
	sh      *shard
	attempt *repeat.Attempt
}

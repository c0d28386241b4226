package session

import (
	"bytes"

	"optimist/internal/doc"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// Kind says where a base comes from.
type Kind uint8

// The kinds of bases.
const (
	KindNone     Kind = iota // nothing is known of what the client has seen
	KindRead                 // the client read the revision
	KindView                 // the client wrote the revision; it has seen what it sent
	KindAbsent               // the client saw that there was no such document
	KindLost                 // the client may have seen a revision, but it isn't known any more; Reason says why
	KindExplicit             // the client named the numbers itself, and this session doesn't know them
)

// String returns the kind as it stands in the outcome header and in metrics.
func (k Kind) String() string {
	return [...]string{"none", "read", "view", "absent", "lost", "given"}[k]
}

// Reason is viewcache.Reason.
type Reason = viewcache.Reason

// Reasons are the names of all reasons.
func Reasons() []string { return viewcache.Reasons() }

// The reasons.
const (
	ReasonNone      = viewcache.NoReason
	ReasonEvicted   = viewcache.Evicted
	ReasonAged      = viewcache.Aged
	ReasonRestart   = viewcache.Restart
	ReasonIndex     = viewcache.Index
	ReasonBlind     = viewcache.Blind
	ReasonUnwatched = viewcache.Unwatched
)

// Use is what a base may be used for.
type Use uint8

// The uses.
const (
	UseMerge Use = iota // the base may be merged
	// UseGuard is for a base that guards the write, and must not be merged. Either an earlier write with this base has an unknown outcome, and
	// this write may repeat it: see Base.Doubt. Or the client has changed documents since, and nobody knows which: see Store.ChangedUnknown.
	UseGuard
	// UseUnclear is UseGuard for a base after which an answer may have shown the client another revision: see Store.ReadPart. If that
	// revision is older than the base, and the write takes back what came in between, the older revision is the guard. The engine then refuses
	// the write.
	UseUnclear
)

// Base is what a client had when it made its change, reserved for one write. One of Commit, Delete, Doubt and Release ends the
// reservation. Further calls, and calls on the zero value, do nothing. The bodies are immutable, and stay valid after the end. One
// goroutine at a time uses a Base, and only one copy of it may be ended.
type Base struct {
	Kind   Kind
	Reason Reason // why it is lost, or none
	// Ambiguous says that there was more than one distinct candidate.
	Ambiguous bool
	// Guessed says that the client hasn't named the revision, and that the session is inferred. Then another client of the session may have
	// read this revision, and this client another one that optimist has forgotten.
	Guessed bool
	// Moved says that the client saw the base in the index for which the write's name stood before: see Store.Carry. It has no numbers then.
	Moved bool
	Use   Use
	// Numbers are the revision's, for the guard. They are zero if there is none: for KindNone, KindLost and KindAbsent.
	Numbers doc.Numbers
	// AnswerNumbers are the numbers in the answer to the write that left a view. They differ from Numbers if the engine stores something else
	// than the client sent. Zero: they aren't known, or the base is no view.
	AnswerNumbers doc.Numbers
	Version       int64 // the revision's _version; 0: not known
	// View is what the client saw: the document that it read, or, after a write, that it sent. nil: not known.
	View []byte
	// Stored is what the engine holds at Numbers. For a read it is View. nil: not known.
	Stored []byte
	// StoredDiffers says that the engine holds something else at Numbers than the client saw. It may be true although View or Stored is nil.
	StoredDiffers bool

	claim      claim
	joined     *Base      // another base that ends together with this one; nil: none
	toEngine   *forEngine // see LeaveToEngine; nil: none
	unanswered Unanswered // the write after its Commit
}

// OnlyGuards reports whether the base must not be merged.
func (b *Base) OnlyGuards() bool { return b.Use != UseMerge }

// SeenSince reports whether the client has seen the base after a moment (by Store.Now).
func (b *Base) SeenSince(moment int64) bool { return b.claim.At > moment }

// Become gives b the content of o, which is of the same document in the index before: see Moved. The base that b reserves stays reserved.
func (b *Base) Become(o *Base) {
	claim, joined := b.claim, b.joined
	*b = Base{Kind: o.Kind, View: o.View, Ambiguous: o.Ambiguous, Guessed: o.Guessed, Use: o.Use, claim: claim, joined: joined}
	b.Moved = o.Kind != KindAbsent
}

// Ack is an acknowledged write. Its bodies are copied.
type Ack struct {
	// Stored is the revision that the write left: the numbers in the engine's answer, and the bytes that the engine holds there. The bytes
	// are nil if they aren't known, behind an ingest pipeline for example.
	Stored doc.Revision
	// Sent is what the client sent. It is all that the client knows of the stored revision.
	Sent []byte
	// AnswerNumbers are the numbers in the answer to the client, if they aren't Stored's. TakeAt knows the view by both.
	AnswerNumbers doc.Numbers
	// Copy is the copy that the answer hands out. It stands for the sent document: TakeCopy finds the document by the copy. Without a Token
	// the answer hands out none.
	Copy Copy
	// StoredDiffers says that another document was stored than the sent one.
	StoredDiffers bool
	// Written says that the engine has written the stored revision for this write, and hasn't only found it.
	Written bool
	// Created says that the engine made the document instead of overwriting one.
	Created bool
	// Began is where the write began, if its base was taken later, after the acknowledgement: then a newer revision may have been acknowledged
	// in between. Zero: the base was taken before the write was sent.
	Began Place

	deleted bool // the write was a delete
}

// Place is a place in the order in which writes take their bases, and are acknowledged.
type Place struct {
	known bool
	order uint64
}

// Place is the present place of the document's writes. It is for a write that takes its base after its acknowledgement: see Ack.Began.
func (s *Store) Place(sess Session, ref doc.Ref) Place {
	sh := s.shard(viewcache.KeyOf(sess, ref))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return Place{true, sh.Order}
}

// differs reports whether something else was stored than was sent.
func (a *Ack) differs() bool {
	return a.StoredDiffers || a.Stored.Source != nil && a.Sent != nil && !bytes.Equal(a.Stored.Source, a.Sent)
}

// alias is the numbers in the answer to the write, if something else is stored than was sent; else zero.
func (a *Ack) alias() doc.Numbers {
	switch {
	case viewcache.Same(a.Stored.Source, a.Sent):
		return doc.Numbers{}
	case a.AnswerNumbers.Known():
		return a.AnswerNumbers
	}
	return a.Stored.Numbers
}

// forEngine is a base that was reserved for a part, and given back because the engine merges the part by itself.
type forEngine struct {
	store *Store
	key   viewcache.Key
	viewcache.Sight
	read bool // it is an outstanding read

	series *Series // the part's series, which learns what the engine has made of the document; nil: the part is in no series
	made   []byte  // the base with the part merged in; nil: not known
}

// Unanswered is an acknowledged write whose client has no answer yet. The zero value is none.
type Unanswered struct {
	sh      *shard
	attempt *repeat.Attempt
}

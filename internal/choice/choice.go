// Package choice decides which of the revisions that a session has seen is a write's base.
//
// It knows only what the session knows, keeps nothing, and reads no clock. If several reads may be the base, the caller has to compare
// their contents.
package choice

import (
	"bytes"
	"slices"

	"optimist/internal/doc"
)

// Input is a session's knowledge of a document when a write chooses its base.
type Input struct {
	Reads          []Read // outstanding, oldest first
	View           *View  // what the session wrote last; nil: it wrote nothing, or a write has reserved the view
	Past           bool   // there is a history, and the base may be in it
	Shared         bool   // several clients of the session are known to work on the document
	InFlight       bool   // there are writes whose base is reserved
	ReadsOfEarlier bool   // a write that came before this one has reserved a read
	OthersWait     bool   // writes that came earlier wait for a base
}

// Read stands for all outstanding reads of one revision.
type Read struct {
	Numbers doc.Numbers
	Order   uint64 // its place in the order in which clients have seen revisions
	Doubt   bool   // it was the base of a write whose outcome is unknown
}

// View is what a write has left.
type View struct {
	Numbers doc.Numbers
	Answer  doc.Numbers // the numbers in the answer to the write; zero: they are Numbers
	Sent    []byte      // nil: not known
	Stored  bool        // the engine stores the sent document as it is
	Differs bool        // the engine stores another document
	Absent  bool        // the write was a delete
	Order   uint64      // as of a Read
	Doubt   bool        // as of a Read
}

// Request is what a write says about its base.
type Request struct {
	Sent     []byte                            // nil: a delete
	On       func(base []byte) ([]byte, error) // the document that a client with this base would have sent; nil: Sent
	Part     bool                              // Sent is a part of a document
	Before   uint64                            // the write wasn't made from reads with a later place: they came while it waited
	Named    bool                              // the client named its session
	Explicit doc.Numbers                       // the numbers that the client itself names; zero: it names none
	Served   bool                              // Explicit is from a read, and not from the answer to a write
	Thread   bool                              // a thread of work names Explicit, and waits for its writes in flight
	OfAnswer bool                              // the answer to a write named Explicit, but another document is stored there than was sent
	Spent    bool                              // the session has written from Explicit before

	Repeat Repeat
	Doubt  *doc.Numbers // the base of an earlier write of the same bytes whose outcome is unknown; nil: there is none
}

// Repeat says how likely it is that a write was sent before, and acknowledged.
type Repeat uint8

// How likely a repeat is.
const (
	NoRepeat      Repeat = iota
	SameSent             // a client of the session has sent the same bytes, but it may be another client
	UnheardRepeat        // and that client left before it had the answer
	AwaitedRepeat        // and this write has waited for that one
)

// Action is what is done for a write that needs a base.
type Action uint8

// The actions.
const (
	TakeNothing  Action = iota // nothing is known
	TakeRead                   // one outstanding read
	TakeView                   // what the session wrote last
	TakeSent                   // the sent document: it was acknowledged before, and its change must not count again
	TakeExplicit               // the numbers that the client names; the session doesn't know their revision
	TakePast                   // a revision of the history
	RankAll                    // the likeliest of the revisions that the session has seen
	WaitForBase                // a base that a write in flight has reserved
)

// Decision is what Choose decides.
type Decision struct {
	Action    Action
	Read      int  // TakeRead: the index of the read. RankAll: the number of reads to rank, from the oldest on
	Ambiguous bool // the write may have another base
	Doubtful  bool // the base is that of an earlier write of the same bytes whose outcome is unknown
}

// Choose decides on a write's base. It is pure: its caller carries out the decision.
func Choose(k *Input, r *Request) Decision {
	if r.Explicit.Known() {
		return chooseExplicit(k, r)
	}
	return chooseFromSession(k, r)
}

// candidates returns the outstanding reads that were made before the write came. If there are none, and no earlier write has reserved one,
// it returns the session's own view. Reads that later writes have reserved don't count: otherwise this write would wait for as long as
// other clients go on.
func (k *Input) candidates(r *Request) (reads []Read, v *View) {
	reads = k.Reads
	if i := slices.IndexFunc(reads, func(o Read) bool { return o.Order > r.Before }); i >= 0 {
		reads = reads[:i]
	}
	if r.Sent == nil && !r.Named && k.View.isSeenAfter(reads) {
		reads = nil
	}
	if len(reads) == 0 && !k.ReadsOfEarlier {
		v = k.View
	}
	if len(reads) == 0 && v == nil && !k.InFlight {
		reads = k.Reads // these were made while the write waited; they are better than nothing
	}
	return reads, v
}

// isSeenAfter reports whether the view is a document, and the clients that looked for it before found none. A delete isn't made from such
// a read.
func (v *View) isSeenAfter(reads []Read) bool {
	found := func(r Read) bool { return r.Numbers.Known() || v != nil && r.Order > v.Order }
	return v != nil && !v.Absent && !slices.ContainsFunc(reads, found)
}

// chooseFromSession decides for a write that names no base.
func chooseFromSession(k *Input, r *Request) Decision {
	reads, v := k.candidates(r)
	d, doubt := k.inDoubt(r)
	switch {
	case r.Repeat >= UnheardRepeat && !v.is(r):
		return Decision{Action: TakeSent, Ambiguous: r.Repeat == UnheardRepeat && len(reads) > 0}
	case doubt:
		return d
	case len(reads) == 1 && !k.Past && !k.maybeNew(r):
		return Decision{Action: TakeRead}
	case len(reads) > 0:
		return Decision{Action: RankAll, Read: len(reads)}
	case k.OthersWait:
		return Decision{Action: WaitForBase}
	case v != nil && r.Repeat == SameSent && !v.is(r) && k.Shared:
		// Another client has left the view since: a repeat from it would undo what others have written. But the write may be no repeat. If
		// nothing shows that there are other clients, it is none: a client that is alone often sets a document back.
		return Decision{Action: TakeSent, Ambiguous: true}
	case v != nil && k.Past:
		return Decision{Action: RankAll}
	case v != nil:
		return Decision{Action: TakeView}
	case k.InFlight:
		return Decision{Action: WaitForBase}
	default:
		return Decision{Action: TakeNothing}
	}
}

// maybeNew reports whether the write may make the document anew: it sends a whole document, and the session has deleted the document after
// the outstanding reads.
func (k *Input) maybeNew(r *Request) bool {
	return k.View != nil && k.View.Absent && k.View.Order > k.Reads[len(k.Reads)-1].Order && !r.Named && r.Sent != nil && !r.Part
}

// chooseExplicit decides for a write whose client names the numbers itself. If a read of these numbers is outstanding, the write takes it.
// But the client may have the numbers from the answer to a write, and hold another document.
func chooseExplicit(k *Input, r *Request) Decision {
	read := find(k.Reads, r.Explicit)
	var v *View
	if read < 0 && k.View.named(r) && (!r.Thread || !k.InFlight) { // a write in flight may be made from the same revision
		v = k.View
	}
	d, doubt := k.inDoubt(r)
	switch {
	case r.Repeat >= UnheardRepeat && !v.is(r):
		return Decision{Action: TakeSent}
	case doubt:
		return d
	case read >= 0:
		return Decision{Action: TakeRead, Read: read, Ambiguous: r.MayBeOfAnswer()}
	case r.Thread && k.OthersWait:
		return Decision{Action: WaitForBase}
	case v != nil:
		return Decision{Action: TakeView}
	case r.Thread && k.InFlight:
		return Decision{Action: WaitForBase}
	default:
		return Decision{Action: TakeExplicit}
	}
}

// MayBeOfAnswer reports whether the client may have the numbers from the answer to a write that sent another document than is stored.
func (r *Request) MayBeOfAnswer() bool { return r.OfAnswer && !r.Served }

// inDoubt decides for a write that was sent before, with an unknown outcome. The write gets the same base, and is never merged.
func (k *Input) inDoubt(r *Request) (d Decision, ok bool) {
	if r.Doubt == nil {
		return d, false
	}
	if i := find(k.Reads, *r.Doubt); i >= 0 && k.Reads[i].Doubt {
		return Decision{Action: TakeRead, Read: i, Ambiguous: len(k.Reads) > 1, Doubtful: true}, true
	}
	if v := k.View; v != nil && v.Doubt && v.Numbers == *r.Doubt {
		return Decision{Action: TakeView, Ambiguous: len(k.Reads) > 0, Doubtful: true}, true
	}
	return d, false
}

// is reports whether the view is the sent document, or has the sent part in it.
func (v *View) is(r *Request) bool { return v != nil && r.Sends(v.Sent) }

// Sends reports whether a document is the sent one, or has the sent part in it.
func (r *Request) Sends(seen []byte) bool {
	if r.On == nil {
		return bytes.Equal(seen, r.Sent)
	}
	made, err := r.On(seen)
	return seen != nil && err == nil && bytes.Equal(seen, made)
}

// named reports whether the numbers that a write names stand for the view.
func (v *View) named(r *Request) bool {
	if v == nil || v.Absent {
		return false
	}
	answer := v.Numbers
	if v.Answer.Known() {
		answer = v.Answer
	}
	// A client of a named session that gave up waiting sends its request again as it was.
	again := r.Spent && r.Sent != nil && v.is(r)
	switch {
	case again:
	case answer != r.Explicit:
		return false
	case v.Differs && v.Sent != nil && v.Numbers == r.Explicit: // the client may have read the stored document elsewhere
		return false
	}
	// Otherwise another client of the session may have read the revision of these numbers.
	return v.Numbers == r.Explicit && v.Stored || r.Named && !r.Served
}

// find returns the index of the reads of a revision, or -1.
func find(reads []Read, n doc.Numbers) int {
	return slices.IndexFunc(reads, func(r Read) bool { return r.Numbers == n })
}

// Package choice decides which of the revisions that a session has seen is a write's base.
//
// It knows only what the session knows. If several reads may be the base, the caller has to compare their contents. It keeps
// nothing, and reads no clock.
package choice

import (
	"bytes"
	"slices"

	"optimist/internal/doc"
)

// Input is a session's knowledge of a document when a write chooses its base.
type Input struct {
	Reads          []Read // outstanding, oldest first
	View           *View  // what the session wrote last; nil: nothing, or it is reserved
	Past           bool   // there is a history, in which the base may be, too
	Shared         bool   // several clients of the session are known to work on the document
	InFlight       bool   // there are writes whose base is reserved
	ReadsOfEarlier bool   // a read is reserved for a write that came earlier
	OthersWait     bool   // writes that came earlier wait for a base
}

// Read is the outstanding reads of one revision.
type Read struct {
	Numbers doc.Numbers
	Order   uint64 // its place among what clients have seen
	Doubt   bool   // the base of a write with an unknown result
}

// View is what a write has left.
type View struct {
	Numbers doc.Numbers
	Answer  doc.Numbers // that the answer to the write carried; zero: Numbers
	Sent    []byte      // nil: not known
	Stored  bool        // what was sent is stored as it is
	Differs bool        // something else is
	Absent  bool        // it was a delete
	Order   uint64      // as of a Read
	Doubt   bool        // as of a Read
}

// Request is what a write says about its base.
type Request struct {
	Sent     []byte                            // nil: a delete
	On       func(base []byte) ([]byte, error) // what would have been sent of a document; of a part: what that makes of it; nil: Sent
	Part     bool                              // Sent is a part of a document
	Before   uint64                            // reads with a later place were made while the write waited: it wasn't made from them
	Named    bool                              // the client named its session
	Explicit doc.Numbers                       // the client named the numbers itself; zero: it didn't
	Served   bool                              // Explicit are those of a revision as it was served, and not those of an answer
	Thread   bool                              // Explicit are those of a thread of work, which waits for its writes in flight
	OfAnswer bool                              // an answer named Explicit, and something else than was sent is stored there
	Spent    bool                              // the session has written from Explicit before

	Repeat Repeat
	Doubt  *doc.Numbers // the same was sent with the base of these numbers, with an unknown result; nil: it wasn't
}

// Repeat says how likely it is that a write was sent before, and acknowledged.
type Repeat uint8

// How likely a repeat is.
const (
	NoRepeat      Repeat = iota
	SameSent             // the session sent the same bytes, but who sent them may be another client
	UnheardRepeat        // and its client left before it had the answer
	AwaitedRepeat        // and this write has waited for it
)

// Action is what is done for a write that needs a base.
type Action uint8

// The actions.
const (
	TakeNothing  Action = iota // nothing is known
	TakeRead                   // one outstanding read
	TakeView                   // what the session wrote last
	TakeSent                   // what is sent: it was acknowledged before, and nothing of it may count again
	TakeExplicit               // the numbers that the client named, of which the session knows nothing
	TakePast                   // one of the history
	RankAll                    // the likeliest of all that the session has seen
	WaitForBase                // one that is in flight
)

// Decision is what Choose decides.
type Decision struct {
	Action    Action
	Read      int  // TakeRead: which. RankAll: how many, from the oldest on
	Ambiguous bool // another base would do, too
	Doubtful  bool // the base is that of a write of the same bytes with an unknown result
}

// Choose decides on a write's base. It is pure: its caller carries out the decision.
func Choose(k *Input, r *Request) Decision {
	if r.Explicit.Known() {
		return chooseExplicit(k, r)
	}
	return chooseFromSession(k, r)
}

// candidates are the outstanding reads that were made before the write came. If there are none, and none is reserved for an earlier write,
// the session's own view is the candidate. Reads that are reserved for later writes don't count: else this write would wait for
// as long as other clients go on.
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
		reads = k.Reads // made while the write waited, and better than nothing
	}
	return reads, v
}

// isSeenAfter reports whether the view is a document, and whoever looked for it before found none. Those clients delete nothing.
func (v *View) isSeenAfter(reads []Read) bool {
	found := func(r Read) bool { return r.Numbers.Known() || v != nil && r.Order > v.Order }
	return v != nil && !v.Absent && !slices.ContainsFunc(reads, found)
}

// chooseFromSession decides for a write that names nothing.
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
		// The view is another client's by now, and would have the repeat undo what others wrote since. But it may be no repeat. If nothing
		// shows that there are others, it is none: a client that is alone often sets a document back to what it was.
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

// maybeNew reports whether the write may make the document anew: it is a whole document, and the session has deleted the document since the
// outstanding reads.
func (k *Input) maybeNew(r *Request) bool {
	return k.View != nil && k.View.Absent && k.View.Order > k.Reads[len(k.Reads)-1].Order && !r.Named && r.Sent != nil && !r.Part
}

// chooseExplicit decides for a write whose client names the numbers itself. If they are outstanding, the write takes that read, though the
// client may have the numbers from an answer, and something else in hand.
func chooseExplicit(k *Input, r *Request) Decision {
	read := find(k.Reads, r.Explicit)
	var v *View
	if read < 0 && k.View.named(r) && (!r.Thread || !k.InFlight) { // what is in flight may have been made from the same revision
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

// MayBeOfAnswer reports whether the client may have the numbers that it names from an answer, which something else was sent for.
func (r *Request) MayBeOfAnswer() bool { return r.OfAnswer && !r.Served }

// inDoubt decides for a write that was sent before, with an unknown result: it has the same base, and isn't merged.
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

// is reports whether the view is what is sent, or has the part that is.
func (v *View) is(r *Request) bool { return v != nil && r.Sends(v.Sent) }

// Sends reports whether a document is what is sent, or has the part that is.
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
	case v.Differs && v.Sent != nil && v.Numbers == r.Explicit: // they are of what is stored, which was perhaps read elsewhere
		return false
	}
	// Otherwise they may be those that somebody else of the session has read.
	return v.Numbers == r.Explicit && v.Stored || r.Named && !r.Served
}

// find returns the index of the reads of a revision, or -1.
func find(reads []Read, n doc.Numbers) int {
	return slices.IndexFunc(reads, func(r Read) bool { return r.Numbers == n })
}

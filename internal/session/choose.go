package session

import (
	"bytes"
	"slices"

	"optimist/internal/doc"
)

// known is what a session knows of a document at the moment at which a write chooses its base.
type known struct {
	reads         []read // outstanding, oldest first
	view          *view  // what the session wrote last; nil: nothing, or it is reserved
	past          bool   // there is a history, in which the base may be, too
	inFlight      int    // writes whose base is reserved
	readsInFlight int    // of them, those that have reserved a read
	othersWait    bool   // writes that came earlier wait for a base
}

// request is what a write says about its base.
type request struct {
	sent     []byte                            // nil: a delete
	on       func(base []byte) ([]byte, error) // what a part makes of a document; nil: sent is the whole document
	before   uint64                            // reads with a later place were made while the write waited: it wasn't made from them
	named    bool                              // the client named its session
	given    doc.Numbers                       // the client named the numbers itself; zero: it didn't
	served   bool                              // given are those of a revision as it was served, and not those of an answer
	thread   bool                              // given are those of a thread of work, which waits for its writes in flight
	ofAnswer bool                              // an answer named given, and something else than was sent is stored there
	spent    bool                              // the session has written from given before

	repeat repeat
	doubt  *doc.Numbers // the same was sent with the base of these numbers, and nobody knows what became of it; nil: it wasn't
}

// repeat says how likely it is that a write was sent before, and acknowledged.
type repeat uint8

const (
	noRepeat      repeat = iota
	sameSent             // the session sent the same bytes, but who sent them may be another client
	unheardRepeat        // and its client left before it had the answer
	awaitedRepeat        // and this write has waited for it
)

// action is what is done for a write that needs a base.
type action uint8

const (
	takeNothing action = iota // nothing is known
	takeRead                  // one outstanding read
	takeView                  // what the session wrote last
	takeSent                  // what is sent: it was acknowledged before, and nothing of it may count again
	takeGiven                 // the numbers that the client named, of which the session knows nothing
	takePast                  // one of the history
	rankAll                   // the likeliest of all that the session has seen
	waitForBase               // one that is in flight
)

// decision is what choose decides.
type decision struct {
	action    action
	read      int  // takeRead: which. rankAll: how many, from the oldest on
	ambiguous bool // another base would do, too
	doubtful  bool // the base is that of a write of the same bytes of which nobody knows what became
}

// choose decides what a write has as its base. It is pure: whoever asks does what is decided.
func choose(k known, r request) decision {
	if r.given.Known() {
		return chooseGiven(k, r)
	}
	return chooseSeen(k, r)
}

// candidates are the outstanding reads, or, where none is outstanding, neither free nor reserved, the own view.
func (k *known) candidates(r request) (reads []read, v *view) {
	reads = k.reads
	if i := slices.IndexFunc(reads, func(o read) bool { return o.order > r.before }); i >= 0 {
		reads = reads[:i]
	}
	if len(reads) == 0 && k.readsInFlight == 0 {
		v = k.view
	}
	if len(reads) == 0 && v == nil && k.inFlight == 0 {
		reads = k.reads // made while the write waited, and better than nothing
	}
	return reads, v
}

// chooseSeen decides for a write that names nothing.
func chooseSeen(k known, r request) decision {
	reads, v := k.candidates(r)
	d, doubt := k.inDoubt(r)
	switch {
	case r.repeat >= unheardRepeat && !v.is(&r):
		return decision{action: takeSent, ambiguous: r.repeat == unheardRepeat && len(reads) > 0}
	case doubt:
		return d
	case len(reads) == 1 && !k.past:
		return decision{action: takeRead}
	case len(reads) > 0:
		return decision{action: rankAll, read: len(reads)}
	case k.othersWait:
		return decision{action: waitForBase}
	case v != nil && r.repeat == sameSent && !v.is(&r):
		return decision{action: takeSent} // the view is another client's by now, and would have the repeat undo what others wrote since
	case v != nil && k.past:
		return decision{action: rankAll}
	case v != nil:
		return decision{action: takeView}
	case k.inFlight > 0:
		return decision{action: waitForBase}
	default:
		return decision{action: takeNothing}
	}
}

// chooseGiven decides for a write whose client names the numbers itself.
func chooseGiven(k known, r request) decision {
	read := -1
	if r.served || !r.ofAnswer {
		read = find(k.reads, r.given)
	}
	var v *view
	if read < 0 && k.view.named(r) && (!r.thread || k.inFlight == 0) { // what is in flight may have been made from the same revision
		v = k.view
	}
	d, doubt := k.inDoubt(r)
	switch {
	case r.repeat >= unheardRepeat && !v.is(&r):
		return decision{action: takeSent}
	case doubt:
		return d
	case read >= 0:
		return decision{action: takeRead, read: read} // even if an answer named its numbers, too: who has read it means what it read
	case r.thread && k.othersWait:
		return decision{action: waitForBase}
	case v != nil:
		return decision{action: takeView}
	case r.thread && k.inFlight > 0:
		return decision{action: waitForBase}
	default:
		return decision{action: takeGiven}
	}
}

// inDoubt decides for a write that was sent before and of which nobody knows what became: it has the same base, and isn't merged.
func (k *known) inDoubt(r request) (d decision, ok bool) {
	if r.doubt == nil {
		return d, false
	}
	if i := find(k.reads, *r.doubt); i >= 0 && k.reads[i].doubt {
		return decision{action: takeRead, read: i, ambiguous: len(k.reads) > 1, doubtful: true}, true
	}
	if v := k.view; v != nil && v.doubt && v.numbers == *r.doubt {
		return decision{action: takeView, ambiguous: len(k.reads) > 0, doubtful: true}, true
	}
	return d, false
}

// is reports whether the view is what is sent, or has the part that is.
func (v *view) is(r *request) bool {
	if v == nil {
		return false
	}
	seen := v.sentBody.bytes()
	if r.on == nil {
		return bytes.Equal(seen, r.sent)
	}
	made, err := r.on(seen)
	return seen != nil && err == nil && bytes.Equal(seen, made)
}

// named reports whether the numbers that a write names stand for the view.
func (v *view) named(r request) bool {
	if v == nil || v.absent {
		return false
	}
	answer := v.numbers // those under which something else is stored than was sent stand for what is stored: only a reader knows them
	if v.answer.Known() {
		answer = v.answer
	}
	// A client of a named session that gave up waiting sends its request again as it was.
	again := r.spent && r.sent != nil && v.is(&r)
	if answer != r.given && !again {
		return false
	}
	// Otherwise they may be those that somebody else of the session has read.
	return v.numbers == r.given && v.sentBody == v.storedBody || r.named && !r.served
}

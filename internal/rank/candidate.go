package rank

import (
	"math"
	"slices"

	"optimist/internal/doc"
)

// Candidate is a revision from which a client may have made its change. A client has a revision in hand as long as it may still write from
// it.
type Candidate struct {
	doc.Revision         // Source is the document that the client has seen; nil: not known. Without numbers there was no document
	Gone         bool    // the document was deleted; all other candidates are older
	Digest       *Digest // of Source; nil: it hasn't been made yet
	Spent        bool    // no client has it in hand any more, as far as is known
	Elsewhere    bool    // the write's trace has reads, and this candidate is none of them
	Foreign      bool    // only other programs have read this candidate, and the write's program has another read in hand
	Changes      int     // how many clients' changes the write of this revision had; 0: not known, or one
	View         bool    // a client sent it, and another document was stored: it doesn't show other clients' changes
}

// Prices of what is unlikely, in the unit of the weights of a digest.
const (
	// spent is the price of a candidate that no client has in hand any more, as far as is known. A view that a client has sent may
	// cost less: see priceOfMemory.
	spent = 12
	// spentSave is the price of saving such a candidate unchanged. A document with few states often returns to an earlier state. The price
	// is below narrow, so that the outcome is ambiguous: the write may have saved that candidate.
	spentSave = 19
	// elsewhere is the price of a candidate that was read in another trace. It is more than all content weighs.
	elsewhere = 1 << 40
	// quietSave is the price of saving a candidate unchanged that isn't the newest, if little shows that several clients are at work. It is
	// likelier that one client sets a few values back.
	quietSave = 48
	// foreign is the price of a candidate that only other programs have in hand.
	foreign = 16
	// lone is how much has to show that one client is alone, in bits, before content that it takes back costs no more than other content.
	lone = 4
	// idle is the price of a save that changes nothing. It is likelier that two clients set the same few flags or numbers.
	idle = 3
	// wide is the least difference in price between the best candidate and the second, for a change to count as a habit of clients.
	wide = 8
	// narrow is the least difference in price between the best candidate and the second, for the outcome not to be ambiguous.
	narrow = 28
)

// verdict is what the client would have done to a candidate.
type verdict struct {
	unknown  bool    // the content of the candidate isn't known
	far      bool    // the candidate needs too many changes: it isn't compared to its end
	absent   bool    // there was no document
	first    bool    // there was none before, either
	work     int     // how many values are digested, or compared with the newer candidate
	changes  uint64  // a hash of the changes that the client would have made
	price    int     // how unlikely the changes are
	removals int     // the part of price for content that the client would have taken out
	idle     int     // the part of price for numbers that the client would have left alone, although all other clients move them
	odd      int     // the most that a number costs that the client would have moved by another step than is usual
	edits    int     // how many changes there are
	times    int     // how many of the changes set a time
	from, to int     // where the changes are in weighing.changes
	mixes    bool    // see findMixes
	restated int     // the price of the values of a plain part that the client would have sent unchanged
	replaced int     // the weight of the values that the client would have replaced by others
	moved    float64 // the sum of how far numbers were moved
}

// saves reports whether the client would have saved the candidate unchanged, apart from times.
func (v *verdict) saves() bool { return !v.unknown && !v.far && v.edits == v.times }

// isElsewhere reports whether the price has elsewhere in it: the candidate was read in another trace.
func (v *verdict) isElsewhere() bool { return v.price >= elsewhere }

func (v *verdict) likelier(o *verdict) bool {
	switch {
	case v.isElsewhere() != o.isElsewhere():
		return !v.isElsewhere()
	case v.far || o.far:
		return !v.far
	case v.unknown || o.unknown:
		return !v.unknown
	case v.price != o.price:
		return v.price < o.price
	case v.edits != o.edits:
		return v.edits < o.edits
	}
	return v.moved < o.moved
}

func likeliest(verdicts []verdict) (best int) {
	for i := range verdicts {
		if verdicts[i].likelier(&verdicts[best]) {
			best = i
		}
	}
	return best
}

// isUnlikely reports whether a candidate is unlikely in itself: no client has it in hand, or it costs as much as if none had.
func isUnlikely(c *Candidate, v *verdict) bool { return c.Spent || v.price >= spent }

// certain reports whether the client's changes are certain: the client would have made the same changes to all candidates that are nearly
// as likely as the best one.
func certain(cs []Candidate, verdicts []verdict, best int) bool {
	b := &verdicts[best]
	if b.unknown || isUnlikely(&cs[best], b) {
		return false
	}
	for i := range verdicts {
		v := &verdicts[i]
		if i != best && !v.far && !v.unknown && v.price < b.price+wide && v.changes != b.changes {
			return false
		}
	}
	return true
}

// ambiguous reports whether the base may be another candidate than the best one, with other changes.
func ambiguous(cs []Candidate, verdicts []verdict, best int) bool {
	b := &verdicts[best]
	unlikely := isUnlikely(&cs[best], b)
	for i := range verdicts {
		v := &verdicts[i]
		if i != best && !v.far && (unlikely || v.unknown || v.price < b.price+narrow && v.changes != b.changes) {
			return true
		}
	}
	return false
}

// chargeUnheld adds the prices of candidates that clients of the write's program don't have in hand. memory is the price of a view that a
// client has sent.
func chargeUnheld(cs []Candidate, verdicts []verdict, memory int) {
	n := newestInHand(cs)
	for i := range cs {
		v, c := &verdicts[i], &cs[i]
		if c.Foreign {
			v.price += foreign
		}
		switch {
		case c.View && v.saves() && n >= 0 && cs[n].SeqNo >= c.SeqNo:
			v.price += spent + quietSave
		case c.Spent && v.saves():
			v.price += spentSave
		case c.Spent && c.View:
			v.price += memory
		case c.Spent:
			v.price += spent
		}
	}
}

// newestInHand returns the newest candidate that a client has in hand; -1: there is none.
func newestInHand(cs []Candidate) int {
	for i := len(cs) - 1; i >= 0; i-- {
		if !cs[i].Spent {
			return i
		}
	}
	return -1
}

// judgeOlder judges the candidates that are older than the newest one in a client's hand, if little shows that several clients are at work.
// The more shows that one client is alone, the likelier this client has changed the newest candidate, and has only looked at the older
// ones. It isn't so if the client would have saved the newest one unchanged: then two clients may have counted alike.
func judgeOlder(cs []Candidate, verdicts []verdict, alone int) {
	n := newestInHand(cs)
	if n < 0 || verdicts[n].absent {
		return
	}
	for i := range cs {
		switch v := &verdicts[i]; {
		case i == n || cs[i].SeqNo > cs[n].SeqNo:
		case v.saves() || v.mixes:
			v.price += quietSave
		case !verdicts[n].saves():
			v.price += alone
		}
	}
}

// leanOf returns how much likelier the changes are if several clients are at work than if one is alone, as a power of two. A client that is
// alone has changed the newest candidate in hand. One of several clients has changed any candidate in hand. leanOf is 0 if only one
// candidate is in hand.
func leanOf(cs []Candidate, verdicts []verdict) int {
	n := newestInHand(cs)
	if n < 0 || verdicts[n].unknown || verdicts[n].absent || verdicts[n].saves() {
		return 0
	}
	if verdicts[n].far {
		return maxLean
	}
	inHand, sum := 0, 0.0
	for i := range cs[:n+1] {
		v := &verdicts[i]
		if cs[i].Spent || v.unknown {
			continue
		}
		switch inHand++; {
		case v.changes == verdicts[n].changes: // the changes don't tell which of the two the client has seen
			sum++
		case !v.far && !v.saves() && !v.mixes: // clients that are alone set values back, too
			sum += math.Exp2(float64(min(verdicts[n].price-v.price, 64)))
		}
	}
	return max(-maxLean, min(int(math.Round(Bit*math.Log2(sum/float64(inHand)))), maxLean))
}

// Bit is one bit, in the unit of Choice.Lean.
const Bit = 4

// maxLean bounds how much one choice says.
const maxLean = 16 * Bit

// judgeGone is for a document that was deleted. A client that makes it anew sends little of its former content. A client that saves an
// earlier read leaves most of the content alone. If optimist doesn't know what clients have read, it takes no client for one that makes the
// document anew.
func judgeGone(cs []Candidate, verdicts []verdict) {
	gone := slices.IndexFunc(cs, func(c Candidate) bool { return c.Gone })
	if gone < 0 {
		return
	}
	unknown := false
	for i := range cs[:gone] {
		verdicts[i].price += verdicts[i].replaced
		unknown = unknown || verdicts[i].unknown && !cs[i].Spent
	}
	for i := gone; i < len(cs); i++ {
		verdicts[i].unknown = unknown && cs[i].Spent
	}
}

// judgeSaves is for a sent document that is the same as a candidate: the client may have saved that candidate unchanged.
func judgeSaves(verdicts []verdict) {
	for i := range verdicts {
		if v := &verdicts[i]; v.saves() {
			v.price += idle
		}
	}
}

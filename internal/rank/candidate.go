package rank

import "optimist/internal/doc"

// Candidate is what a client may have made its change from.
type Candidate struct {
	doc.Revision         // Source is what the client has seen; nil: not known. Without numbers there was no document
	Digest       *Digest // of Source; nil: it hasn't been made yet
	Spent        bool    // no client has it in hand any more, as far as is known
	Elsewhere    bool    // the write is in a trace with reads of its own, and this isn't one of them
	Changes      int     // how many clients' changes the write of this revision held; 0: not known, or one
	View         bool    // one client sent it, and something else was stored: it doesn't show what others did
}

// Prices of what is unlikely, in the unit of the weights of a digest.
const (
	// spent is the price of a candidate that no client has in hand any more, as far as is known.
	spent = 12
	// spentSave is the price of saving such a candidate unchanged. A document with few states often returns to an earlier state. The price
	// is below narrow, so that the outcome is ambiguous: the write may have saved that candidate.
	spentSave = narrow - 1
	// elsewhere is the price of a candidate that was read in another trace. It is more than all content weighs.
	elsewhere = 1 << 40
	// quietSave is the price of saving unchanged what isn't the newest, where nothing shows that several clients are at work. It is likelier
	// that one client sets a few values back to what they were.
	quietSave = 48
	// loneChange is the price of changing what isn't the newest, where one client seems to be alone. It is likelier that the client has
	// changed the newest, and that somebody else has only looked at the older one.
	loneChange = 10
	// behind is the least difference in price between the newest candidate and the best one for content to show that another client has
	// written the newest.
	behind = 14
	// idle is the price of a save that changes nothing. It is likelier that two clients set the same few flags or numbers.
	idle = 3
	// distant is the price of a change that makes exactly a stored document, if others wrote between the candidate and that document.
	distant = 3
	// doubtful is the least difference in price between the best candidate and the second, for a change to count as a habit of clients.
	doubtful = 8
	// narrow is the least difference in price between the best candidate and the second, for the outcome not to be ambiguous.
	narrow = 20
)

// verdict is what the client would have done to a candidate.
type verdict struct {
	unknown  bool    // the content of the candidate isn't known
	far      bool    // the candidate needs too many changes, and isn't compared any further
	absent   bool    // there was no document
	changes  uint64  // a hash of the changes: two candidates from which the client made the same changes have the same
	price    int     // how unlikely the changes are
	removals int     // the part of price for what the client would have taken out
	keys     int     // the part of price for keys that others have put in
	idle     int     // the part of price for numbers that the client would have left alone, though all others move them
	edits    int     // how many changes there are
	from, to int     // where they are in weighing.changes
	restated int     // what it costs to have sent values of a plain part as they were
	moved    float64 // the sum of how far numbers were moved
}

func (v *verdict) saves() bool { return !v.unknown && !v.far && v.edits == 0 }

// isElsewhere reports whether the candidate is charged for being of another piece of work.
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

// certain reports whether the client's changes are beyond doubt: all candidates that are nearly as likely as the best one have the same
// changes.
func certain(verdicts []verdict, best int) bool {
	b := &verdicts[best]
	if b.unknown || b.price >= spent {
		return false
	}
	for i := range verdicts {
		v := &verdicts[i]
		if i != best && !v.far && !v.unknown && v.price < b.price+doubtful && v.changes != b.changes {
			return false
		}
	}
	return true
}

// inDoubt reports whether the base may be another candidate than the best one, with other changes.
func inDoubt(verdicts []verdict, best int) bool {
	b := &verdicts[best]
	for i := range verdicts {
		v := &verdicts[i]
		if i != best && !v.far && (v.unknown || b.price >= spent || v.price < b.price+narrow && v.changes != b.changes) {
			return true
		}
	}
	return false
}

// newestInHand returns the newest candidate that somebody has in hand; -1: there is none.
func newestInHand(cs []Candidate) int {
	for i := len(cs) - 1; i >= 0; i-- {
		if !cs[i].Spent {
			return i
		}
	}
	return -1
}

// judgeOlder judges the candidates that are older than the newest one in somebody's hand, where nothing shows that several clients are at
// work. Changes of them cost something only if a client seems to be alone, and wouldn't have saved the newest unchanged: two clients may
// have counted alike.
func judgeOlder(cs []Candidate, verdicts []verdict, alone bool) {
	n := newestInHand(cs)
	for i := range cs[:max(n, 0)] {
		switch v := &verdicts[i]; {
		case cs[i].Version == cs[n].Version:
		case v.saves():
			v.price += quietSave
		case alone && !verdicts[n].saves():
			v.price += loneChange
		}
	}
}

// isBehind reports whether content shows that the i-th candidate is the base, although somebody has a newer one in hand.
func isBehind(cs []Candidate, verdicts []verdict, i int) bool {
	n := newestInHand(cs)
	if n < 0 || cs[i].Spent || cs[i].Version >= cs[n].Version {
		return false
	}
	v, newest := &verdicts[i], &verdicts[n]
	return !v.unknown && !v.far && !newest.unknown && (newest.far || newest.price >= v.price+behind)
}

// judgeSaves is for a sent document that is the same as a candidate. Either the client saved that candidate unchanged, or it changed an
// older candidate and arrived at the same document.
//
// If no other write lies between the two, a change is likely: both clients counted from 4 to 5, for example. If other writes lie between,
// an unchanged save is likely. If optimist took that for a change of the older candidate, it would make the others' changes once more.
func judgeSaves(cs []Candidate, verdicts []verdict) {
	saved := -1
	for i := range verdicts {
		if v := &verdicts[i]; v.saves() && !cs[i].Spent && (saved < 0 || v.price < verdicts[saved].price) {
			saved = i
		}
	}
	if saved < 0 {
		return
	}
	until := int64(0) // the last of the versions in a row, from the candidate on, that have the same changes
	for i := len(cs) - 1; i >= 0; i-- {
		v := &verdicts[i]
		if i == len(cs)-1 || v.changes != verdicts[i+1].changes || cs[i+1].Version != cs[i].Version+1 {
			until = cs[i].Version
		}
		switch {
		case v.saves():
			v.price += idle
		case cs[i].Version != 0 && cs[saved].Version > until+1:
			v.price += distant
		}
	}
}

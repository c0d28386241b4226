package rank

import "optimist/internal/doc"

// Candidate is what a client may have made its change from.
type Candidate struct {
	doc.Revision         // Source is what the client has seen; nil: it isn't known. Without numbers there was no document
	Digest       *Digest // of Source; nil: it hasn't been made yet
	Spent        bool    // no client has it in hand any more, as far as is known
	Elsewhere    bool    // other reads are known to be of the same piece of work as the write
	View         bool    // one client sent it, and something else was stored: it doesn't show what others did
}

// Prices of what is unlikely, in the unit of the weights of a digest.
const (
	// spent is the price of a candidate that no client has in hand any more, as far as is known.
	spent = 12
	// spentSave is the price of saving such a candidate unchanged. A document of few states often comes back to one that it had. It is
	// below narrow, so that the outcome says that it may be one.
	spentSave = narrow - 1
	// elsewhere is the price of a candidate of another piece of work: more than content can weigh, as long as traces tell.
	elsewhere = 1 << 40
	// idle is the price of a save that changes nothing. To set a few flags or numbers as somebody else did is likelier.
	idle = 3
	// distant is the price of making just what was stored, where others wrote in between.
	distant = 3
	// doubtful is by how much it has to be dearer for the choice to show a habit.
	doubtful = 8
	// narrow is by how much the second candidate has to be dearer for the choice to be beyond doubt.
	narrow = 20
)

// verdict is what the client would have done to a candidate.
type verdict struct {
	unknown  bool   // the content of the candidate isn't known
	far      bool   // it isn't looked at any further
	absent   bool   // there was no document
	changes  uint64 // what they have in common that are of the same changes
	price    int    // of what is unlikely
	removals int    // of it, for what the client would have taken out
	keys     int    // of it, for keys that others have put in
	edits    int
	from, to int     // of the changes
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

// certain reports whether no other candidate is nearly as likely as the best one, of those that would make a difference.
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

// inDoubt reports whether another candidate than the best one may be the base, and would make a difference.
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

// judgeSaves judges the candidates that the client would have saved unchanged, and those from which a change leads to the same document.
// If no other write lies between, a client may well arrive at another client's document, by a count for example. If more lie between,
// taking an unchanged save for a change would repeat all changes of others since.
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
	until := int64(0) // the last version in a row that says the same as the candidate
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

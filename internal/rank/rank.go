// Package rank finds, among several revisions, the one from which a client most likely made its document.
//
// It guesses: it sees bytes, but not which client has read them.
package rank

import (
	"slices"

	"optimist/rewrite/tree"
)

// Sent is what a client sent.
type Sent struct {
	Body []byte // the document, or a part of it; nil is a delete
	Part bool   // Body is a part of the document
	// Marks is the name of the member with optimist's own marks: a client that leaves it out hasn't taken it out. Empty: there is none.
	Marks string
	// Patterns are the habits of the clients. Nil: they aren't known.
	Patterns *Patterns
	// Quiet says that little shows that several clients work on the document.
	Quiet bool
	// Alone is how much content has shown that one client is alone, in bits.
	Alone int
	// Sums says that the rule adds numbers of the document up. Then a wrong base, from which a number was moved too far, does harm.
	Sums bool
	// Keys are the names of members by which the rule tells entries of lists apart.
	Keys Keys
	// Misled says that earlier choices have shown that traces mislead. Candidate.Elsewhere then has no price.
	Misled bool
}

// Choice is the likeliest candidate.
type Choice struct {
	Best      int
	Ambiguous bool   // the base may be another candidate, from which the client made other changes
	Lean      int    // how much the content shows that several clients work on the document, in the unit Bit. Below 0: that one is alone
	Certain   bool   // the client's changes are certain, also without its habits
	Pattern   uint64 // the pattern of the client's changes, if they are certain
	Part      Part   // whether the part holds only what its client changes, as far as this choice shows it
	Memory    Memory // whether the client wrote from memory, as far as this choice shows it
	Traces    Trace  // whether traces tell pieces of work apart, as far as this choice shows it
	Repeats   uint64 // a kind of lists in which names identify nothing, as the sent document shows; 0: it shows none
	Named     uint64 // such a kind of the patterns, in which names tell all entries of the sent document apart after all; 0: there is none
}

// Likeliest returns the likeliest candidate. The candidates come oldest first.
// It makes the digests that candidates don't have yet. Calls with different candidates may run at the same time.
//
// A client that changes a document leaves other clients' content alone. So the base is the candidate from which the client would have
// removed, or written once more, the least of that content: see evidence.go. If candidates are equal, the one with the fewest edits wins,
// then the one from which numbers were moved the least, then the oldest. A candidate with unknown content comes last. The base
// of a delete, and of a body that isn't a JSON object, is the oldest candidate: see oldestHeld.
func Likeliest(cs []Candidate, sent Sent) Choice {
	mine := digesters.Get().(*digester)
	defer mine.release()
	if sent.Body == nil || !mine.read(sent.Body, naming{sent.Keys, sent.Patterns.repeatedNames()}) {
		return Choice{Best: oldestHeld(cs, sent.Body == nil), Ambiguous: len(cs) > 1}
	}
	w := weighings.Get().(*weighing)
	defer w.release()
	w.sums, w.lone, w.marks = sent.Sums, sent.Alone >= lone, 0
	if sent.Marks != "" {
		w.marks = spot{}.in(tree.HashString(sent.Marks)).place
	}
	verdicts := w.weigh(cs, mine, sent.Part)
	w.findMixes(newestInHand(cs))
	judgeGone(cs, verdicts)
	memory := memoryOf(cs, verdicts)
	chargeUnheld(cs, verdicts, sent.Patterns.priceOfMemory())
	byContent := likeliest(verdicts)
	c := Choice{
		Traces: traceOf(cs, verdicts, byContent), Part: w.partOf(cs), Lean: leanOf(cs, verdicts), Memory: memory, Repeats: mine.repeats,
		Named: mine.named,
	}
	if sent.Patterns.partsAreChanges() && c.Part != PartRestates {
		w.chargeRestated()
	}
	if !sent.Misled {
		chargeElsewhere(cs, verdicts)
	}
	if sent.Quiet {
		judgeOlder(cs, verdicts, sent.Alone)
	}
	judgeSaves(verdicts)
	c.Best = likeliest(verdicts)
	if c.Certain = certain(cs, verdicts, c.Best); c.Certain {
		c.Pattern = w.patternOf(cs, c.Best)
	}
	w.judgePatterns(cs, sent.Patterns, c.Best)
	c.Best = likeliest(verdicts)
	against := verdicts[c.Best].far || verdicts[byContent].changes != verdicts[c.Best].changes
	c.Ambiguous = against || ambiguous(cs, verdicts, c.Best)
	return c
}

// oldestHeld returns the oldest candidate that a client has in hand: as a guard, it overlooks no change of another client. A client that
// deletes has seen a document, so a candidate without a document doesn't count: it would guard nothing.
func oldestHeld(cs []Candidate, deletes bool) int {
	best := -1
	if deletes {
		best = slices.IndexFunc(cs, func(c Candidate) bool { return !c.Spent && c.Known() })
	}
	if best < 0 {
		best = slices.IndexFunc(cs, func(c Candidate) bool { return !c.Spent })
	}
	return max(0, best)
}

// Package rank finds the revision from which a client most likely made its document, of several.
//
// It guesses: it sees bytes, but not which client has read them.
package rank

import (
	"slices"
)

// Sent is what a client sent.
type Sent struct {
	Body []byte // the document, or a part of it; nil is a delete
	// On returns what a part makes of a document, which is nil where there is none. A nil On says that Body is the whole document.
	On func(base []byte) ([]byte, error)
	// Patterns are the habits of the clients. Nil: they aren't known.
	Patterns *Patterns
	// Misled says that traces don't tell: to be Elsewhere costs a candidate nothing.
	Misled bool
}

// Choice is the likeliest candidate.
type Choice struct {
	Best      int
	Ambiguous bool   // another one may be it as well, and would make a difference
	Certain   bool   // what the client has changed is beyond doubt, whatever its habits are
	Pattern   uint64 // of what the client has changed, if that is certain
	Traces    Trace  // what the choice shows of traces
}

// Likeliest returns the likeliest candidate. The candidates come oldest first.
// Likeliest fills in the digests that are missing. Different calls may run at the same time, but not with the same candidates.
//
// A client that changes a document leaves other clients' content alone. So the base is the candidate from which the client would have
// removed, or written once more, the least of that content: see evidence.go. If candidates are equal, the one with the fewest edits wins,
// then the one from which numbers were moved the least, then the oldest. A candidate with unknown content comes last. A delete, and a
// body that isn't a JSON object, have the oldest as their base: the guard of the oldest overlooks the least.
func Likeliest(cs []Candidate, sent Sent) Choice {
	mine := digesters.Get().(*digester)
	defer mine.release()
	if sent.Body == nil || !mine.read(sent.Body) {
		return Choice{Best: max(0, slices.IndexFunc(cs, func(c Candidate) bool { return !c.Spent })), Ambiguous: len(cs) > 1}
	}
	w := weighings.Get().(*weighing)
	defer w.release()
	verdicts := w.weigh(cs, &mine.Digest, sent.On != nil)
	byContent := likeliest(verdicts)
	c := Choice{Traces: traceOf(cs, verdicts, byContent)}
	if !sent.Misled {
		chargeElsewhere(cs, verdicts)
	}
	judgeSaves(cs, verdicts)
	c.Best = likeliest(verdicts)
	if c.Certain = certain(verdicts, c.Best); c.Certain {
		c.Pattern = w.patternOf(cs, c.Best)
	}
	w.judgePatterns(cs, sent.Patterns, c.Best)
	c.Best = likeliest(verdicts)
	against := cs[byContent].Elsewhere && (verdicts[c.Best].far || verdicts[byContent].changes != verdicts[c.Best].changes)
	c.Ambiguous = against || inDoubt(verdicts, c.Best)
	return c
}

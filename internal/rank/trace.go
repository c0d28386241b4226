package rank

// Trace says whether a write's trace names its base, as far as the write's content shows that.
type Trace uint8

// What content shows of traces.
const (
	TraceUnknown  Trace = iota
	TraceTells          // the base is certain, and was read in the write's trace
	TraceMisleads       // the base is certain, and was read in another trace, although the write's trace has a read
)

// traceMargin is the least difference in price between the reads of the write's trace and the best candidate, for TraceMisleads. With a
// smaller margin, documents whose changes look alike would make good traces look bad.
const traceMargin = 14

// traceOf returns what the content shows of traces. best is the choice by content alone. traceOf is TraceUnknown if a read of the write's
// trace has the same changes as best, or is nearly as likely.
func traceOf(cs []Candidate, verdicts []verdict, best int) Trace {
	if verdicts[best].saves() || !certain(cs, verdicts, best) {
		return TraceUnknown
	}
	inTrace, others := false, false
	for i := range cs {
		same := verdicts[i].changes == verdicts[best].changes
		switch {
		case cs[i].Elsewhere:
			others = true
		case cs[best].Elsewhere && (same || verdicts[i].price < verdicts[best].price+traceMargin):
			return TraceUnknown
		default:
			inTrace = true
		}
	}
	switch {
	case !inTrace || !others:
		return TraceUnknown
	case cs[best].Elsewhere:
		return TraceMisleads
	}
	return TraceTells
}

func chargeElsewhere(cs []Candidate, verdicts []verdict) {
	for i := range cs {
		if cs[i].Elsewhere {
			verdicts[i].price += elsewhere
		}
	}
}

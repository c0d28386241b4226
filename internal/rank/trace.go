package rank

// Trace is what the content of a write shows of the trace that it is in.
type Trace uint8

// Verdicts of content on traces.
const (
	TraceUnknown  Trace = iota
	TraceTells          // the base is beyond doubt, and was read in the trace of the write
	TraceMisleads       // it was read elsewhere, and the trace of the write holds another read
)

// traceMargin is by how much the reads of the trace have to be dearer than one elsewhere for content to speak against the trace. With
// less, a document in which little tells changes apart speaks against traces that tell.
const traceMargin = 14

// traceOf is what the choice by content alone, best, shows. It shows nothing where the document of the trace would make no difference, or
// is nearly as likely.
func traceOf(cs []Candidate, verdicts []verdict, best int) Trace {
	if verdicts[best].saves() || !certain(verdicts, best) {
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

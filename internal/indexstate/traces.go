package indexstate

import "sync/atomic"

// maxTraced is up to how many writes are counted of which content shows what their traces say. Beyond, older ones count half.
const maxTraced = 128

// traces count the writes of an index whose content shows whether their trace tells their base. An application may open a form in one
// request and save it in the next one, which has another trace, and look in that request whether the document is still there. Then the
// trace holds a read that the write wasn't made from.
type traces struct {
	counts atomic.Uint64 // that told in the upper half, that misled in the lower one
}

// Traced notes a write of which content shows whether its trace tells its base.
func (ix *Index[W]) Traced(tells bool) {
	for {
		was := ix.traces.counts.Load()
		told, misled := was>>32, was&0xffffffff
		if tells {
			told++
		} else {
			misled++
		}
		if told+misled > maxTraced {
			told, misled = told/2, misled/2
		}
		if ix.traces.counts.CompareAndSwap(was, told<<32|misled) {
			return
		}
	}
}

// TracesTell reports whether the trace of a write tells its base, as far as is known: unless most speak against it. One may be chance.
func (ix *Index[W]) TracesTell() bool {
	v := ix.traces.counts.Load()
	told, misled := v>>32, v&0xffffffff
	return misled <= told+1
}

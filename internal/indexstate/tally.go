package indexstate

import "sync/atomic"

// maxTallied is how many votes are counted. Beyond, older ones count half.
const maxTallied = 128

// tally counts votes for and against something that writes of an index show. The zero tally has none.
type tally struct {
	counts atomic.Uint64 // the votes for it in the upper half, those against it in the lower one
}

func (t *tally) add(yes bool) {
	for {
		was := t.counts.Load()
		pro, con := was>>32, was&0xffffffff
		if yes {
			pro++
		} else {
			con++
		}
		if pro+con > maxTallied {
			pro, con = pro/2, con/2
		}
		if t.counts.CompareAndSwap(was, pro<<32|con) {
			return
		}
	}
}

func (t *tally) votes() (pro, con uint64) {
	v := t.counts.Load()
	return v >> 32, v & 0xffffffff
}

// Traced notes a write whose content shows whether its trace tells its base. An application may open a form in one request and save it in
// the next one, which has another trace, and look in that request whether the document is still there. Then the trace holds a read that the
// write wasn't made from.
func (ix *Index[W]) Traced(tells bool) { ix.traces.add(tells) }

// TracesTell reports whether the trace of a write tells its base: unless most traces speak against it. One may be chance.
func (ix *Index[W]) TracesTell() bool {
	telling, misleading := ix.traces.votes()
	return misleading <= telling+1
}

// PartSeen notes a part of a document. changes says that it may hold what its client changes and nothing else.
func (ix *Index[W]) PartSeen(changes bool) { ix.parts.add(changes) }

// PartsAreChanges reports whether parts hold what their clients change and nothing else, as far as is known. Nearly all have to show it,
// and more than a few.
func (ix *Index[W]) PartsAreChanges() bool {
	changing, restating := ix.parts.votes()
	return changing >= 8 && 16*restating <= changing
}

package indexstate

import "sync/atomic"

// maxTraced is up to how many writes are counted of which content shows what their traces say. Beyond, older ones count half.
const maxTraced = 128

// traces count the writes of an index whose content shows whether their trace tells their base. An application may open a form in one
// request and save it in the next one, which has another trace, and look in that request whether the document is still there. Then the
// trace holds a read that the write wasn't made from.
type traces struct {
	counts atomic.Uint64 // of the traces that tell in the upper half, of those that mislead in the lower one
}

func (t *traces) add(tells bool) {
	for {
		was := t.counts.Load()
		telling, misleading := was>>32, was&0xffffffff
		if tells {
			telling++
		} else {
			misleading++
		}
		if telling+misleading > maxTraced {
			telling, misleading = telling/2, misleading/2
		}
		if t.counts.CompareAndSwap(was, telling<<32|misleading) {
			return
		}
	}
}

// tell reports whether traces tell bases: unless most speak against it. One may be chance.
func (t *traces) tell() bool {
	v := t.counts.Load()
	telling, misleading := v>>32, v&0xffffffff
	return misleading <= telling+1
}

package watch

import (
	"cmp"
	"strings"
	"time"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/session"
)

// questions are those of one read to the engine.
type questions struct {
	asked map[string]bool // by name: asked again for the next document, the engine would say the same
	spent time.Duration   // how long their answers were waited for
	same  map[string]bool // by index: whether it is the one that it was, although the read shows something else
	// epochs are of the indices (by name) that the read has shown to be others than before: it is of the time after that. Of all other
	// indices it is of the time before it was sent.
	epochs map[string]session.Epoch
}

// patienceOfAll is how long a read waits for the answers to all of its questions. The last one may take a second more.
const patienceOfAll = time.Second

// waitFor asks one question, unless the read has waited too long already: a read of many indices must not wait for each of them if the
// engine is slow, or doesn't answer. All of the read's answer must be here, or nothing of the read be sent: while somebody waits for a
// connection to ask, the read must not hold another.
func (rd *Reading) waitFor(question func()) (asked bool) {
	q := &rd.questions
	if q.spent >= patienceOfAll {
		return false
	}
	rd.r.FreeUpstream()
	began := time.Now()
	question()
	q.spent += time.Since(began)
	return true
}

// isOfNow notes what the read shows of the index as of that epoch.
func (q *questions) isOfNow(index string, now session.Epoch) {
	if q.epochs == nil {
		q.epochs = make(map[string]session.Epoch)
	}
	q.epochs[index] = now
}

// settle has the engine asked what the index is, if that is suspected to be another one than before, or if nobody knows yet to which
// document the routing leads. The read itself needs that: what was read before it mustn't take it along, and it is no base of another
// document. It reports whether it has asked: the client may have left meanwhile.
func (rd *Reading) settle(d *Document) (asked bool) {
	return rd.askFor(d.Ref.Index, d.name, func() bool {
		_, maybe := rd.homes(d)
		return maybe != "" || rd.suspects(d.Ref.Index)
	})
}

// settleFirst is settle for a search of these names, before it is sent: while its hits come nobody may ask. What is suspected then is lost.
// Which indices a pattern finds isn't known before, and of a long list only the first names are settled.
func (rd *Reading) settleFirst(names string) {
	realm, n := rd.r.Client().Realm, 0
	for name := range strings.SplitSeq(names, ",") {
		if n++; n > settledFirst {
			return
		}
		if !api.OneIndex(name) {
			continue
		}
		index := name
		if ix, known := rd.w.Catalog.Cached(realm, name); known {
			index = ix.Name
		}
		rd.askFor(index, name, func() bool { return !rd.w.Catalog.Knows(realm, index) || rd.suspects(index) })
	}
}

// learn is what a name stands for. The engine is asked, as askFor does, if that isn't known.
func (rd *Reading) learn(name string) (ix catalog.Index, known bool) {
	cached := func() (catalog.Index, bool) { return rd.w.Catalog.Cached(rd.r.Client().Realm, name) }
	if ix, known = cached(); !known {
		rd.askFor(name, "", func() bool { return true })
		ix, known = cached()
	}
	return ix, known
}

// settledFirst is of how many names of a search the engine is asked at most.
const settledFirst = 8

// suspects reports whether other clients have found another index of the name, and the engine hasn't been asked about it since.
func (rd *Reading) suspects(index string) bool {
	_, open := rd.w.Sessions.Suspicion(rd.r.Client().Session.Credentials(), index)
	return open
}

// askFor asks what a name is, and the index, as long as something is open, each once for a read. It reports whether it asked.
func (rd *Reading) askFor(index, name string, open func() bool) (asked bool) {
	q := &rd.questions
	for _, next := range [...]string{cmp.Or(name, index), index} { // the name may be of several indices
		switch {
		case q.asked[next]:
			continue
		case !open() || !rd.waitFor(func() { _, _ = rd.w.Catalog.Learn(rd.r.Context(), rd.r.Asker(), next) }):
			return asked
		case q.asked == nil:
			q.asked = make(map[string]bool)
		}
		q.asked[next], asked = true, true
	}
	return asked
}

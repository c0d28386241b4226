package watch

import (
	"cmp"
	"strings"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/session"
)

// questions are those of one read to the engine.
type questions struct {
	patience catalog.Patience
	asked    map[string]bool // by name: asked again for the next document, the engine would say the same
	same     map[string]bool // by index: whether it is the one that it was, although the read shows something else
	// epochs are of the indices (by name) that the read has shown to be others than before: it is of the time after that. Of all other
	// indices it is of the time before it was sent.
	epochs map[string]session.Epoch
}

// asker is the read's client, for the catalog. All of the read's answer must be here before the engine is asked, or nothing of the read be
// sent: the read's connection is given back then.
func (rd *Reading) asker() catalog.Asker {
	a := rd.r.Asker()
	a.Patience = &rd.questions.patience
	a.Patience.Connection = rd.r.Exchange
	return a
}

// learn is what a name stands for. The engine is asked if that isn't known, within the read's patience.
func (rd *Reading) learn(name string) (ix catalog.Index, known bool) {
	ix, err := rd.w.Catalog.Learn(rd.r.Context(), rd.asker(), name)
	return ix, err == nil
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
// document. It may take long, and the client may leave meanwhile.
func (rd *Reading) settle(d *Document) {
	rd.learnWhile(d.Ref.Index, d.name, func() bool {
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
		rd.learnWhile(index, name, func() bool { return !rd.w.Catalog.Knows(realm, index) || rd.suspects(index) })
	}
}

// settledFirst is of how many names of a search the engine is asked at most.
const settledFirst = 8

// suspects reports whether other clients have found another index of the name, and the engine hasn't been asked about it since.
func (rd *Reading) suspects(index string) bool {
	_, open := rd.w.Sessions.Suspicion(rd.r.Client().Session.Credentials(), index)
	return open
}

// learnWhile learns what a name stands for, and the index, as long as something is open, each once for a read.
func (rd *Reading) learnWhile(index, name string, open func() bool) {
	q := &rd.questions
	for _, next := range [...]string{cmp.Or(name, index), index} { // the name may be of several indices
		if q.asked[next] || !open() {
			continue
		}
		if q.asked == nil {
			q.asked = make(map[string]bool)
		}
		q.asked[next] = true
		_, _ = rd.learn(next)
	}
}

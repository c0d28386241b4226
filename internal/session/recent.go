package session

import (
	"cmp"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/viewcache"
)

// maxCompared is the most revisions with which a write is compared after a start.
const maxCompared = 8

// isRecent reports whether the write was made from a revision that the session has seen since the start: see choice.Recent. A revision that
// the session saw while the write waited isn't the base, however much of it is in the write.
func (t *selection) isRecent(e *viewcache.Entry) bool {
	all := bodiesOf(e, t.Before)
	bodies := make([][]byte, len(all))
	for i := range all {
		bodies[i] = all[i].data
	}
	return choice.Recent(&t.Request, bodies, t.s.compare.Marks)
}

// bodiesOf returns documents that clients of the session have seen since the start, and not later than before: the oldest document and the
// few newest ones, oldest first.
func bodiesOf(e *viewcache.Entry, before uint64) (all []seenBody) {
	for i := range e.Past {
		if v := &e.Past[i].View; v.SentBody == v.StoredBody {
			all = append(all, seenBody{v.Sight, v.SentBody.Bytes()})
		}
	}
	for i := range e.Reads {
		all = append(all, seenBody{e.Reads[i].Sight, e.Reads[i].Body.Bytes()})
	}
	if e.View.Set && e.View.SentBody == e.View.StoredBody {
		all = append(all, seenBody{e.View.Sight, e.View.SentBody.Bytes()})
	}
	all = slices.DeleteFunc(all, func(b seenBody) bool { return b.data == nil || b.Order > before })
	slices.SortStableFunc(all, func(a, b seenBody) int {
		return cmp.Or(cmp.Compare(a.Numbers.PrimaryTerm, b.Numbers.PrimaryTerm), cmp.Compare(a.Numbers.SeqNo, b.Numbers.SeqNo))
	})
	if n := len(all); n > maxCompared {
		all = append(all[:1], all[n-maxCompared+1:]...)
	}
	return all
}

// seenBody is a revision with its bytes.
type seenBody struct {
	viewcache.Sight
	data []byte
}

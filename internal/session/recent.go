package session

import (
	"cmp"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/viewcache"
)

// maxCompared bounds how many revisions a write is compared with after a start.
const maxCompared = 8

// isRecent reports whether the write was made from a revision that the session has seen since the start: see choice.Recent. What was seen
// while the write waited isn't its base, however much of it the write holds.
func (t *selection) isRecent(e *viewcache.Entry) bool {
	all := bodiesOf(e, t.Before)
	bodies := make([][]byte, len(all))
	for i := range all {
		bodies[i] = all[i].data
	}
	return choice.Recent(t.Sent, bodies, t.s.compare.Marks)
}

// bodiesOf are documents that clients of the session have seen since the start, and up to the order before, oldest first: the oldest one,
// and the newest few.
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

package session

import (
	"cmp"
	"slices"

	"optimist/internal/choice"
	"optimist/internal/viewcache"
)

// maxCompared bounds how many revisions a write is compared with after a start.
const maxCompared = 8

// isRecent reports whether sent was made from a revision that the session has seen since the start: see choice.Recent.
func isRecent(e *viewcache.Entry, sent []byte) bool {
	all := bodiesOf(e)
	bodies := make([][]byte, len(all))
	for i := range all {
		bodies[i] = all[i].data
	}
	return choice.Recent(sent, bodies)
}

// bodiesOf are documents that clients of the session have seen since the start, oldest first: the oldest one, and the newest few.
func bodiesOf(e *viewcache.Entry) (all []seenBody) {
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
	all = slices.DeleteFunc(all, func(b seenBody) bool { return b.data == nil })
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

package session

import (
	"cmp"
	"slices"

	"optimist/internal/choice"
)

// maxCompared is with how many revisions a write is compared after a start.
const maxCompared = 8

// isRecent reports whether sent was made from something that the session has seen since the start: see choice.Recent. of is the newest of
// which sent holds everything, if there is one.
func (e *entry) isRecent(sent []byte) (of seenBody, recent bool) {
	all := e.bodies()
	bodies := make([][]byte, len(all))
	for i := range all {
		bodies[i] = all[i].data
	}
	i, recent := choice.Recent(sent, bodies)
	if i >= 0 {
		of = all[i]
	}
	return of, recent
}

// bodies are what clients of the session have seen since the start, oldest first: the oldest, and the newest few.
func (e *entry) bodies() (all []seenBody) {
	for i := range e.past {
		if v := &e.past[i].view; v.sentBody == v.storedBody {
			all = append(all, seenBody{v.seen, v.sentBody.bytes()})
		}
	}
	for i := range e.reads {
		all = append(all, seenBody{e.reads[i].seen, e.reads[i].body.bytes()})
	}
	if e.view.set && e.view.sentBody == e.view.storedBody {
		all = append(all, seenBody{e.view.seen, e.view.sentBody.bytes()})
	}
	all = slices.DeleteFunc(all, func(b seenBody) bool { return b.data == nil })
	slices.SortStableFunc(all, func(a, b seenBody) int {
		return cmp.Or(cmp.Compare(a.numbers.PrimaryTerm, b.numbers.PrimaryTerm), cmp.Compare(a.numbers.SeqNo, b.numbers.SeqNo))
	})
	if n := len(all); n > maxCompared {
		all = append(all[:1], all[n-maxCompared+1:]...)
	}
	return all
}

// seenBody is a revision with its bytes.
type seenBody struct {
	seen
	data []byte
}

package indexstate

import "slices"

// enoughBlind is how many different documents a session overwrites blindly before it counts as a blind writer, not counting those that it
// has read or written before it wrote them. One is not enough: a session stands for many clients, and none of them is guarded then.
const enoughBlind = 8

// blindWriters are sessions that overwrite what they haven't read. Sessions can be made up: a forgotten one is none, which is the safe
// answer.
type blindWriters[W comparable] struct {
	recent recentClients[W, blindWriter]
}

// blindWriter is a session that has overwritten documents blindly.
type blindWriter struct {
	// documents are the last ones, by hash: who writes one of them again has shown nothing new.
	documents []uint64
	more      int  // how many more of its writes were blind than weren't, from 0 to enoughBlind
	is        bool // more was enoughBlind, and hasn't been 0 since
}

// has reports whether w is a blind writer. Without anybody it is one load.
func (n *blindWriters[W]) has(w W, now int64) bool {
	b, _ := n.recent.get(w, now)
	return b.is
}

// add notes for an age that w has overwritten a document blindly.
func (n *blindWriters[W]) add(w W, document uint64, now, age int64) {
	n.recent.note(w, now, now+age, func(b blindWriter) blindWriter {
		if slices.Contains(b.documents, document) {
			return b
		}
		if len(b.documents) == enoughBlind {
			b.documents = slices.Delete(b.documents, 0, 1)
		}
		b.documents = append(b.documents, document)
		b.more = min(b.more+1, enoughBlind)
		b.is = b.is || b.more == enoughBlind
		return b
	}, nil)
}

// remove notes a write of w that isn't blind. Without anybody it is one load.
func (n *blindWriters[W]) remove(w W, now int64) {
	n.recent.change(w, now, func(b blindWriter) blindWriter {
		b.more = max(b.more-1, 0)
		b.is = b.is && b.more > 0
		return b
	})
}

package indexstate

import "slices"

// enoughBlind is how many different documents a session overwrites blindly before it counts as a blind writer, not counting those that it
// has read or written before it wrote them. One is not enough: a session stands for many clients, and none of them is guarded then.
const enoughBlind = 8

// blindWriter is a session that has overwritten documents that it hasn't read. Sessions can be made up: a forgotten one is none, which is
// the safe answer.
type blindWriter struct {
	// documents are the last ones, by hash: who writes one of them again has shown nothing new.
	documents []uint64
	more      int  // how many more of its writes were blind than weren't, from 0 to enoughBlind
	is        bool // more was enoughBlind, and hasn't been 0 since
}

// wroteBlindly is b after it has overwritten a document blindly.
func (b blindWriter) wroteBlindly(document uint64) blindWriter {
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
}

// wroteKnown is b after a write that wasn't blind.
func (b blindWriter) wroteKnown() blindWriter {
	b.more = max(b.more-1, 0)
	b.is = b.is && b.more > 0
	return b
}

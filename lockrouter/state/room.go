package state

import "encoding/json"

// How much of a document's room one lease may take: all leases of a tree are in one document, which the engine holds in memory, and
// writes whole, with every change.

// The sizes of leases, in bytes of JSON.
const (
	emptyLease = 256     // one without texts: the names of its fields, and its numbers
	perLease   = 512     // what a lease of a document that is full may take on average
	leastBytes = 1 << 16 // room for three of the largest leases
)

// shareOfFree is how many times what stays free a client may have: one that is alone gets seven of eight parts.
const shareOfFree = 7

// Bytes is how many bytes the leases of a document may take together that may hold so many.
func Bytes(most int64) int64 { return max(perLease*most, leastBytes) }

// Measure sets Size. Texts count as they are written in JSON, where a byte can become six; the owner counts twice, because the document
// also lists it for searches.
func (op *Op) Measure() {
	op.Size = emptyLease + 2*written(op.Owner) + written(op.Path) + written(op.Note)
}

func written(s string) int64 {
	b, _ := json.Marshal(s) // strings always can be
	return int64(len(b))
}

// room is Acquired if a document has room for so many more leases, and so many more bytes, of the operation's owner and client. Else it
// says what is missing. Leases from before leases had sizes count nothing.
func (a *applying) room(op *Op, leases, size int64) Verdict {
	var n, bytes, mine, mineBytes int64
	for i := range a.d.Holds {
		h := &a.d.Holds[i]
		n, bytes = n+1, bytes+h.Size
		if h.Owner == op.Owner || op.Client != "" && h.Client == op.Client {
			mine, mineBytes = mine+1, mineBytes+h.Size
		}
	}
	free, freeBytes := a.c.Most-n-leases, a.c.Bytes-bytes-size
	bounded, boundedBytes := a.c.Most > 0, a.c.Bytes > 0
	switch {
	case bounded && free < 0:
		return Full
	case boundedBytes && freeBytes < 0:
		return Large
	case mine == 0: // everybody may have one
		return Acquired
	case bounded && mine+leases > shareOfFree*free, boundedBytes && mineBytes+size > shareOfFree*freeBytes:
		return Share
	}
	return Acquired
}

// note gives a lease the operation's note. A note that there is no room for is left out: it mustn't cost its holder the lease.
func (a *applying) note(op *Op, h *Hold) {
	if op.Note == "" {
		return
	}
	if more := op.Size - h.Size; more > 0 && a.room(op, 0, more) != Acquired {
		return
	}
	h.Note, h.Size = op.Note, op.Size
}

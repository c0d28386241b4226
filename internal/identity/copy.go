package identity

import (
	"encoding/binary"

	"optimist/internal/doc"
)

// Copy is one copy of a document that a client holds, told from all others by what it was handed out with: a stamp, or the entity tag of
// an answer. Its client may be one of many in a session, and may write from the copy again and again.
type Copy struct {
	// Numbers are those of the revision that was served, or those in an answer.
	Numbers doc.Numbers
	// Token tells the copy from others with the same numbers. 0: nothing does.
	Token uint64
	// Served says that the copy is a revision as it was served. While this store doesn't know of a write from it, the change is
	// counted from that revision. Otherwise it is what was sent with some write, and of one that isn't known the numbers alone
	// are good.
	Served bool
}

// Holding is the session of who holds the copy: a thread of work of its own, whatever else the client does.
func (s Session) Holding(c Copy) Session {
	var b [40]byte
	copy(b[:], s.credentials[:])
	binary.BigEndian.PutUint64(b[16:], uint64(c.Numbers.SeqNo))       //nolint:gosec // whatever it is: it only has to differ
	binary.BigEndian.PutUint64(b[24:], uint64(c.Numbers.PrimaryTerm)) //nolint:gosec // likewise
	binary.BigEndian.PutUint64(b[32:], c.Token)
	h := Named(s.credentials, b[:])
	h.implicit, h.network = true, s.network
	return h
}

package seen

import (
	"slices"

	"optimist/internal/doc"
)

// Carried is the revision of a document that a connection has carried last: its client has read it, or written it. The zero value is none.
type Carried struct {
	connection uint64
	numbers    doc.Numbers
	written    bool
}

// maxCarried bounds how many connections are known of a session and document. Those that were used last are.
const maxCarried = 256

// Carry notes that a client has read or written a revision over a connection; 0: it isn't known over which.
func (e *Entry) Carry(connection uint64, n doc.Numbers, written bool) {
	if connection == 0 {
		return
	}
	if i := slices.IndexFunc(e.carried, func(c Carried) bool { return c.connection == connection }); i >= 0 {
		e.carried = slices.Delete(e.carried, i, i+1)
	} else if len(e.carried) == maxCarried {
		e.carried = slices.Delete(e.carried, 0, 1)
	}
	e.carried = append(e.carried, Carried{connection, n, written})
}

// LastOver returns what the connection has carried last.
func (e *Entry) LastOver(connection uint64) Carried {
	for _, c := range e.carried {
		if c.connection == connection {
			return c
		}
	}
	return Carried{}
}

// Is reports whether it is that revision, and was carried in that direction.
func (c Carried) Is(n doc.Numbers, written bool) bool {
	return c.connection != 0 && c.numbers == n && c.written == written
}

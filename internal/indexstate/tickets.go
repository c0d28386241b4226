package indexstate

import "hash/maphash"

// A cell holds the ticket, and above it a tag, which tells whose it is.
const (
	ticketBits = 44
	ticketMask = 1<<ticketBits - 1
)

// tickets are the newest ones of owners of names. If two meet in a cell, the one that was there is forgotten: nothing of one ever counts
// for another, except by a chance of one in a million for the two that meet. The zero value has none. It is safe for concurrent use.
type tickets struct{ newest lateTable }

// note notes a ticket of o.
func (t *tickets) note(o owned, ticket uint64) {
	table := t.newest.make()
	cell, tag := of(table, o), tagOf(table, o)
	for next := tag | ticket&ticketMask; ; {
		was := cell.Load()
		if was&^ticketMask == tag && was >= next || cell.CompareAndSwap(was, next) {
			return
		}
	}
}

// of returns the newest ticket of o; 0: none is known.
func (t *tickets) of(o owned) uint64 {
	table := t.newest.made.Load()
	if table == nil {
		return 0
	}
	if v := of(table, o).Load(); v&^ticketMask == tagOf(table, o) {
		return v & ticketMask
	}
	return 0
}

// tagOf is the tag of o: what its hash has above a ticket.
func tagOf(t *table, o owned) uint64 { return maphash.Comparable(t.seed, o) &^ ticketMask }

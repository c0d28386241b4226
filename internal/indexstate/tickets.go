package indexstate

import (
	"hash/maphash"
	"sync/atomic"
)

// ticketCells is of how many the newest ticket is kept. They take 32 KiB, once there is any.
const ticketCells = 4096

// A cell holds the ticket, and above it a tag, which tells whose it is.
const (
	ticketBits = 44
	ticketMask = 1<<ticketBits - 1
)

// tickets are the newest ones of owners of names. If two meet in a cell, the one that was there is forgotten: nothing of one ever counts
// for another, except by a chance of one in a million for the two that meet. The zero value has none. It is safe for concurrent use.
type tickets struct {
	cells atomic.Pointer[ticketTable]
}

type ticketTable struct {
	seed   maphash.Seed // nobody can choose whose cell to share
	newest [ticketCells]atomic.Uint64
}

// note notes a ticket of o.
func (t *tickets) note(o owned, ticket uint64) {
	c := t.cells.Load()
	if c == nil {
		t.cells.CompareAndSwap(nil, &ticketTable{seed: maphash.MakeSeed()})
		c = t.cells.Load()
	}
	cell, tag := c.of(o)
	for next := tag | ticket&ticketMask; ; {
		was := cell.Load()
		if was&^ticketMask == tag && was >= next || cell.CompareAndSwap(was, next) {
			return
		}
	}
}

// of returns the newest ticket of o; 0: none is known.
func (t *tickets) of(o owned) uint64 {
	c := t.cells.Load()
	if c == nil {
		return 0
	}
	cell, tag := c.of(o)
	if v := cell.Load(); v&^ticketMask == tag {
		return v & ticketMask
	}
	return 0
}

func (c *ticketTable) of(o owned) (cell *atomic.Uint64, tag uint64) {
	h := maphash.Comparable(c.seed, o)
	return &c.newest[h%ticketCells], h &^ ticketMask
}

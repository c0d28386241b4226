// Package share says how many of a bounded number of places one client may have: connections of clients, connections to the engine.
//
// It keeps no accounts. A client that is alone gets most of the places, but never all; the more places are taken, the fewer each
// may have. So a later client finds a place, although no place is reserved.
package share

import (
	"net/netip"

	"optimist/internal/identity"
)

// Client is one whose places are counted. The zero value is optimist itself: see Counted.
type Client struct {
	// Network is where the client is.
	Network identity.Network
	// Credentials stands for the client's. They may be made up, so that they divide only what the address gets.
	Credentials uint64
}

// Of returns the client at an address.
func Of(addr netip.Addr, credentials uint64) Client {
	return Client{identity.NetworkOf(addr), credentials}
}

// share is how many times what is free an address may have, and a client of it times what the address may still get. So one that is
// alone gets seven of eight places.
const share = 7

// optimistIs is how many networks optimist itself is worth.
const optimistIs = 4

// Counted is how many of a network's places count. For network 0, which is optimist itself, that is one of four. It makes requests for all
// clients, as with locks, and so gets more than one network. But clients cause these requests, and so it doesn't get everything.
func Counted(n identity.Network, places int) int {
	if n == 0 {
		return places / optimistIs
	}
	return places
}

// Crowded reports whether so many places are taken that a client may be refused one: below that, nobody needs to count.
func Crowded(total, taken int) bool { return taken >= total/2 }

// Fits reports whether a client may have one more of total places, of which taken are taken. addr is how many of these clients at its
// address have, and own how many it has itself, as they are Counted.
func Fits(total, taken, addr, own int) bool { return total-taken >= Need(addr, own) }

// Need is how many places have to be free before a client may have one more: see Fits. It may have the first place that is free, and the
// last one that its address may have only if it has none.
func Need(addr, own int) int {
	switch {
	case addr == 0:
		return 1
	case own == 0:
		return addr/share + 1
	}
	return max((addr+own/share)/share+1, (addr+1)/share+2)
}

package identity

import (
	"encoding/binary"
	"net/netip"
)

// Network is where a client is: its address, or of an IPv6 address the network of 64 bits, which is one customer's. The zero value is
// nowhere, or unknown.
//
// Credentials, names and copies may be made up, in any number. A network can't. So whatever is bounded for all clients together is shared
// among networks first, and then among the clients of each.
type Network uint64

// NetworkOf returns the network of an address.
func NetworkOf(a netip.Addr) Network {
	b := a.As16()
	if n := binary.BigEndian.Uint64(b[:8]); n != 0 {
		return Network(n)
	}
	return Network(binary.BigEndian.Uint64(b[8:])) // IPv4, which begins with 0000 ffff, as no network of IPv6 does; or loopback
}

// Addr returns the address that stands for the network.
func (n Network) Addr() netip.Addr {
	var b [16]byte
	if n>>48 == 0 {
		binary.BigEndian.PutUint64(b[8:], uint64(n))
	} else {
		binary.BigEndian.PutUint64(b[:8], uint64(n))
	}
	return netip.AddrFrom16(b).Unmap()
}

// Client is who holds what is kept for a session: all with the same credentials in a network. What only requests have shown that show many
// documents is held apart.
type Client struct {
	Network     Network
	Credentials Credentials
	Many        bool
}

// At returns the session with the network that its request comes from.
func (s Session) At(n Network) Session {
	s.network = n
	return s
}

// Network returns the network that the request comes from.
func (s Session) Network() Network { return s.network }

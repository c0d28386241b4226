// Package budget bounds the bytes that all requests hold at once, and shares them among clients.
//
// A request takes bytes before it holds them: for a body that is collected or expanded, for a large head, for an answer that is collected,
// for the work of a merge. Small things, and what connections need by themselves, don't count. The budget is an account, not a
// measurement: it doesn't notice bytes that a caller holds without taking them.
package budget

import (
	"errors"
	"net/netip"
	"sync"

	"optimist/internal/identity"
)

// ErrOverloaded reports that the bytes aren't there: too many are held already, by all clients or by this one. Nothing was taken.
var ErrOverloaded = errors.New("the requests under way hold as much memory as they may (limits.memory); try again")

// ErrTooMuch reports that one request wants more than it would get if it were alone: there is no use in trying again. Nothing was taken.
var ErrTooMuch = errors.New("the request needs more memory than one may hold (half of limits.memory)")

// Free is up to how many bytes a request holds without taking them. It is what connections need by themselves anyway.
const Free = 16 << 10

// Owner is the client for whom a request holds bytes. Requests of the same credentials and the same address have the same owner.
type Owner struct {
	Address     netip.Addr
	Credentials [16]byte // a digest; zero: none
}

// Anonymous reports whether the owner has no credentials.
func (o Owner) Anonymous() bool { return o.Credentials == [16]byte{} }

// Options are what a Budget needs.
type Options struct {
	// Limit is how many bytes all requests together may take.
	Limit int64
	// Refused is called with the owner of a request that gets no bytes. It must be quick, and may be called by many goroutines. Nil:
	// nobody is told.
	Refused func(Owner)
}

// Budget is the memory for all requests. It is safe for concurrent use.
//
// The more is taken already, the less an owner gets: an owner, and a network, may hold up to twice the memory that is left for all
// others. So a client that is alone gets half. A late client always finds something: it gets a quarter if one client took all that it
// could, an eighth after two. One network with any number of names gets two thirds. No figure has to be configured for that. (Switches
// share their buffers by such dynamic thresholds.)
type Budget struct {
	o Options

	mu       sync.Mutex
	used     int64
	owners   map[Owner]int64
	networks map[identity.Network]int64
}

// New makes a Budget. All of it is free.
func New(o Options) *Budget {
	return &Budget{o: o, owners: map[Owner]int64{}, networks: map[identity.Network]int64{}}
}

// Limit is how many bytes there are, and Used how many of them are taken.
func (b *Budget) Limit() int64 { return b.o.Limit }

// Used is how many bytes are taken.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// take takes n bytes for an owner, or none.
func (b *Budget) take(o Owner, n int64) bool {
	if b.tryTake(o, n) {
		return true
	}
	if b.o.Refused != nil {
		b.o.Refused(o)
	}
	return false
}

func (b *Budget) tryTake(o Owner, n int64) bool {
	network := identity.NetworkOf(o.Address)
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.o.Limit - b.used - n // for the others
	if b.owners[o]+n+b.networks[network]+n > 2*left {
		return false
	}
	b.used += n
	b.owners[o] += n
	b.networks[network] += n
	return true
}

// give gives n bytes of an owner back.
func (b *Budget) give(o Owner, n int64) {
	network := identity.NetworkOf(o.Address)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.owners[o] -= n; b.owners[o] == 0 {
		delete(b.owners, o)
	}
	if b.networks[network] -= n; b.networks[network] == 0 {
		delete(b.networks, network)
	}
}

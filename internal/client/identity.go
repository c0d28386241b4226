package client

import (
	"net/netip"
	"slices"

	"optimist/internal/uri"
	"optimist/internal/wire"
)

// Identity says how clients are told apart. It is immutable.
type Identity struct {
	Headers []string       // fields by which a client names its session, the first of which counts that a request has
	Traces  bool           // the requests of a trace belong together, by their traceparent
	Address bool           // without it, credentials and address make the session
	Infer   bool           // without it, credentials do, or (Address too) credentials and address; false: none
	Trusted []netip.Prefix // proxies whose X-Forwarded-For is believed

	// Fields and Parameters identify the client, and the tenant or cluster: requests that differ in one of them share nothing here. Nil:
	// the lists of package wire.
	Fields, Parameters *wire.Names
}

var defaultParameters = wire.NewNames(wire.IdentityParameters...)

// identifies reports whether a field says who asks, or for whom.
func (id *Identity) identifies(name []byte) bool {
	if id.Fields != nil {
		return id.Fields.Has(name)
	}
	return wire.DefaultIdentity().Has(name)
}

// Params are the parameters of a query that identify the client or the tenant, as they stand there. A request of ours on the client's
// behalf carries them.
func (id *Identity) Params(query []byte) []byte {
	if len(query) == 0 {
		return nil
	}
	names := id.Parameters
	if names == nil {
		names = defaultParameters
	}
	return uri.Select(query, names.Has)
}

// role is what a field is for telling clients apart.
type role uint8

const (
	noRole    role = iota // it is of this request or connection alone, or about its body or answer
	authority             // it says who asks, or for whom
	address               // it says where the request comes from
	tracing               // it is the traceparent
	program               // it names the program
	otherwise             // nobody knows what a gateway makes of it
)

// sessions is added to the role of a field that names the session. A user's name may be that of the session, too: it still says who asks.
const sessions role = 1 << 7

// roleOf is the role of the field of that name.
func (id *Identity) roleOf(name []byte) role {
	r := id.plainRole(name)
	if id.nameOf(name) >= 0 {
		r |= sessions
	}
	return r
}

// plainRole is roleOf without regard to sessions.
func (id *Identity) plainRole(name []byte) role {
	switch {
	case wire.EqualFold(name, "traceparent"):
		return tracing
	case id.identifies(name):
		return authority
	case wire.IsAddress(name):
		return address
	case wire.EqualFold(name, "user-agent"):
		return program
	case wire.IsOwn(name), wire.IsPassing(name):
		return noRole
	}
	return otherwise
}

// nameOf is the field's place among those by which clients name their sessions, or -1.
func (id *Identity) nameOf(name []byte) int {
	return slices.IndexFunc(id.Headers, func(h string) bool { return wire.EqualFold(name, h) })
}

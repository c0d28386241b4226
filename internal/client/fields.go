package client

import (
	"bytes"
	"net/netip"
	"slices"
	"unicode"

	"optimist/internal/identity"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// marks are what a request says of its client.
type marks struct {
	authority, address, otherwise []wire.Field
	name                          []byte // of the session
	forwarded                     []byte // X-Forwarded-For
	trace                         session.Trace
	program                       identity.Program
	params                        []byte
	subject                       []byte
}

// gather reads the marks off a request's fields and query, into which they point. Roles may know the names of the fields, or be nil.
func (id *Identity) gather(fields []wire.Field, query []byte, roles *recent) (m marks) {
	named := len(id.Headers)
	for _, f := range fields {
		r := roles.roleOf(id, f.Name)
		if r&sessions != 0 {
			if k := id.nameOf(f.Name); k <= named && len(f.Value) > 0 {
				m.name, named = f.Value, k
			}
		}
		switch r &^ sessions {
		case authority:
			m.authority = append(m.authority, f)
		case address:
			m.address = append(m.address, f)
			if wire.EqualFold(f.Name, "x-forwarded-for") {
				m.forwarded = joined(m.forwarded, f.Value)
			}
		case tracing:
			m.trace = id.traceOf(f.Value)
		case program:
			m.program = identity.ProgramOf(f.Value)
		case otherwise:
			m.otherwise = append(m.otherwise, f)
		}
	}
	m.params = id.Params(query)
	return m
}

// Of identifies the client by a request's fields and query, and by its connection: the address, and the subject of the client's
// certificate, or nil. The result doesn't point into them.
func (id *Identity) Of(fields []wire.Field, query []byte, addr netip.AddrPort, subject []byte) Client {
	m := id.gather(fields, query, nil)
	m.subject = subject
	c := id.client(&m, addr)
	return c.in(m.trace)
}

func (id *Identity) client(m *marks, addr netip.AddrPort) Client {
	c := Client{Params: m.params, Unlisted: len(m.address)+len(m.otherwise) > 0}
	credentials := identity.CredentialsOf(m.askers()...)
	c.Realm = credentials
	if len(m.address) > 0 {
		c.Realm = identity.CredentialsOf(append(texts(m.address), credentials[:])...)
	}
	c.Route = c.Realm
	if len(m.otherwise) > 0 {
		c.Route = identity.CredentialsOf(append(texts(m.otherwise), c.Realm[:])...)
	}
	for _, f := range m.authority {
		if wire.EqualFold(f.Name, "authorization") {
			v := f.Value
			c.Signed = c.Signed || hasPrefixFold(v, "aws4-") || hasPrefixFold(v, "signature") || hasPrefixFold(v, "digest")
			c.Bound = c.Bound || hasPrefixFold(v, "negotiate") || hasPrefixFold(v, "ntlm")
		}
	}
	c.Address = id.address(addr.Addr(), m.forwarded)
	if m.isAnonymous() && !id.moves() {
		credentials = id.origin(m, addr.Addr(), &c)
	}
	switch {
	case len(m.name) > 0:
		c.Session, c.Known = identity.Named(credentials, m.name), true
	case id.Infer && id.Address:
		c.Session, c.Known = identity.Inferred(credentials, c.Address), true
	default:
		c.Session, c.Known = identity.Inferred(credentials, netip.Addr{}), id.Infer
	}
	c.Session = c.Session.By(m.program).At(identity.NetworkOf(c.Address))
	return c
}

// isAnonymous reports whether the request says only where it comes from, and nothing of who asks.
func (m *marks) isAnonymous() bool {
	return len(m.address) > 0 && len(m.authority) == 0 && len(m.params) == 0 && m.subject == nil
}

// moves reports whether the configuration says that clients' addresses change.
func (id *Identity) moves() bool { return id.Infer && !id.Address }

// origin stands for the credentials of a client that has none. A balancer says where the client comes from, and a gateway may choose the
// tenant by that: clients from different places share no session, not even one of the same name. What a trusted proxy says is the client's
// address, whichever proxies are on the way. What another one says counts as it stands.
func (id *Identity) origin(m *marks, peer netip.Addr, c *Client) session.Credentials {
	if m.forwarded != nil && id.Trusts(peer) {
		return identity.CredentialsOf([]byte("address"), c.Address.AsSlice())
	}
	return c.Realm
}

// askers is what the request says of who asks, in an order that doesn't depend on that of the fields.
func (m *marks) askers() [][]byte {
	list := texts(m.authority)
	if len(m.params) > 0 {
		list = append(list, []byte("?"), m.params)
	}
	if m.subject != nil {
		list = append(list, []byte("subject"), m.subject)
	}
	return list
}

// texts are the fields' names, in small letters, each with its value; of where a request comes from without ports, which are of one
// connection. It puts the fields in order.
func texts(fields []wire.Field) [][]byte {
	for i, f := range fields {
		if bytes.ContainsFunc(f.Name, unicode.IsUpper) {
			fields[i].Name = bytes.ToLower(f.Name)
		}
	}
	slices.SortStableFunc(fields, func(a, b wire.Field) int { return bytes.Compare(a.Name, b.Name) })
	list := make([][]byte, 0, 2*len(fields)+3)
	for _, f := range fields {
		value := f.Value
		if wire.IsAddress(f.Name) {
			value = withoutPorts(value)
		}
		list = append(list, f.Name, value)
	}
	return list
}

// signedQuery reports whether a request is signed by its query: then nothing can be added to that.
func signedQuery(query []byte) bool {
	_, signed := uri.Param(query, "X-Amz-Signature")
	return signed
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && wire.EqualFold(b[:len(prefix)], prefix)
}

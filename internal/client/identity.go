package client

import (
	"bytes"
	"net/netip"

	"optimist/internal/session"
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
}

// credentialFields decide what the engine lets a client see. Requests that differ in one of them share nothing here. They are the
// fields of the engines' own realms, of their proxy authentication and run-as, of the gateways that stand before them and say who
// asks, or which cluster or tenant is meant, and cookies for those that keep logins in them.
var credentialFields = [...]string{
	"authorization", "cookie", "es-security-runas-user", "opendistro_security_impersonate_as", "sg_impersonate_as",
	"es-secondary-authorization", "es-client-authentication",
	"es-secondary-x-client-authentication", "x-proxy-user", "x-proxy-roles", proxyAttributes, "x-forwarded-user", "x-forwarded-email",
	"x-forwarded-groups", "x-auth-request-user", "x-auth-request-groups", "x-remote-user", "remote-user", "x-ssl-client-cert",
	"x-forwarded-client-cert", "x-client-dn", "x-amz-security-token", "x-api-key", "x-access-token", "jwt", "securitytenant",
	"x-scope-orgid", "x-found-cluster",
}

// proxyAttributes begins the fields by which OpenSearch's proxy authentication takes further attributes of a user, for its
// filters.
const proxyAttributes = "x-proxy-ext-"

// marks are what a request says of its client: the values of the credential fields in their order, the subject of the connection's
// certificate, then the session's name, then X-Forwarded-For.
type marks [len(credentialFields) + 3][]byte

const (
	subjectMark   = len(credentialFields)
	nameMark      = subjectMark + 1
	forwardedMark = nameMark + 1
)

// credentials are the marks that decide what the client may see. Those of a client without a certificate are the same as before there
// were such clients: names of sessions stand in the engine, as owners of locks.
func (m *marks) credentials() [][]byte {
	if m[subjectMark] == nil {
		return m[:subjectMark]
	}
	return m[:nameMark]
}

// gather reads the marks off a request's fields, into which they point, and its trace. subject is the client certificate's, or nil.
func (id *Identity) gather(fields []wire.Field, subject []byte) (m marks, trace session.Trace) {
	m[subjectMark] = subject
	named := len(id.Headers)
	for i := range fields {
		f := &fields[i]
		if k := credential(f.Name); k >= 0 {
			if credentialFields[k] == proxyAttributes {
				m[k] = joined(m[k], f.Name)
			}
			m[k] = joined(m[k], f.Value)
		}
		for k, name := range id.Headers {
			if k <= named && len(f.Value) > 0 && wire.EqualFold(f.Name, name) {
				m[nameMark], named = f.Value, k
			}
		}
		switch {
		case wire.EqualFold(f.Name, "x-forwarded-for"):
			m[forwardedMark] = joined(m[forwardedMark], f.Value)
		case id.Traces && wire.EqualFold(f.Name, "traceparent"):
			trace = traceOf(f.Value)
		}
	}
	return m, trace
}

// credential is the place of a field in credentialFields, -1 where it is none of them.
func credential(name []byte) int {
	for k, want := range credentialFields {
		if wire.EqualFold(name, want) || want == proxyAttributes && hasPrefixFold(name, want) {
			return k
		}
	}
	return -1
}

// Of tells the client from a request's fields, and from its connection: the address, and the subject of the client's certificate, or nil.
// The caller's fields point into the request.
func (id *Identity) Of(fields []wire.Field, addr netip.AddrPort, subject []byte) Client {
	m, trace := id.gather(fields, subject)
	c := id.client(&m, fields, addr)
	return c.in(trace)
}

func (id *Identity) client(m *marks, fields []wire.Field, addr netip.AddrPort) Client {
	var c Client
	for i := range fields {
		if credential(fields[i].Name) >= 0 {
			c.Caller.Fields = append(c.Caller.Fields, fields[i])
		}
	}
	c.Signed = hasPrefixFold(m[0], "aws4-") || hasPrefixFold(m[0], "signature") || hasPrefixFold(m[0], "digest")
	c.Bound = hasPrefixFold(m[0], "negotiate") || hasPrefixFold(m[0], "ntlm")
	credentials := session.CredentialsOf(m.credentials()...)
	switch name := m[nameMark]; {
	case len(name) > 0:
		c.Session, c.Known = session.Named(credentials, name), true
	case id.Infer && id.Address:
		c.Session, c.Known = session.Inferred(credentials, id.address(addr.Addr(), m[forwardedMark])), true
	default:
		c.Session, c.Known = session.Inferred(credentials, netip.Addr{}), id.Infer
	}
	return c
}

// signedQuery reports whether a request is signed by its query: then nothing can be added to that.
func signedQuery(query []byte) bool {
	_, signed := uri.Param(query, "X-Amz-Signature")
	return signed
}

// joined keeps repeated fields apart from one with both values.
func joined(a, b []byte) []byte {
	if a == nil {
		return b
	}
	return append(append(append(make([]byte, 0, len(a)+len(b)+1), a...), 0), b...)
}

func hasPrefixFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && wire.EqualFold(b[:len(prefix)], prefix)
}

// address is the client's: the connection's, or, behind trusted proxies, the last one in X-Forwarded-For that isn't theirs.
func (id *Identity) address(peer netip.Addr, forwarded []byte) netip.Addr {
	peer = peer.Unmap()
	for len(forwarded) > 0 && id.trusts(peer) {
		i := bytes.LastIndexAny(forwarded, ",\x00")
		last := forwarded[i+1:]
		forwarded = forwarded[:max(i, 0)]
		next, err := netip.ParseAddr(string(bytes.TrimSpace(last)))
		if err != nil {
			return peer
		}
		peer = next.Unmap()
	}
	return peer
}

func (id *Identity) trusts(a netip.Addr) bool {
	for _, p := range id.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

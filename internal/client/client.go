// Package client tells who sent a request, by its credentials, its address and the session that it names, and reads what a
// request says of its document.
//
// It checks no credentials: the engine does. Clients that it can't tell apart share what they have read.
package client

import (
	"bytes"
	"net/netip"

	"optimist/internal/session"
	"optimist/internal/wire"
)

// Client is who sent a request, as far as it can be told.
type Client struct {
	Session session.Session
	Known   bool // there is a session at all
	Signed  bool // the request is signed over more than its line and host: nothing of it may be changed
	Bound   bool // the authentication belongs to the connection

	// Realm is the session's credentials and what balancers say of where the request comes from: it stands for what is known of indices.
	Realm session.Credentials
	// Route is the realm and all other fields by which a gateway may choose where a request goes. Requests that differ in it share no
	// write and no read.
	Route session.Credentials
	// Unlisted says that the request has such fields, or ones that say where it comes from: see Request.Unlisted.
	Unlisted bool
	// Address is where the request comes from: see Identity.Trusted.
	Address netip.Addr
	// Params are the parameters of the query that say who asks, or for whom.
	Params []byte
}

// recent is who sent the connection's last request. Telling that takes digests; comparing a few fields is cheaper.
type recent struct {
	fields []remembered
	query  []byte
	client Client
	filled bool
}

// remembered is a field of the connection's last request. The value is kept where it has a role.
type remembered struct {
	wire.Field
	role role
}

// maxRecent bounds what is kept for it, in bytes: idle connections are many.
const maxRecent = 4 << 10

// of is Identity.Of, from memory where the request says the same as the one before it. The connection, and so addr and subject, is the
// same.
func (r *recent) of(id *Identity, fields []wire.Field, query []byte, addr netip.AddrPort, subject []byte) Client {
	if trace, same := r.same(id, fields, query); same {
		return r.client.in(trace)
	}
	*r = recent{}
	m := id.gather(fields, query)
	m.subject = subject
	c := id.client(&m, addr)
	r.remember(id, fields, query, c)
	return c.in(m.trace)
}

// same compares a request with what is remembered of the one before it.
func (r *recent) same(id *Identity, fields []wire.Field, query []byte) (trace session.Trace, same bool) {
	if !r.filled || len(fields) != len(r.fields) {
		return trace, false
	}
	if !bytes.Equal(query, r.query) && !bytes.Equal(id.Params(query), r.client.Params) {
		return trace, false
	}
	for i := range fields {
		f, before := &fields[i], &r.fields[i]
		switch {
		case !bytes.Equal(f.Name, before.Name):
			return trace, false
		case before.role == noRole:
		case before.role == tracing:
			trace = id.traceOf(f.Value)
		case !bytes.Equal(f.Value, before.Value):
			return trace, false
		}
	}
	return trace, true
}

func (r *recent) remember(id *Identity, fields []wire.Field, query []byte, c Client) {
	size := len(query)
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value)
	}
	if size > maxRecent {
		return
	}
	text := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		text = append(text, b...)
		return text[len(text)-len(b) : len(text) : len(text)]
	}
	r.fields = make([]remembered, len(fields))
	for i, f := range fields {
		k := remembered{wire.Field{Name: keep(f.Name)}, id.roleOf(f.Name)}
		if k.role != noRole && k.role != tracing {
			k.Value = keep(f.Value)
		}
		r.fields[i] = k
	}
	r.query, r.client, r.filled = keep(query), c, true
}

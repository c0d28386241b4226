package client

import (
	"bytes"
	"net/netip"

	"optimist/internal/session"
	"optimist/internal/wire"
)

// recent is who sent the connection's last request. Telling that takes digests; comparing a few fields is cheaper.
type recent struct {
	roles  []known      // names of fields that came on the connection
	size   int          // of those names, in bytes
	fields []wire.Field // those of the last request that say who sent it or where it goes, in their order
	query  []byte
	client Client
	filled bool
}

// known is the name of a field, and the role that it has: to find that out takes longer than to compare a few names.
type known struct {
	name []byte
	role role
}

// maxRecent bounds what is kept of a request, and of names, in bytes: idle connections are many.
const maxRecent = 4 << 10

// of is Identity.Of, from memory where the request says the same as the one before it. The connection, and so addr and subject, is the
// same.
func (r *recent) of(id *Identity, fields []wire.Field, query []byte, addr netip.AddrPort, subject []byte) Client {
	if trace, same := r.same(id, fields, query); same {
		return r.client.in(trace)
	}
	m := id.gather(fields, query, r)
	m.subject = subject
	c := id.client(&m, addr)
	r.remember(id, fields, query, c)
	return c.in(m.trace)
}

// same compares a request with what is remembered of the one before it. Fields of one request alone, such as the length of its body,
// may come and go.
func (r *recent) same(id *Identity, fields []wire.Field, query []byte) (trace session.Trace, same bool) {
	if !r.filled {
		return trace, false
	}
	if !bytes.Equal(query, r.query) && !bytes.Equal(id.Params(query), r.client.Params) {
		return trace, false
	}
	next := r.fields
	for i := range fields {
		f := &fields[i]
		switch r.roleOf(id, f.Name) {
		case noRole:
		case tracing:
			trace = id.traceOf(f.Value)
		default:
			if len(next) == 0 || !bytes.Equal(f.Name, next[0].Name) || !bytes.Equal(f.Value, next[0].Value) {
				return trace, false
			}
			next = next[1:]
		}
	}
	return trace, len(next) == 0
}

// roleOf is Identity.roleOf, from memory where the name came before. A nil recent remembers nothing.
func (r *recent) roleOf(id *Identity, name []byte) role {
	if r == nil {
		return id.roleOf(name)
	}
	for i := range r.roles {
		if bytes.Equal(r.roles[i].name, name) {
			return r.roles[i].role
		}
	}
	k := known{bytes.Clone(name), id.roleOf(name)}
	if r.size+len(name) > maxRecent || len(r.roles) == maxNames {
		r.roles, r.size = r.roles[:0], 0
	}
	if len(name) <= maxRecent {
		r.roles, r.size = append(r.roles, k), r.size+len(name)
	}
	return k.role
}

// maxNames bounds how many names are compared. Clients send a dozen.
const maxNames = 32

// remember keeps what same compares.
func (r *recent) remember(id *Identity, fields []wire.Field, query []byte, c Client) {
	r.filled = false
	size := len(query)
	for i := range fields {
		size += len(fields[i].Name) + len(fields[i].Value)
	}
	if size > maxRecent {
		r.fields, r.query, r.client = nil, nil, Client{}
		return
	}
	text := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		text = append(text, b...)
		return text[len(text)-len(b) : len(text) : len(text)]
	}
	r.fields = r.fields[:0]
	for _, f := range fields {
		if role := r.roleOf(id, f.Name); role != noRole && role != tracing {
			r.fields = append(r.fields, wire.Field{Name: keep(f.Name), Value: keep(f.Value)})
		}
	}
	r.query, r.client, r.filled = keep(query), c, true
}

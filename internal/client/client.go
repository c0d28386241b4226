// Package client tells who sent a request, by its credentials, its address and the session that it names, and reads what a
// request says of its document.
//
// It checks no credentials: the engine does. Clients that it can't tell apart share what they have read.
package client

import (
	"bytes"
	"net/netip"

	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/session"
	"optimist/internal/wire"
)

// Client is who sent a request, as far as it can be told.
type Client struct {
	Session session.Session
	Known   bool // there is a session at all
	Caller  es.Caller
	Signed  bool // the request is signed over more than its line and host: nothing of it may be changed
	Bound   bool // the authentication belongs to the connection
}

// Asker is the client, for the catalog.
func (c *Client) Asker() catalog.Asker {
	return catalog.Asker{Credentials: c.Session.Credentials(), Caller: c.Caller}
}

// recent is who sent the connection's last request. Telling that takes two digests; comparing a few fields is cheaper.
type recent struct {
	marks  marks
	client Client
	filled bool
}

// maxRecent bounds what is kept for it, in bytes: idle connections are many.
const maxRecent = 4 << 10

// of is Identity.Of, from memory where the request says the same as the one before it. The connection, and so addr and subject, is the
// same.
func (r *recent) of(id *Identity, fields []wire.Field, addr netip.AddrPort, subject []byte) Client {
	m, trace := id.gather(fields, subject)
	if r.filled && r.same(&m) {
		return r.client.in(trace)
	}
	*r = recent{}
	size := 0
	for _, v := range m {
		size += len(v)
	}
	c := id.client(&m, fields, addr)
	if size > maxRecent {
		return c.in(trace)
	}
	for i := range m {
		r.marks[i] = bytes.Clone(m[i])
	}
	for i, f := range c.Caller.Fields {
		c.Caller.Fields[i] = wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	r.client, r.filled = c, true
	return c.in(trace)
}

// same compares marks: one that is empty isn't one that is not there.
func (r *recent) same(m *marks) bool {
	for i := range m {
		if (m[i] == nil) != (r.marks[i] == nil) || !bytes.Equal(m[i], r.marks[i]) {
			return false
		}
	}
	return true
}

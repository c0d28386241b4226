// Package client identifies the client of a request, by its credentials, its address and the session that it names. It also reads
// which document a request names.
//
// It checks no credentials: the engine does. Clients that it can't tell apart share what they have read.
package client

import (
	"net/netip"

	"optimist/internal/budget"

	"optimist/internal/session"
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
	// Params are the parameters of the query that identify the client or the tenant.
	Params []byte
}

// Owner is for whom the client's requests hold memory.
func (c *Client) Owner() budget.Owner {
	return budget.Owner{Address: c.Address, Credentials: c.Session.Credentials()}
}

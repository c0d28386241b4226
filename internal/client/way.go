package client

import (
	"optimist/internal/identity"
	"optimist/internal/session"
	"optimist/internal/wire"
)

// Way stands for what may send the request to one engine or another, beyond the session's credentials: the fields of which nobody knows
// what a gateway makes of them, and where the request comes from. A client may repeat a request through another proxy, so neither the
// Host nor trusted proxies are a part of it.
func (r *Request) Way() session.Credentials {
	var kept []wire.Field
	var address []byte
	for _, f := range r.Unlisted(nil) {
		switch where := wire.IsAddress(f.Name); {
		case wire.EqualFold(f.Name, "host"), where && r.identity.moves():
		case wire.EqualFold(f.Name, "x-forwarded-for") && r.identity.Trusts(r.Exchange.Client().Addr().Unmap()):
			address = r.Client().Address.AsSlice()
		default:
			kept = append(kept, f)
		}
	}
	return identity.CredentialsOf(append(texts(kept), address)...)
}

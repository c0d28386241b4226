package client

import (
	"bytes"
	"slices"

	"optimist/internal/uri"
	"optimist/internal/wire"
)

// Tenant are the fields and parameters of a request by which a gateway may choose the tenant or the cluster, without credentials.
// Whoever makes or undoes the request's write later sends them with credentials of their own. A client without credentials is told
// apart by where it comes from, so its address is one of them, without the port. The fields are in order of their names.
func (id *Identity) Tenant(fields []wire.Field, query []byte) (kept []wire.Field, params []byte) {
	params = uri.Select(id.Params(query), func(name []byte) bool { return !wire.IsSecretParameter(name) })
	anonymous := !id.moves() && !slices.ContainsFunc(fields, func(f wire.Field) bool { return wire.IsCredential(f.Name) }) &&
		len(params) == len(id.Params(query))
	for _, f := range fields {
		where := wire.IsAddress(f.Name)
		if wire.IsCredential(f.Name) || !id.identifies(f.Name) && !(where && anonymous) {
			continue
		}
		if where {
			f.Value = withoutPorts(f.Value)
		}
		kept = append(kept, f)
	}
	slices.SortStableFunc(kept, func(a, b wire.Field) int { return bytes.Compare(bytes.ToLower(a.Name), bytes.ToLower(b.Name)) })
	return kept, params
}

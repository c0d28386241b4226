package client

import (
	"bytes"
	"net/netip"
	"strings"

	"optimist/internal/wire"
)

// address is the client's: the connection's, or, behind trusted proxies, the last one in X-Forwarded-For that isn't theirs.
func (id *Identity) address(peer netip.Addr, forwarded []byte) netip.Addr {
	peer = peer.Unmap()
	for len(forwarded) > 0 && id.Trusts(peer) {
		i := bytes.LastIndexAny(forwarded, ",\x00")
		last := forwarded[i+1:]
		forwarded = forwarded[:max(i, 0)]
		next, ok := parseAddress(string(last))
		if !ok {
			return peer
		}
		peer = next
	}
	return peer
}

// Place is where a request comes from, by its fields: see Trusted.
func (id *Identity) Place(fields []wire.Field, peer netip.Addr) netip.Addr {
	if !id.Trusts(peer) {
		return peer
	}
	var forwarded []byte
	for i := range fields {
		if wire.EqualFold(fields[i].Name, "x-forwarded-for") {
			forwarded = joined(forwarded, fields[i].Value)
		}
	}
	return id.address(peer, forwarded)
}

// parseAddress reads an address as balancers write it: some with the port, some in brackets or quotes.
func parseAddress(text string) (a netip.Addr, ok bool) {
	text = strings.Trim(text, " \t\"")
	if ap, err := netip.ParseAddrPort(text); err == nil {
		return ap.Addr().Unmap(), true
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	a, err := netip.ParseAddr(text)
	return a.Unmap(), err == nil
}

// withoutPorts is a list of addresses in one spelling, without their ports. What is no address stays as it is.
func withoutPorts(list []byte) []byte {
	out := make([]byte, 0, len(list))
	for i, part := range bytes.Split(list, []byte(",")) {
		if i > 0 {
			out = append(out, ',')
		}
		if a, ok := parseAddress(string(part)); ok {
			out = a.AppendTo(out)
		} else {
			out = append(out, part...)
		}
	}
	return out
}

// Trusts reports whether an address is one of those whose X-Forwarded-For is believed.
func (id *Identity) Trusts(a netip.Addr) bool {
	for _, p := range id.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// joined keeps repeated fields apart from one with both values.
func joined(a, b []byte) []byte {
	if a == nil {
		return b
	}
	return append(append(append(make([]byte, 0, len(a)+len(b)+1), a...), 0), b...)
}

package wire

// EndToEnd appends to dst the fields that may be passed on (RFC 9110 §7.6.1): all but Connection, Keep-Alive, Proxy-Connection,
// Proxy-Authenticate, Proxy-Authorization, TE, Trailer, Transfer-Encoding, Upgrade, HTTP2-Settings, and those that Connection names.
// Three kinds of fields stay even if Connection names them. Host stays because the request is invalid without it. Content-Length stays
// because it follows the framing that this package decided: AppendRequest and AppendResponse write it at its place with the value of
// Length. Fields that identify the client (Head.Identity) stay, because a gateway in front may have added them to restrict its clients.
// The clients must not be able to remove them (RFC 9110 §7.6.1 forbids naming fields that are meant for all recipients).
func (h *Head) EndToEnd(dst []Field) []Field {
	for i := range h.Fields {
		if !h.hopByHop(h.Fields[i].Name) {
			dst = append(dst, h.Fields[i])
		}
	}
	return dst
}

// hopByHop reports whether the field of that name belongs to this connection only.
func (h *Head) hopByHop(name []byte) bool {
	switch {
	case len(name) < len(hopNames) && isOneOf(hopNames[len(name)], name):
		return true
	case !h.namesFields:
		return false
	}
	return h.names(name) && !EqualFold(name, "Host") && !EqualFold(name, "Content-Length") && !h.identifies(name)
}

// hopNames are the fields that are always of one connection only, by the length of their names.
var hopNames = [20][]string{
	2: {"TE"}, 7: {"Upgrade", "Trailer"}, 10: {"Connection", "Keep-Alive"}, 14: {"HTTP2-Settings"}, 16: {"Proxy-Connection"},
	17: {"Transfer-Encoding"}, 18: {"Proxy-Authenticate"}, 19: {"Proxy-Authorization"},
}

func isOneOf(names []string, name []byte) bool {
	for _, n := range names {
		if EqualFold(name, n) {
			return true
		}
	}
	return false
}

// identifies reports whether the field of that name says who asks, or for whom. The engines' realms, proxy authentication and run-as
// use such fields, and so do gateways by convention.
func (h *Head) identifies(name []byte) bool {
	if h.Identity != nil {
		return h.Identity.Has(name) || IsAddress(name)
	}
	return defaultIdentity.Has(name) || IsAddress(name)
}

// names reports whether a Connection field lists name.
func (h *Head) names(name []byte) bool {
	for i := range h.Fields {
		if !EqualFold(h.Fields[i].Name, "Connection") {
			continue
		}
		for v := h.Fields[i].Value; len(v) > 0; {
			var option []byte
			option, v = cutComma(v)
			if len(option) == len(name) && equalFoldBytes(option, name) {
				return true
			}
		}
	}
	return false
}

func equalFoldBytes(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

package client

import (
	"bytes"
	"encoding/hex"

	"optimist/internal/identity"
	"optimist/internal/session"
)

// in is the client within a trace. Where a request without a name has no session, its trace is one.
func (c Client) in(t session.Trace) Client {
	switch {
	case t == session.Trace{}:
	case c.Known:
		c.Session = c.Session.In(t)
	default:
		c.Session, c.Known = identity.OfTrace(c.Session.Credentials(), t).At(c.Session.Network()), true
	}
	return c
}

// traceOf is the trace that a request is of, if traces count.
func (id *Identity) traceOf(traceparent []byte) (t session.Trace) {
	if !id.Traces {
		return t
	}
	return traceOf(traceparent)
}

// traceOf is the trace id of a traceparent, by the W3C's Trace Context, level 1: the zero value where that isn't valid. Of later
// versions only the beginning is known.
func traceOf(traceparent []byte) (t session.Trace) {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	v := bytes.TrimSpace(traceparent)
	switch {
	case len(v) < length || v[2] != '-' || v[35] != '-' || v[52] != '-':
		return t
	case !lowerHex(v[:2]) || !lowerHex(v[3:35]) || !lowerHex(v[36:52]) || !lowerHex(v[53:length]):
		return t
	case string(v[:2]) == "ff", string(v[:2]) == "00" && len(v) > length, len(v) > length && v[length] != '-':
		return t
	case len(bytes.Trim(v[36:52], "0")) == 0:
		return t
	}
	_, _ = hex.Decode(t[:], v[3:35])
	return t
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

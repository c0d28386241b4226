package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/netip"

	"optimist/internal/uri"
	"optimist/internal/wire"
)

// Name is a request's session in a word that can be shown and kept: the same in every proxy and after a restart, and another for
// every other session. It is the session's name or the client's address, and what tells the credentials from others; within a
// name an equals sign and an at sign are encoded.
func (id *Identity) Name(fields []wire.Field, query []byte, addr netip.AddrPort, subject []byte) string {
	m := id.gather(fields, query, nil)
	m.subject = subject
	var name []byte
	switch {
	case len(m.name) > longestName:
		sum := sha256.Sum256(m.name)
		name = hex.AppendEncode([]byte("sha256="), sum[:16])
	case len(m.name) > 0:
		name = uri.AppendSegment(nil, string(m.name))
	case id.Infer && id.Address:
		name = uri.AppendSegment([]byte("ip="), id.address(addr.Addr(), m.forwarded).String())
	}
	if cr := fingerprint(m.askers()); cr != "" {
		name = append(append(name, '@'), cr...)
	}
	return string(name)
}

// longestName is up to how many bytes of a session's name are shown.
const longestName = 64

// fingerprint tells credentials from others; it is empty where there are none. Of a password nothing goes into it: it could be
// guessed, and tried, by everybody who sees the word.
func fingerprint(values [][]byte) string {
	h := sha256.New()
	any := false
	for _, v := range values {
		any = true
		v = user(v)
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(v)))) //nolint:gosec // a header is shorter
		h.Write(v)
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// user is the name in an Authorization by password; any other value is itself.
func user(value []byte) []byte {
	scheme, rest, ok := bytes.Cut(value, []byte(" "))
	if !ok || !wire.EqualFold(scheme, "basic") {
		return value
	}
	text, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(rest)))
	if err != nil {
		return value
	}
	name, _, _ := bytes.Cut(text, []byte(":"))
	return append([]byte("basic "), name...)
}

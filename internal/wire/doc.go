// Package wire is HTTP/1.1 as bytes (RFC 9112): heads, framing, bodies, and what of a head may be passed on.
//
// It promises that a message it accepts has one length and that what it writes parses as what it read. It does not
// promise tolerance: a request that two parsers could read differently is refused, never repaired. It knows nothing of
// methods, paths or media types, does no content decoding, and never upgrades a connection to another protocol.
package wire

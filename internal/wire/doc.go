// Package wire is HTTP/1.1 as bytes (RFC 9112): heads, framing, bodies, and the fields of a head that may be passed on.
//
// Each message that the package accepts has one length. Each head that it writes parses as the head that it has read. The package
// doesn't promise tolerance: a request that two parsers could read differently is refused, never repaired. It knows nothing of
// methods, paths, media types and content codings, and never upgrades a connection to another protocol.
package wire

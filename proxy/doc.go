// Package proxy is the door: it takes HTTP/1.1 connections from clients, hands each request to an interceptor or forwards it
// as it is, and turns every failure into an answer of the engine's own shape.
//
// It promises that what isn't intercepted goes through unchanged (the target's own bytes, header order and spelling,
// framing, body), that no message is forwarded which two parsers could read differently, and that a slow or vanished client
// costs bounded memory and time. It does not promise that an answer ever comes: the engine may be silent for hours, so only
// connecting, the client's own sending and receiving, and idling are timed. It doesn't speak HTTP/2, decode bodies, or
// upgrade connections.
package proxy

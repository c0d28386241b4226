// Package proxy is the door. It takes HTTP/1.1 connections from clients, hands each request to an interceptor or forwards it
// unchanged, and turns every failure into an answer of the engine's own shape.
//
// It promises three things. A request that isn't intercepted goes through unchanged: target, fields, framing and body keep
// their bytes. A message that two parsers could read differently isn't forwarded. A client that is slow or has left costs
// bounded memory and time. It doesn't promise that an answer ever comes: the engine may be silent for hours, and only
// connecting, the client's own sending and receiving, and idling have time limits. It doesn't speak HTTP/2, decode bodies, or
// upgrade connections.
package proxy

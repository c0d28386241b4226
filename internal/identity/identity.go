// Package identity tells clients apart: by their credentials, by the session that they name, and by the copy of a document that
// they hold.
//
// It keeps nothing. Its values show no secret.
package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// Credentials stand for what a client authenticated with. They are a digest, so that no secret is kept, and are
// compared only for equality. The zero value stands for a client without credentials.
type Credentials [16]byte

// CredentialsOf returns the credentials of a request that carries these values: its Authorization, and all other values that decide which
// documents the engine shows. The values' boundaries count. With no values, or only empty ones, it returns the zero value.
func CredentialsOf(values ...[]byte) (c Credentials) {
	var buf [sha256.Size]byte
	h, empty := sha256.New(), true
	for _, v := range values {
		empty = empty && len(v) == 0
		h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(len(v))))
		h.Write(v)
	}
	if !empty {
		copy(c[:], h.Sum(buf[:0]))
	}
	return c
}

// Session is one client, as far as it can be told apart. It is comparable and holds no secret. Credentials are part of
// it: the same name, or the same address, under other credentials is another session.
type Session struct {
	credentials Credentials
	name        [16]byte
	named       bool
	implicit    bool    // optimist names it, and not the client: the session of one copy of a document (see Holding), or of a trace's writes
	many        bool    // the request shows many documents; in no key
	trace       Trace   // of the request; in no key
	program     Program // of the request; in no key
	network     Network // of the request; in no key
}

// Named returns the session that a client named itself in a header: one thread of work.
func Named(c Credentials, name []byte) Session {
	s := Session{credentials: c, named: true}
	sum := sha256.Sum256(name)
	copy(s.name[:], sum[:])
	return s
}

// Inferred returns the session of all clients with these credentials at this address.
func Inferred(c Credentials, addr netip.Addr) Session {
	return Session{credentials: c, name: addr.As16()}
}

// IsNamed reports whether the client named the session itself.
func (s Session) IsNamed() bool { return s.named }

// Name is the session's name, or what stands for its clients' address. Sessions with the same one differ in whether they are named, or in
// their credentials.
func (s Session) Name() [16]byte { return s.name }

// IsImplicit reports whether optimist has named the session itself: it is the session of one copy of a document, or of a trace's writes.
func (s Session) IsImplicit() bool { return s.implicit }

// Credentials returns the credentials that the session is bound to.
func (s Session) Credentials() Credentials { return s.credentials }

// Trace is the trace id of the W3C Trace Context that a request carries: what belongs to one piece of work. The zero value is none.
//
// It tells the clients of an inferred session apart as far as it can, and isn't a session of its own: many set-ups begin a trace with
// each request. A write is made from
//
//	a read of its trace that is outstanding; several threads of work may share a trace, and then the closest of them
//	what its trace wrote last, from such a read
//	whatever it would be without a trace: its read may have been made outside of the trace
type Trace [16]byte

// In returns the session with the trace that its request is of. A session that its client named has none: the name says more.
func (s Session) In(t Trace) Session {
	if !s.named {
		s.trace = t
	}
	return s
}

// Bare returns the session without what only its request says: the trace, the program, the network, and whether it shows many documents.
func (s Session) Bare() Session {
	s.trace, s.program, s.network, s.many = Trace{}, 0, 0, false
	return s
}

// ShowingMany returns the session with a request that shows many documents, most of which its client won't write.
func (s Session) ShowingMany() Session {
	s.many = true
	return s
}

// ShowsMany reports whether the request shows many documents.
func (s Session) ShowsMany() bool { return s.many }

// OfTrace returns the session of all clients with these credentials whose requests are of the trace.
func OfTrace(c Credentials, t Trace) Session { return Session{credentials: c, name: t} }

// Trace returns the trace that the request is of; zero: none.
func (s Session) Trace() Trace { return s.trace }

// InTrace reports whether the request is of a trace.
func (s Session) InTrace() bool { return s.trace != Trace{} }

// Thread returns the session of the thread of work that the client names: the session itself, or the one of writes in its trace. ok is
// false if the client names none.
func (s Session) Thread() (thread Session, ok bool) {
	if s.InTrace() {
		return s.Written(), true
	}
	return s, s.named
}

// Written is the session of what is written in the trace.
func (s Session) Written() Session {
	w := Session{credentials: s.credentials, name: s.trace, named: true, implicit: true, network: s.network, many: s.many}
	for i, b := range s.name {
		w.name[i] ^= b
	}
	return w
}

// Everybody stands for all with the same credentials.
func (s Session) Everybody() Session { return Session{credentials: s.credentials} }

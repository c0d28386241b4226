package session

import (
	"optimist/internal/doc"
	"optimist/internal/seen"
)

// Knows reports whether a write of the document may get a base: whether the session knows something of the document, or has known it.
// It is cheaper than Take, and reserves nothing.
func (s *Store) Knows(sess Session, ref doc.Ref) bool {
	if sess.InTrace() && s.Knows(sess.Written(), ref) {
		return true
	}
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	k := seen.KeyOf(sess, ref)
	return e != nil || sh.inFlight.Of(k) != nil || sh.Lost(k, nil) != ReasonNone || sh.Noted(&k, s.clock())
}

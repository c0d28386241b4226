package session

import (
	"optimist/internal/doc"
	"optimist/internal/seen"
)

// Knows reports whether the session knows of the document what may be the base of a write, or has known it: without that a write of it has
// none. It is cheaper than Take, and reserves nothing.
func (s *Store) Knows(sess Session, ref doc.Ref) bool {
	if sess.InTrace() && s.Knows(sess.Written(), ref) {
		return true
	}
	sh, e, _, _ := s.open(sess, ref)
	defer sh.mu.Unlock()
	k := seen.KeyOf(sess, ref)
	return e != nil || sh.inFlight.Of(k) != nil || sh.Lost(k, nil) != ReasonNone || sh.Noted(&k, s.clock())
}

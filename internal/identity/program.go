package identity

import "hash/maphash"

// Program stands for the program that a request says it comes from, by its User-Agent; 0: it says nothing.
//
// It tells the clients of an inferred session apart as far as it can, and isn't a session of its own: an application may read with one
// library and write with another. A program seldom changes what only another program has read, while it has a read of its own in hand.
type Program uint32

var programSeed = maphash.MakeSeed()

// ProgramOf returns the program that a User-Agent names.
func ProgramOf(userAgent []byte) Program {
	if len(userAgent) == 0 {
		return 0
	}
	return Program(max(1, uint32(maphash.Bytes(programSeed, userAgent)))) //nolint:gosec // half of the hash
}

// By returns the session with the program that its request comes from. A session that its client named has none: the name says more.
func (s Session) By(p Program) Session {
	if !s.named {
		s.program = p
	}
	return s
}

// Program returns the program that the request comes from; 0: it isn't known.
func (s Session) Program() Program { return s.program }

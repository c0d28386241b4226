package stamp

import (
	"bytes"
	"encoding/json"

	"optimist/internal/doc"
)

// scanner goes through the members at the top of a JSON object without copying them. It takes values for what they seem to be by their
// brackets and quotes: whether they are JSON is for those to tell who read them.
type scanner struct {
	b       []byte
	i       int
	started bool
	done    bool
}

// member is where a member's parts are.
type member struct {
	key, keyEnd int // with its quotes
	value, end  int
	comma       int // behind it, -1 for the last
}

// next gives the next member; more is false at the object's end. ok is false where the bytes aren't one object, with white space
// around it.
func (s *scanner) next() (m member, more, ok bool) {
	if s.done {
		return m, false, true
	}
	if !s.started {
		s.i = doc.SkipSpace(s.b, 0)
		if s.at() != '{' {
			return m, false, false
		}
		s.i = doc.SkipSpace(s.b, s.i+1)
		s.started = true
		if s.at() == '}' {
			return m, false, s.close()
		}
	}
	m.key = s.i
	if m.keyEnd = doc.StringEnd(s.b, s.i); m.keyEnd < 0 {
		return m, false, false
	}
	if s.i = doc.SkipSpace(s.b, m.keyEnd); s.at() != ':' {
		return m, false, false
	}
	m.value = doc.SkipSpace(s.b, s.i+1)
	if m.end = doc.ValueEnd(s.b, m.value); m.end <= m.value {
		return m, false, false
	}
	switch s.i = doc.SkipSpace(s.b, m.end); s.at() {
	case ',':
		m.comma = s.i
		s.i = doc.SkipSpace(s.b, s.i+1)
		return m, true, true
	case '}':
		m.comma = -1
		return m, true, s.close()
	}
	return m, false, false
}

// at is the byte at hand, 0 behind the end.
func (s *scanner) at() byte {
	if s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

// close ends at the closing brace, behind which nothing may come.
func (s *scanner) close() bool {
	s.done = true
	return doc.SkipSpace(s.b, s.i+1) == len(s.b)
}

// end goes to the object's end.
func (s *scanner) end() (members int, ok bool) {
	for {
		_, more, ok := s.next()
		if !ok || !more {
			return members, ok
		}
		members++
	}
}

// is reports whether the member has the name, however that is written.
func (m *member) is(b []byte, name string) bool {
	key := b[m.key+1 : m.keyEnd-1]
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key) == name
	}
	plain, ok := unquote(b[m.key:m.keyEnd])
	return ok && plain == name
}

// unquote gives the meaning of a JSON string.
func unquote(quoted []byte) (plain string, ok bool) {
	err := json.Unmarshal(quoted, &plain)
	return plain, err == nil
}

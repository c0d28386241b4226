package jsontext

import (
	"bytes"
	"encoding/json"
)

// IsSpace reports whether a byte is white space of JSON.
func IsSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// SkipSpace is the index of the first byte from i on that isn't white space; len(b) where there is none.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// StringEnd is the index behind the string that begins at i, -1 where none does.
func StringEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' { // the quote that the string begins with ends this
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// ValueEnd is the index behind the value that begins at i, -1 where it has no end before that of b.
func ValueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return StringEnd(b, i)
	case '{', '[':
		return containerEnd(b, i)
	}
	for ; i < len(b); i++ {
		if c := b[i]; c <= ',' && (c == ',' || IsSpace(c)) || c == '}' || c == ']' {
			return i
		}
	}
	return -1 // whatever it is in ends later
}

// containerEnd is ValueEnd of an object or a list.
func containerEnd(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = StringEnd(b, i) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// A Scanner goes through the members of an object, or the elements of an array, without copying or allocating. It takes values for what
// they seem to be by their brackets and quotes: whether they are JSON, Valid tells, or whoever reads them.
type Scanner struct {
	Member // the one that Next has found

	text  []byte
	at    int  // where the next one begins; -1 where nothing can be read
	end   byte // the bracket
	over  int  // behind the bracket; 0 before it is reached
	whole bool
}

// A Member is where a member, or an element, stands in the text.
type Member struct {
	Key, KeyEnd int // with its quotes; of an element both are 0
	Value, End  int
	Comma       int // behind it, -1 for the last
}

// Scan returns a Scanner of the object or array that the text is, with white space around it. In any other text it finds nothing.
func Scan(text []byte) Scanner {
	s := Scanner{text: text, at: -1}
	i := SkipSpace(text, 0)
	if i == len(text) || text[i] != '{' && text[i] != '[' {
		return s
	}
	s.end = text[i] + 2 // as } and ] are in ASCII
	if i = SkipSpace(text, i+1); s.byte(i) == s.end {
		s.close(i)
	} else {
		s.at = i
	}
	return s
}

// byte is the one at i, 0 behind the end.
func (s *Scanner) byte(i int) byte {
	if i >= len(s.text) {
		return 0
	}
	return s.text[i]
}

// Next goes to the next member. It reports false behind the last, and at the first byte that can't be. A value that may go on behind
// the text is left out.
func (s *Scanner) Next() bool {
	return s.Enter() && s.Skip()
}

// Skip ends what Enter has begun, for a value that nobody has read. It reports false for a value that may go on behind the text.
func (s *Scanner) Skip() bool { return s.leave(ValueEnd(s.text, s.Value)) }

// Enter goes to the next member as Next does, for a value that is read by Inner, and before anybody knows where the value ends.
// Leave or Skip has to follow.
func (s *Scanner) Enter() bool {
	i := s.at
	s.at = -1
	if i < 0 {
		return false
	}
	if s.end == '}' {
		s.Key = i
		if s.KeyEnd = StringEnd(s.text, i); s.KeyEnd < 0 {
			return false
		}
		if i = SkipSpace(s.text, s.KeyEnd); s.byte(i) != ':' {
			return false
		}
		i = SkipSpace(s.text, i+1)
	}
	s.Value, s.Comma = i, -1
	return true
}

// Inner returns a Scanner of the value that Enter has found. What stands behind the value doesn't matter to it.
func (s *Scanner) Inner() Scanner { return Scan(s.text[min(s.Value, len(s.text)):]) }

// Leave ends what Enter has begun, once inner has gone through the value. It reports false if inner hasn't reached the value's end.
func (s *Scanner) Leave(inner *Scanner) bool { return inner.over > 0 && s.leave(s.Value+inner.over) }

// leave notes that the value ends before the index end.
func (s *Scanner) leave(end int) bool {
	s.End = end
	if end <= s.Value {
		return false
	}
	switch i := SkipSpace(s.text, end); s.byte(i) {
	case ',':
		s.Comma, s.at = i, SkipSpace(s.text, i+1)
	case s.end:
		s.close(i)
	}
	return true
}

// close notes that the bracket is at i.
func (s *Scanner) close(i int) {
	s.over = i + 1
	s.whole = SkipSpace(s.text, s.over) == len(s.text)
}

// IsObject reports whether it goes through an object's members.
func (s *Scanner) IsObject() bool { return s.end == '}' }

// Name is the member's name as it is written, which may be with escapes.
func (s *Scanner) Name() []byte { return s.text[s.Key+1 : s.KeyEnd-1] }

// Named reports whether the member has the name, however that is written.
func (s *Scanner) Named(name string) bool {
	if written := s.Name(); bytes.IndexByte(written, '\\') < 0 {
		return string(written) == name
	}
	plain, ok := s.PlainName()
	return ok && plain == name
}

// PlainName is the member's name; ok is false for what no JSON has as one.
func (s *Scanner) PlainName() (name string, ok bool) {
	if written := s.Name(); bytes.IndexByte(written, '\\') < 0 {
		return string(written), true
	}
	return name, json.Unmarshal(s.text[s.Key:s.KeyEnd], &name) == nil
}

// Text is the value as it stands there.
func (s *Scanner) Text() []byte { return s.text[s.Value:s.End] }

// Whole reports, behind the last member, whether the text ended with it and its bracket.
func (s *Scanner) Whole() bool { return s.whole }

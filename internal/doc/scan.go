package doc

import "bytes"

// Steps through well-formed JSON, without copying or allocating. Where it can't be, they say so, and never go behind it.

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
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = StringEnd(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1 // whatever it is in ends later
}

// Package uri reads the parts of a request's target as the engines read them: the segments of its path, and the parameters of
// its query.
//
// It doesn't promise that what it reads is valid UTF-8.
package uri

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// EscapeError reports a percent sign that is followed neither by two hexadecimal digits nor by another one. Its text is the
// engines' own.
type EscapeError struct{ reason string }

// Error implements error.
func (e *EscapeError) Error() string { return e.reason }

func escapeError(raw []byte, at int) error {
	switch len(raw) - at {
	case 1:
		return &EscapeError{"unterminated escape sequence at end of string: " + string(raw)}
	case 2:
		return &EscapeError{"partial escape sequence at end of string: " + string(raw)}
	}
	return &EscapeError{fmt.Sprintf("invalid escape sequence `%s' at index %d of: %s", raw[at:at+3], at, raw)}
}

// Decode appends the meaning of a path segment to dst, as the engines read it: a plus sign is a plus sign, since it stands for
// a space in query values only, and two percent signs are one. Bytes above 127 should have been encoded. In a segment that has
// a percent sign they are UTF-8, as an encoded byte is; in one that has none each of them is a character of Latin-1, so that a
// name in plain UTF-8 is another one than the same name encoded.
func Decode(dst, raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '%') < 0 {
		return latin1(dst, raw), nil
	}
	return decode(dst, raw, false)
}

// DecodeValue is Decode for a raw query value, in which a plus sign is an encoded space.
func DecodeValue(dst, raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '%') < 0 && bytes.IndexByte(raw, '+') < 0 {
		return latin1(dst, raw), nil
	}
	return decode(dst, raw, true)
}

// latin1 appends text whose bytes are its characters.
func latin1(dst, text []byte) []byte {
	for _, c := range text {
		dst = utf8.AppendRune(dst, rune(c))
	}
	return dst
}

// Unescape is Decode for names that only optimist reads: bytes above 127 are UTF-8 in any case, so that a name is the same one
// whether it was encoded or not.
func Unescape(dst, raw []byte) ([]byte, error) { return decode(dst, raw, false) }

// UnescapeValue is Unescape for a raw query value.
func UnescapeValue(dst, raw []byte) ([]byte, error) { return decode(dst, raw, true) }

func decode(dst, raw []byte, plus bool) ([]byte, error) {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '%' && i+1 < len(raw) && raw[i+1] == '%':
			dst = append(dst, '%')
			i++
		case c == '%':
			if i+2 >= len(raw) || unhex(raw[i+1]) > 15 || unhex(raw[i+2]) > 15 {
				return dst, escapeError(raw, i)
			}
			dst = append(dst, unhex(raw[i+1])<<4|unhex(raw[i+2]))
			i += 2
		case c == '+' && plus:
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// Plain are the bytes of a text that stand for themselves; all others are percent-encoded.
type Plain [256]bool

// PlainBytes are those that something holds for.
func PlainBytes(holds func(c byte) bool) *Plain {
	var p Plain
	for c := range p {
		p[c] = holds(byte(c))
	}
	return &p
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

var (
	inSegment = PlainBytes(func(c byte) bool { return alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '~' })
	inForm    = PlainBytes(func(c byte) bool { return alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '*' })
)

// AppendSegment percent-encodes a name as one path segment.
func AppendSegment(dst []byte, name string) []byte { return AppendEncoded(dst, name, inSegment) }

// AppendFormValue encodes a name as java.net.URLEncoder does, which makes the engine's Location.
func AppendFormValue(dst []byte, name string) []byte {
	return append(dst, bytes.ReplaceAll(AppendEncoded(nil, name, inForm), []byte("%20"), []byte("+"))...)
}

// AppendEncoded appends a text with its bytes percent-encoded, but for those that are plain.
func AppendEncoded(dst []byte, text string, plain *Plain) []byte {
	const hex = "0123456789ABCDEF"
	dst = slices.Grow(dst, len(text))
	for i := range len(text) {
		if c := text[i]; plain[c] {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

package api

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// Param returns the raw, undecoded value of a query parameter, and whether it is there. The last one counts. Pairs end at
// an ampersand or a semicolon, and names may be percent-encoded, as the engines read them.
func Param(query []byte, name string) (value []byte, ok bool) {
	for len(query) > 0 {
		var p pair
		p, query = nextPair(query)
		if p.is(name) {
			value, ok = p.value, true
		}
	}
	return value, ok
}

// Without appends the query to dst without the named parameters, all other bytes kept.
func Without(dst, query []byte, names ...string) []byte { return appendPairs(dst, query, names, false) }

// Only appends the named parameters of the query to dst, their bytes kept.
func Only(dst, query []byte, names ...string) []byte { return appendPairs(dst, query, names, true) }

func appendPairs(dst, query []byte, names []string, named bool) []byte {
	start := len(dst)
	for len(query) > 0 {
		var p pair
		p, query = nextPair(query)
		if len(p.raw) == 0 || p.isAny(names) != named {
			continue
		}
		if len(dst) > start {
			dst = append(dst, '&')
		}
		dst = append(dst, p.raw...)
	}
	return dst
}

// pair is one parameter as it stands in a query.
type pair struct{ raw, key, value []byte }

func nextPair(query []byte) (p pair, rest []byte) {
	name, end, eq := 0, len(query), -1
	for i, c := range query {
		if c == '&' || c == ';' {
			end, rest = i, query[i+1:]
			break
		}
		switch {
		case c != '=' || eq >= 0:
		case i == name: // before the name: the engines take no heed of it
			name++
		default:
			eq = i
		}
	}
	p.raw = query[:end]
	if eq < 0 {
		p.key = query[name:end]
		return p, rest
	}
	p.key, p.value = query[name:eq], query[eq+1:end]
	return p, rest
}

func (p pair) is(name string) bool {
	if string(p.key) == name {
		return true
	}
	for _, c := range p.key {
		if c == '%' {
			var buf [64]byte
			key, err := DecodeValue(buf[:0], p.key)
			return err == nil && string(key) == name
		}
	}
	return false
}

func (p pair) isAny(names []string) bool {
	for _, n := range names {
		if p.is(n) {
			return true
		}
	}
	return false
}

// ErrEncoding reports a percent sign that is followed neither by two hexadecimal digits nor by another one.
var ErrEncoding = errors.New("invalid percent-encoding")

// Decode appends the meaning of a path segment to dst, as the engines read it: a plus sign is a plus sign, since it stands for a space in
// query values only, and two percent signs are one. Bytes above 127 should have been encoded. In a segment that has a percent sign they
// are UTF-8, as an encoded byte is; in one that has none each of them is a character of Latin-1, so that a name in plain UTF-8 is another
// one than the same name encoded.
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

// Unescape is Decode for names that only optimist reads: bytes above 127 are UTF-8 in any case, so that a name is the same one whether it
// was encoded or not.
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
			if i+2 >= len(raw) {
				return dst, ErrEncoding
			}
			hi, lo := unhex(raw[i+1]), unhex(raw[i+2])
			if hi > 15 || lo > 15 {
				return dst, ErrEncoding
			}
			dst = append(dst, hi<<4|lo)
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

// AppendSegment percent-encodes a name as one path segment.
func AppendSegment(dst []byte, name string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' || c == '~' {
			dst = append(dst, c)
			continue
		}
		dst = append(dst, '%', hex[c>>4], hex[c&15])
	}
	return dst
}

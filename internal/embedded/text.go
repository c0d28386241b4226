package embedded

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote decodes what stands between a string's quotes. Its escapes were checked when it was parsed. A lone surrogate
// becomes the replacement character.
func unquote(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(s[i+1:])
			i += 4
			if utf16.IsSurrogate(r) && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(s[i+3:])); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, s[i])
		}
	}
	return string(out)
}

func hex4(s []byte) rune {
	n, _ := strconv.ParseUint(string(s[:4]), 16, 32)
	return rune(n)
}

const upperHex = "0123456789ABCDEF"

// appendString appends s as a JSON string, escaped as the engines do: quotes, backslashes and control characters only.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
		}
	}
	return append(dst, '"')
}

// appendCompact appends a value without white space between its parts; scalars and names stay as written.
func appendCompact(dst []byte, n *node) []byte {
	switch n.kind {
	case kindObject:
		dst = append(dst, '{')
		for i := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, '"'), n.kids[i].key...), '"', ':')
			dst = appendCompact(dst, &n.kids[i])
		}
		return append(dst, '}')
	case kindArray:
		dst = append(dst, '[')
		for i := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendCompact(dst, &n.kids[i])
		}
		return append(dst, ']')
	default:
		return append(dst, n.raw...)
	}
}

// appendPretty appends a value as ?pretty shows it.
func appendPretty(dst []byte, n *node, depth int) []byte {
	if n.kind != kindObject && n.kind != kindArray {
		return append(dst, n.raw...)
	}
	open, end := byte('{'), byte('}')
	if n.kind == kindArray {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	if len(n.kids) == 0 {
		return append(dst, ' ', end)
	}
	for i := range n.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendIndent(dst, depth+1)
		if n.kind == kindObject {
			dst = append(append(append(dst, '"'), n.kids[i].key...), '"', ' ', ':', ' ')
		}
		dst = appendPretty(dst, &n.kids[i], depth+1)
	}
	return append(appendIndent(dst, depth), end)
}

func appendIndent(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, ' ', ' ')
	}
	return dst
}

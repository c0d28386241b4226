package embedded

import (
	"bytes"
	"math"
	"strconv"
	"strings"
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

// appendScalar appends a string, number or literal as the engine writes what it has parsed: escapes that need none are
// undone, and decimals are doubles. That it loses digits is the engine's doing, and why a filtered, pretty or updated
// document is no source of bytes.
func appendScalar(dst []byte, n *node) []byte {
	switch {
	case n.kind == kindString && bytes.IndexByte(n.raw, '\\') >= 0:
		return appendString(dst, n.text())
	case n.kind == kindNumber && bytes.ContainsAny(n.raw, ".eE"):
		return appendDouble(dst, n.raw)
	case n.kind == kindNumber && len(n.raw) == 2 && n.raw[0] == '-' && n.raw[1] == '0':
		return append(dst, '0')
	default:
		return append(dst, n.raw...)
	}
}

// appendDouble appends a decimal in the format of Java's Double.toString.
func appendDouble(dst, raw []byte) []byte {
	d, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		if math.IsInf(d, -1) {
			return append(dst, `"-Infinity"`...)
		}
		return append(dst, `"Infinity"`...)
	}
	if a := math.Abs(d); a == 0 || a >= 1e-3 && a < 1e7 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, d, 'f', -1, 64)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, '.', '0')
		}
		return dst
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(d, 'E', -1, 64), "E")
	dst = append(dst, mantissa...)
	if !strings.Contains(mantissa, ".") {
		dst = append(dst, '.', '0')
	}
	if exponent[0] == '-' {
		return append(append(dst, 'E', '-'), strings.TrimLeft(exponent[1:], "0")...)
	}
	return append(append(dst, 'E'), strings.TrimLeft(exponent[1:], "0")...)
}

// appendName appends an object's member name and its colon.
func appendName(dst []byte, n *node) []byte {
	return append(appendString(dst, n.name), ':')
}

// appendCompact appends a value without white space between its parts.
func appendCompact(dst []byte, n *node) []byte {
	switch n.kind {
	case kindObject:
		dst = append(dst, '{')
		for i := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendName(dst, &n.kids[i])
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
		return appendScalar(dst, n)
	}
}

// appendPretty appends a value as ?pretty shows it.
func appendPretty(dst []byte, n *node, depth int) []byte {
	if n.kind != kindObject && n.kind != kindArray {
		return appendScalar(dst, n)
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
			dst = append(appendString(dst, n.kids[i].name), ' ', ':', ' ')
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

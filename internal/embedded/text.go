package embedded

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"optimist/rewrite/tree"
)

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
		case strings.IndexByte("\b\f\n\r\t", c) >= 0:
			dst = append(dst, '\\', "bfnrt"[strings.IndexByte("\b\f\n\r\t", c)])
		default:
			dst = append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&15])
		}
	}
	return append(dst, '"')
}

// appendComma appends a comma, unless nothing, an opening bracket or a colon stands before it.
func appendComma(dst []byte) []byte {
	if n := len(dst); n == 0 || strings.IndexByte("{[:", dst[n-1]) >= 0 {
		return dst
	}
	return append(dst, ',')
}

// appendPlace appends the members that say where a document is.
func appendPlace(dst []byte, index, id string) []byte {
	return appendString(appendName(appendString(appendName(dst, "_index"), index), "_id"), id)
}

// appendName begins a member of an object.
func appendName(dst []byte, name string) []byte {
	return append(appendString(appendComma(dst), name), ':')
}

// appendScalar appends a string, number or literal in the form in which the engine writes it after parsing: without needless escapes, and
// with decimals as doubles. Digits may be lost, as in the engine. So a filtered, pretty or updated document doesn't show the stored bytes.
func appendScalar(dst []byte, n *node) []byte {
	switch {
	case n.kind == tree.String && bytes.IndexByte(n.raw, '\\') >= 0:
		return appendString(dst, n.text())
	case n.kind == tree.Number && bytes.ContainsAny(n.raw, ".eE"):
		return appendDouble(dst, n.raw)
	case n.kind == tree.Number && len(n.raw) == 2 && n.raw[0] == '-' && n.raw[1] == '0':
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
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return append(dst, mantissa+"E"+sign+strings.TrimLeft(exponent[1:], "0")...)
}

// compact is a value without white space between its parts.
func compact(n *node) []byte { return appendValue(nil, n, "") }

// rewritten returns a document in the form in which the engine writes it after parsing. Bytes that aren't JSON stay as they are.
func rewritten(source []byte) []byte {
	n, _, err := parseJSON(source)
	if err != nil {
		return source
	}
	return compact(n)
}

// appendValue appends a value. If line is empty, the value is compact. Else it is as ?pretty shows it, and line is a line break and the
// value's indentation.
func appendValue(dst []byte, n *node, line string) []byte {
	if !n.kind.IsContainer() {
		return appendScalar(dst, n)
	}
	brackets, colon, below := "[]", ":", ""
	if n.kind == tree.Object {
		brackets = "{}"
	}
	if line != "" {
		colon, below = " : ", line+"  "
	}
	dst = append(dst, brackets[0])
	for i, kid := range n.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, below...)
		if n.kind == tree.Object {
			dst = append(appendString(dst, kid.name), colon...)
		}
		dst = appendValue(dst, kid, below)
	}
	switch {
	case line == "":
	case len(n.kids) == 0:
		dst = append(dst, ' ')
	default:
		dst = append(dst, line...)
	}
	return append(dst, brackets[1])
}

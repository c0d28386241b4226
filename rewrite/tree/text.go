package tree

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// hashSeed is the process's own, so that nobody can write a document whose keys all collide.
var hashSeed = maphash.MakeSeed()

// hashKey does the same for what isn't hashed as bytes.
var hashKey = maphash.String(hashSeed, "hashKey")

// A string's content is what it means, whatever is escaped. A surrogate without its other half becomes the three bytes that UTF-8 would
// have for it if it were a character (WTF-8), so that different halves stay different.

// content returns the content of a string, in buf if that has to be made.
func content(buf, text []byte, esc bool) []byte {
	if !esc {
		return text
	}
	for at := 0; at < len(text); {
		if text[at] == '\\' {
			buf, at = unescape(text, at, buf)
			continue
		}
		buf = append(buf, text[at])
		at++
	}
	return buf
}

// unescape appends what the escape at offset at stands for, and returns the offset after it.
func unescape(src []byte, at int, dst []byte) ([]byte, int) {
	switch c := src[at+1]; c {
	case 'b', 'f', 'n', 'r', 't':
		return append(dst, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)]), at + 2
	case 'u':
		r := hexRune(src, at+2)
		at += 6
		if utf16.IsSurrogate(r) {
			if at+6 <= len(src) && src[at] == '\\' && src[at+1] == 'u' {
				if both := utf16.DecodeRune(r, hexRune(src, at+2)); both != utf8.RuneError {
					return utf8.AppendRune(dst, both), at + 6
				}
			}
			return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F), at
		}
		return utf8.AppendRune(dst, r), at
	default: // a quote, a backslash, a slash
		return append(dst, c), at + 2
	}
}

func hexRune(src []byte, at int) rune {
	var r rune
	for _, c := range src[at : at+4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// onStack is how long an escaped text may be to be compared without taking memory.
const onStack = 128

// sameText reports whether two strings have the same content, however they are escaped.
func sameText(a []byte, aEsc bool, b []byte, bEsc bool) bool {
	if !aEsc && !bEsc {
		return string(a) == string(b)
	}
	return compareText(a, b, aEsc, bEsc) == 0
}

// compareText compares the contents of two strings by their bytes.
func compareText(a, b []byte, aEsc, bEsc bool) int {
	if aEsc == bEsc && string(a) == string(b) {
		return 0
	}
	var x, y [onStack]byte
	return bytes.Compare(content(x[:0], a, aEsc), content(y[:0], b, bEsc))
}

// hashText hashes the content of a string.
func hashText(s []byte, esc bool) uint64 {
	if !esc {
		return maphash.Bytes(hashSeed, s)
	}
	var buf [onStack]byte
	return maphash.Bytes(hashSeed, content(buf[:0], s, esc))
}

// AppendString appends s as a JSON string. Half surrogates, which unescaping leaves as three bytes, become escapes again,
// unless two of them would come to mean one character.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	half := false // an escaped one was just written
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == 0xED && i+2 < len(s) && s[i+1] >= 0xA0 && s[i+1] <= 0xBF && s[i+2]&0xC0 == 0x80 && !half {
			r := int64(c&0x0F)<<12 | int64(s[i+1]&0x3F)<<6 | int64(s[i+2]&0x3F)
			dst = strconv.AppendInt(append(dst, `\u`...), r, 16)
			half, i = true, i+2
			continue
		}
		half = false
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

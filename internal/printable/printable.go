// Package printable makes text of clients and engines safe to print: such a text must not move the cursor, hide what stands
// before it, or begin a line of its own.
package printable

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Word is a text for one word or cell: as it is, or, if a character in it can't be printed, in quotes and with escapes. Bytes that are
// no UTF-8 are escaped, too.
func Word(s string) string {
	if strings.ContainsFunc(s, unprintable) || strings.ToValidUTF8(s, "") != s {
		return strconv.Quote(s)
	}
	return s
}

// Line is a text of our own with words of others in it: as it is, but for the characters that can't be printed.
func Line(s string) string {
	if !strings.ContainsFunc(s, unprintable) && strings.ToValidUTF8(s, "") == s {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexFunc(s, func(r rune) bool { return unprintable(r) || r == '\ufffd' })
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		_, size := utf8.DecodeRuneInString(s[i:])
		quoted := strconv.Quote(s[i : i+size])
		b.WriteString(quoted[1 : len(quoted)-1])
		s = s[i+size:]
	}
	return b.String()
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

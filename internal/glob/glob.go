// Package glob matches names, and the paths of members in JSON, with patterns in which a star stands for any text, as the
// engine's parameters do. It knows nothing of requests, so that the embedded engine may share it.
package glob

import "strings"

// Match reports whether a pattern, whose stars stand for any number of bytes, matches the whole text. It looks at the text's end first,
// which tells most texts from `*-name`. Then it goes through the text once, with a single point to come back to, the last star: patterns
// come from clients, too.
func Match[T string | []byte](pattern string, text T) bool {
	for len(pattern) > 0 && len(text) > 0 && pattern[len(pattern)-1] != '*' {
		if pattern[len(pattern)-1] != text[len(text)-1] {
			return false
		}
		pattern, text = pattern[:len(pattern)-1], text[:len(text)-1]
	}
	i, star, mark := 0, -1, 0
	for j := 0; j < len(text); {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == text[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// Meet reports whether two patterns match some text both. Row i, column j of the table says whether the rest of a from i on and
// the rest of b from j on meet. The table is filled from the ends, so that many stars cost no more than a table.
func Meet(a, b string) bool {
	next, row := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*':
				row[j] = next[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == '*':
				row[j] = row[j+1] || i < len(a) && next[j]
			default:
				row[j] = i < len(a) && j < len(b) && a[i] == b[j] && next[j+1]
			}
		}
		next, row = row, next
	}
	return next[0]
}

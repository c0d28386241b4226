package api

import "strings"

// Wildcard reports whether a pattern, whose stars stand for any number of bytes, is that of the whole text. It goes through the text once,
// with a single point to come back to, the last star: patterns come from clients, too.
func Wildcard[T string | []byte](pattern string, text T) bool {
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

package rule

import "optimist/internal/api"

// pattern is an index name or one with `*` for any number of characters. Names are compared as they are: the engine's are
// in lower case.
type pattern string

// matches reports whether the pattern takes a name. A name with a leading dot is taken only by a pattern that has one, too,
// as hidden indices are by the engine's own wildcards.
func (p pattern) matches(name string) bool {
	if len(name) > 0 && name[0] == '.' && (len(p) == 0 || p[0] != '.') {
		return false
	}
	return p.glob(name)
}

func (p pattern) glob(name string) bool { return api.Wildcard(string(p), name) }

// covers reports whether every name that q takes is taken by p. A star of q is a name's part that only a star of p can take.
func (p pattern) covers(q pattern) bool {
	if len(q) > 0 && q[0] == '.' && (len(p) == 0 || p[0] != '.') {
		return false
	}
	return p.glob(string(q))
}

// meets reports whether some name is taken by both.
func (p pattern) meets(q pattern) bool {
	if dot(p) != dot(q) {
		return false
	}
	return globsMeet(string(p), string(q))
}

// dot reports whether only names with a leading dot are taken.
func dot(p pattern) bool { return len(p) > 0 && p[0] == '.' }

// globsMeet reports whether some text is taken by both globs. Row i, column j of the table says whether the rest of a from i
// on and the rest of b from j on meet; it is filled from the ends, so that many stars cost no more than a table.
func globsMeet(a, b string) bool {
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

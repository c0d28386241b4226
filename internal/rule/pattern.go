package rule

import "strings"

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

// glob matches in one pass with a single point to come back to: the last star.
func (p pattern) glob(name string) bool {
	i, star, mark := 0, -1, 0
	for j := 0; j < len(name); {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && p[i] == name[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}

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

// globsMeet walks two globs together. Names are at most 255 bytes and this runs at load only, so plain recursion will do.
func globsMeet(a, b string) bool {
	switch {
	case a == "" && b == "":
		return true
	case a != "" && a[0] == '*':
		return globsMeet(a[1:], b) || b != "" && globsMeet(a, b[1:])
	case b != "" && b[0] == '*':
		return globsMeet(b, a)
	case a == "" || b == "" || a[0] != b[0]:
		return false
	}
	return globsMeet(a[1:], b[1:])
}

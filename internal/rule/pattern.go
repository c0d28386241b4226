package rule

import "optimist/internal/glob"

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

func (p pattern) glob(name string) bool { return glob.Match(string(p), name) }

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
	return glob.Meet(string(p), string(q))
}

// dot reports whether only names with a leading dot are taken.
func dot(p pattern) bool { return len(p) > 0 && p[0] == '.' }

package learn

import (
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	maxPaths     = 128 // of an index
	maxPathBytes = 256
	maxKey       = 32 // bytes; a longer key is data, not a name
	maxSiblings  = 16 // further keys of one object are data
)

// index is what is known of one index.
type index struct {
	name   string // as a client named it last: an alias, perhaps
	paths  *lru.LRU[string, *stats]
	stars  map[string]bool // the objects whose keys are data
	blind  map[uint64]bool // clients that write what they never read here
	warned bool            // that there are many such clients was logged
}

// at is what is known of a document's path, which is given as a rule would name it; nil for a path that is too long, or that no rule can
// name: a key that is literally * would be a rule for its siblings, too.
func (ix *index) at(pointer string) (path string, s *stats) {
	path, ok := ix.path(pointer)
	if !ok || slices.Contains(strings.Split(pointer, "/"), "*") {
		return path, nil
	}
	s, known := ix.paths.Get(path)
	if known {
		return path, s
	}
	s = &stats{}
	ix.paths.Add(path, s)
	if ix.collapse(path) {
		return ix.at(pointer)
	}
	return path, s
}

// path is a document's path as rules name it: with a star for the index of an element, and for keys that are data. Keys of the
// document itself stay, for a star there would be all of its fields. ok is false for a path that is too long.
func (ix *index) path(pointer string) (path string, ok bool) {
	var b strings.Builder
	for i, token := range strings.Split(pointer, "/")[1:] {
		above := b.String()
		b.WriteByte('/')
		if i > 0 && (isData(token) || ix.stars[above]) {
			token = "*"
		}
		b.WriteString(token)
	}
	return b.String(), b.Len() > 1 && b.Len() <= maxPathBytes
}

// isData reports whether a token is an index, a number, or too long for a name.
func isData(token string) bool {
	return len(token) > maxKey || strings.Trim(token, "0123456789") == ""
}

// collapse looks whether a new path has too many siblings, below an object above it: then the object is a map, and its keys become
// one path.
func (ix *index) collapse(added string) bool {
	for at := strings.IndexByte(added[1:], '/') + 1; at > 0; {
		if above := added[:at]; !ix.stars[above] && ix.siblings(above) > maxSiblings {
			ix.stars[above] = true
			ix.joinPaths()
			return true
		}
		next := strings.IndexByte(added[at+1:], '/')
		if next < 0 {
			break
		}
		at += 1 + next
	}
	return false
}

// siblings is how many keys are known below an object.
func (ix *index) siblings(above string) int {
	keys := map[string]bool{}
	for _, path := range ix.paths.Keys() {
		if rest, ok := strings.CutPrefix(path, above+"/"); ok {
			key, _, _ := strings.Cut(rest, "/")
			keys[key] = true
		}
	}
	return len(keys)
}

// joinPaths names all paths anew, and adds up those that are the same now.
func (ix *index) joinPaths() {
	for _, old := range ix.paths.Keys() {
		path, _ := ix.path(old)
		if path == old {
			continue
		}
		s, _ := ix.paths.Peek(old)
		ix.paths.Remove(old)
		if into, ok := ix.paths.Peek(path); ok {
			into.join(s)
		} else {
			ix.paths.Add(path, s)
		}
	}
}

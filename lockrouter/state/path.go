package state

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// The bounds of a path within a tree.
const (
	MaxDepth = 64
	MaxPath  = 1024 // bytes
)

// What is wrong with a path within a tree.
var (
	ErrDepth = errors.New("the path has more than 64 segments")
	ErrLong  = errors.New("the path has more than 1024 bytes")
	ErrDots  = errors.New("the path has a segment . or .., which would name another path than it says")
	ErrUTF8  = errors.New("the path isn't UTF-8")
)

// Path is a decoded path in the form in which paths are compared: a slash before each segment and after the last, and none twice, so that
// a path is above another, or the same, where it is its prefix. The root is "/". An encoded slash separates as any other does: taking it
// for a letter would let two locks that exclude each other pass. Unicode isn't normalised.
func Path(decoded string) (string, error) {
	if len(decoded) > MaxPath {
		return "", ErrLong
	}
	path, depth, err := normal(decoded)
	if depth > MaxDepth {
		return "", ErrDepth
	}
	return path, err
}

// Place is the decoded path of a document, in the form of Path. It may be deeper and longer than that of any lock: then it is cut behind
// what the path of a lock above it can have.
func Place(decoded string) (string, error) {
	path, _, err := normal(decoded)
	return path, err
}

// normal is a decoded path in the form of Path, with its first segments only if it is too deep or long. depth is how many it has.
func normal(decoded string) (path string, depth int, err error) {
	if !utf8.ValidString(decoded) {
		return "", 0, ErrUTF8
	}
	var b strings.Builder
	b.WriteByte('/')
	for seg := range strings.SplitSeq(decoded, "/") {
		switch seg {
		case "":
			continue
		case ".", "..":
			return "", depth, ErrDots
		}
		if depth++; depth <= MaxDepth && b.Len() <= MaxPath {
			b.WriteString(seg)
			b.WriteByte('/')
		}
	}
	return b.String(), depth, nil
}

// Related reports whether one of two paths is the other or above it.
func Related(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// against reports whether two locks of one document exclude each other. A lock is exclusive on its path and so shared on everything
// above; a shared one is for readers of all below it.
func against(aPath string, aMode Mode, bPath string, bMode Mode) bool {
	return (aMode != Shared || bMode != Shared) && Related(aPath, bPath)
}

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
	switch {
	case len(decoded) > MaxPath:
		return "", ErrLong
	case !utf8.ValidString(decoded):
		return "", ErrUTF8
	}
	var b strings.Builder
	b.WriteByte('/')
	depth := 0
	for seg := range strings.SplitSeq(decoded, "/") {
		switch seg {
		case "":
			continue
		case ".", "..":
			return "", ErrDots
		}
		if depth++; depth > MaxDepth {
			return "", ErrDepth
		}
		b.WriteString(seg)
		b.WriteByte('/')
	}
	return b.String(), nil
}

// Related reports whether one of two paths is the other or above it.
func Related(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// against reports whether two locks of one document exclude each other. A lock is exclusive on its path and so shared on everything
// above; a shared one is for readers of all below it.
func against(aPath string, aMode Mode, bPath string, bMode Mode) bool {
	return (aMode != Shared || bMode != Shared) && Related(aPath, bPath)
}

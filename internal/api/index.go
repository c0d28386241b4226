package api

import (
	"strings"

	"optimist/internal/uri"
)

// Name is the name that a path segment means, or "" where it can't be read.
func Name(raw []byte) string {
	var buf [256]byte
	name, err := uri.Decode(buf[:0], raw)
	if err != nil {
		return ""
	}
	return string(name)
}

// OneIndex reports whether a name (decoded) is that of one index or alias, not a list, a pattern, a date expression or an endpoint.
func OneIndex(name string) bool {
	return name != "" && name[0] != '_' && name[0] != '-' && !strings.ContainsAny(name, ",*<?")
}

package config

import (
	"errors"
	"fmt"
	"strings"
)

var (
	errPointerRoot   = errors.New("the empty path is the whole document: that is merge.default")
	errPointerEscape = errors.New("in a JSON Pointer a ~ is written ~0 and a / within a name ~1")
)

// checkPointer says what is wrong with a JSON Pointer (RFC 6901) as used in merge.paths.
func checkPointer(p string) error {
	if p == "" {
		return errPointerRoot
	}
	if p[0] != '/' {
		return fmt.Errorf("a path is a JSON Pointer and begins with a slash: write %s", asPointer(p))
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return errPointerEscape
		}
	}
	return nil
}

// asPointer is the pointer that was probably meant by a path as the engine (address.city), jq (.lines[].price) or JSONPath
// ($.lines[*].price) write it.
func asPointer(p string) string {
	p = strings.TrimPrefix(p, "$")
	p = strings.NewReplacer("[]", ".*", "[", ".", "]", "", "~", "~0", "\"", "", "'", "").Replace(p)
	return "/" + strings.ReplaceAll(strings.Trim(p, "."), ".", "/")
}

// escapeToken writes a name as a token of a JSON Pointer.
func escapeToken(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

package config

import (
	"errors"
	"fmt"
	"strings"

	"optimist/internal/jsontext"
)

var (
	errPointerRoot   = errors.New("the empty path is the whole document: that is merge.default")
	errPointerEscape = errors.New("in a JSON Pointer a ~ is written ~0 and a / within a name ~1")
)

// checkPointer says what is wrong with a JSON Pointer (RFC 6901) as used in merge.paths, and what would be right.
func checkPointer(p string) error {
	_, err := jsontext.SplitPointer(p)
	switch {
	case p == "":
		return errPointerRoot
	case errors.Is(err, jsontext.ErrPointerSlash):
		return fmt.Errorf("a path is a JSON Pointer and begins with a slash: write %s", asPointer(p))
	case err != nil:
		return errPointerEscape
	}
	return nil
}

// pointerTokens are the tokens of a JSON Pointer that checkPointer takes.
func pointerTokens(p string) []string {
	tokens, _ := jsontext.SplitPointer(p)
	return tokens
}

// asPointer is the pointer that was probably meant by a path as the engine (address.city), jq (.lines[].price) or JSONPath
// ($.lines[*].price) write it.
func asPointer(p string) string {
	p = strings.TrimPrefix(p, "$")
	p = strings.NewReplacer("[]", ".*", "[", ".", "]", "", "~", "~0", "\"", "", "'", "").Replace(p)
	return "/" + strings.ReplaceAll(strings.Trim(p, "."), ".", "/")
}

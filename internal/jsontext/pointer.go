package jsontext

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrPointerSlash reports a path that is neither empty nor begins with a slash.
	ErrPointerSlash = errors.New("is not a JSON Pointer: it must be empty or begin with a slash")
	// ErrPointerEscape reports a ~ that begins neither ~0 nor ~1.
	ErrPointerEscape = errors.New("is not a JSON Pointer: ~ must be followed by 0 or 1")
	// ErrPointerDepth reports a path of more than MaxNesting tokens: no document has a value there.
	ErrPointerDepth = fmt.Errorf("leads deeper than %d levels", MaxNesting)
)

var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// SplitPointer returns the unescaped tokens of a JSON Pointer (RFC 6901). The empty pointer is the whole document, which has none.
//
// Errors: ErrPointerSlash, ErrPointerEscape, ErrPointerDepth.
func SplitPointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, ErrPointerSlash
	}
	if strings.Count(pointer, "/") > MaxNesting { // each token takes more memory than its slash
		return nil, ErrPointerDepth
	}
	tokens := strings.Split(pointer[1:], "/")
	if strings.IndexByte(pointer, '~') < 0 {
		return tokens, nil
	}
	for i, token := range tokens {
		if strings.Count(token, "~") != strings.Count(token, "~0")+strings.Count(token, "~1") {
			return nil, ErrPointerEscape
		}
		tokens[i] = unescapeToken.Replace(token)
	}
	return tokens, nil
}

// AppendToken appends a name as a token of a JSON Pointer, escaped and with its slash.
func AppendToken[T string | []byte](dst []byte, name T) []byte {
	dst = append(dst, '/')
	for i := range len(name) {
		switch name[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, name[i])
		}
	}
	return dst
}

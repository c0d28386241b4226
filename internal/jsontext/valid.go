package jsontext

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"
)

// MaxNesting is how many containers of JSON may lie in one another: what the engines take at most.
const MaxNesting = 1000

// Valid reports whether b is JSON, with white space around it, that isn't nested more deeply than the engines take. gjson's own check
// goes down by recursion, and has no bound: of a body of 16 MiB that is nothing but opening brackets it overflows the stack, which ends
// the whole process. So whatever comes from a client or from the engine is checked here, and nowhere else.
func Valid(b []byte) bool {
	if bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > MaxNesting && nesting(b) > MaxNesting {
		return false
	}
	return gjson.ValidBytes(b)
}

// nesting is how many containers are open at most, if b is JSON.
func nesting(b []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest
}

// LooksLikeObject reports whether the first byte of b that isn't white space begins a JSON object.
func LooksLikeObject(b []byte) bool { return begins(b, '{') }

// LooksLikeArray reports whether the first byte of b that isn't white space begins a JSON array.
func LooksLikeArray(b []byte) bool { return begins(b, '[') }

func begins(b []byte, with byte) bool {
	i := SkipSpace(b, 0)
	return i < len(b) && b[i] == with
}

// IsText reports whether a JSON value reads as a text. It allocates nothing where the text stands there letter by letter.
func IsText(value []byte, text string) bool {
	if n := len(value) - 1; n > 0 && string(value[1:n]) == text && strings.IndexByte(text, '\\') < 0 {
		return true
	}
	return gjson.ParseBytes(value).String() == text
}

package tree

import (
	"errors"
	"fmt"
)

// ErrNotObject reports a document that is JSON but not an object: the engine stores objects only, and nothing else has
// keys that could be merged.
var ErrNotObject = errors.New("document is not a JSON object")

// ErrTooDeep reports a document, or the result of a patch, that nests deeper than Limits.Depth. The engines themselves
// take about 1000 levels: such a document can be passed, but not merged.
var ErrTooDeep = errors.New("document is nested too deeply")

// ErrTooLarge reports a document, or the result of a patch, that is over Limits.Bytes or Limits.Values, or a patch whose
// array edits would move more elements than a patch may.
var ErrTooLarge = errors.New("document is too large")

// A SyntaxError reports bytes that are not one JSON value as RFC 8259 has it. The engines are a little more lenient
// (comments, a byte order mark): what is refused here may still be a document to them.
type SyntaxError struct {
	Offset int    // of the first byte that can't be there, from 0; the length of the input if it ends too early
	Reason string // what was wrong there; never bytes of the document
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at offset %d: %s", e.Offset, e.Reason)
}

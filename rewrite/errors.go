package rewrite

import (
	"errors"
	"fmt"
	"strings"
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

// A ConflictError reports values that the client and somebody else both changed, at paths whose strategy is Fail, or
// whose strategy can't be applied to what is there (a sum of strings). Nothing was merged.
type ConflictError struct {
	Paths []string // JSON Pointers into current, or into sent where current has no such value; at most MaxPaths
	More  int      // how many there were beyond Paths
}

func (e *ConflictError) Error() string {
	more := ""
	if e.More > 0 {
		more = fmt.Sprintf(" and %d more", e.More)
	}
	return "both sides changed " + strings.Join(e.Paths, ", ") + more
}

// A RuleError reports a PathRule, or a default strategy, that NewMerger can't take.
type RuleError struct {
	Path   string // of the rule; empty for the default strategy
	Reason string
}

func (e *RuleError) Error() string {
	if e.Path == "" {
		return "merge default: " + e.Reason
	}
	return fmt.Sprintf("merge path %q: %s", e.Path, e.Reason)
}

// A PatchError reports an operation that is malformed (from ParsePatch), or that can't be applied to the document (from
// Patch.Apply). Nothing was applied.
type PatchError struct {
	Index  int    // of the operation in the patch, from 0; -1 where the patch as a whole is meant
	Op     string // its "op", empty where there is none
	Path   string // the JSON Pointer that could not be followed
	Reason string
}

func (e *PatchError) Error() string {
	if e.Index < 0 {
		return "patch: " + e.Reason
	}
	return fmt.Sprintf("patch operation %d (%s %q): %s", e.Index, e.Op, e.Path, e.Reason)
}

// A TestError reports a `test` operation whose value is not what the document has. Nothing was applied.
type TestError struct {
	Index int    // of the operation in the patch, from 0
	Path  string // JSON Pointer that was tested
}

func (e *TestError) Error() string {
	return fmt.Sprintf("patch operation %d: test of %q failed", e.Index, e.Path)
}

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

// A TestError reports a `test` whose value is not what the document has. Nothing was applied.
type TestError struct {
	Index  int    // of the operation in the patch, or of the step in the transform, from 0
	Path   string // JSON Pointer that was tested; without `*`, but with what it stood for
	Wanted string // JSON, cut to some 200 bytes
	Found  string // JSON, cut to some 200 bytes; "nothing" where the path leads nowhere
}

func (e *TestError) Error() string {
	if e.Wanted == "" {
		return fmt.Sprintf("operation %d: test of %q failed", e.Index, e.Path)
	}
	return fmt.Sprintf("operation %d: test of %q failed: wanted %s, found %s", e.Index, e.Path, e.Wanted, e.Found)
}

// A TypeError reports a step that can't be applied to what it found. Nothing was applied.
type TypeError struct {
	Step   int // from 0
	Action Action
	Source string // where the path leads: "" is the document that is written, else where the step's value is from: "incoming", "header X-By"
	Path   string // JSON Pointer of what doesn't fit; without `*`, but with what it stood for
	Want   string // what would have fitted: "number", "array", "object or array", …
	Found  string // the kind of what is there, and, if it is a number or a string, what, cut to some 200 bytes
}

func (e *TypeError) Error() string {
	in := ""
	if e.Source != "" {
		in = " of " + e.Source
	}
	return fmt.Sprintf("operation %d (%s): wanted %s at %q%s, found %s", e.Step, e.Action, e.Want, e.Path, in, e.Found)
}

// A StepError reports a step that is malformed (from NewTransformer and ParseSteps), or that can't be applied for another reason
// than those of TestError and TypeError. Nothing was applied.
type StepError struct {
	Step   int    // from 0; -1 where all of them are meant
	Action Action // 0 where there is none
	Path   string // the step's, or the JSON Pointer that could not be followed
	Field  string // that is to blame: op, path, from, value, format, when; "" where it is none of them
	Reason string
	Err    error // of a condition; else nil
}

func (e *StepError) Error() string {
	text := "transform"
	if e.Step >= 0 {
		text = fmt.Sprintf("operation %d", e.Step)
	}
	if e.Action != 0 {
		text += fmt.Sprintf(" (%s %q)", e.Action, e.Path)
	}
	if e.Field != "" {
		return fmt.Sprintf("%s: %s: %s", text, e.Field, e.Reason)
	}
	return text + ": " + e.Reason
}

// Unwrap returns what the condition said.
func (e *StepError) Unwrap() error { return e.Err }

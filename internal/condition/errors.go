package condition

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/common"
)

// A CompileError reports an expression that can't be used, and where in it.
type CompileError struct {
	Line   int // from 1
	Column int // in characters, from 1
	Reason string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

func compileError(at common.Location, reason string) *CompileError {
	// The parser has no place for what is wrong with the whole, as its length.
	return &CompileError{Line: max(at.Line(), 1), Column: max(at.Column(), 0) + 1, Reason: plainly(strings.TrimSpace(reason))}
}

// plainly says what the parser means: it lists all that could stand in a place, and has no word for the end.
func plainly(reason string) string {
	reason, _, _ = strings.Cut(reason, " expecting {")
	switch {
	case strings.HasSuffix(reason, "mismatched input '<EOF>'"):
		return "Syntax error: the expression ends before it is complete"
	case strings.Contains(reason, "token recognition error at: '="):
		return reason + "; to compare write =="
	}
	return reason
}

// inPart is a reason that isn't as long as the text of a document that is repeated in it.
func inPart(reason string) string {
	const most = 300 // bytes
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "…"
}

// An EvalError reports an expression that is neither true nor false for the documents that it met.
type EvalError struct {
	Expr   string
	Reason string
}

func (e *EvalError) Error() string { return fmt.Sprintf("%s: %s", e.Expr, e.Reason) }

package edit

import (
	"errors"
	"fmt"
)

// The texts of errors name steps of a rule as its configuration does, transform[0]; operations of a body count from 1. Their fields count
// from 0.

// InRule says of an error of a Transformer that its steps are those of a rule.
func InRule(err error) error {
	var e stepError
	if errors.As(err, &e) {
		e.setInRule()
	}
	return err
}

// Reason is the text of a Transformer's error without the name of the step.
func Reason(err error) string {
	var e stepError
	if errors.As(err, &e) {
		return e.reason()
	}
	return err.Error()
}

// stepError is an error of a step.
type stepError interface {
	error
	setInRule()
	reason() string // the text without the name of the step
}

// whose says whose steps an error names.
type whose struct{ inRule bool }

func (w *whose) setInRule() { w.inRule = true }

// step is what a step, counted from 0, is called in texts.
func (w *whose) step(n int) string {
	if w.inRule {
		return fmt.Sprintf("transform[%d]", n)
	}
	return fmt.Sprintf("operation %d", n+1)
}

// A PatchError reports an operation that is malformed (from ParsePatch), or that can't be applied to the document (from
// Patch.Apply). Nothing was applied.
type PatchError struct {
	Index  int    // of the operation in the patch, from 0; -1 where the patch as a whole is meant
	Op     string // its "op", empty where there is none
	Path   string // the JSON Pointer that could not be followed
	Reason string
	Err    error // tree.ErrTooLarge or tree.ErrTooDeep, where the operation is over a bound; else nil
}

// Unwrap returns the error of the bound.
func (e *PatchError) Unwrap() error { return e.Err }

func (e *PatchError) Error() string {
	if e.Index < 0 {
		return "patch: " + e.Reason
	}
	return fmt.Sprintf("patch operation %d (%s %q): %s", e.Index+1, cut(e.Op, maxShown), cut(e.Path, maxPathBytes), e.Reason)
}

// A TestError reports a `test` whose value differs from the document's, or a `refuse`. Nothing was applied.
type TestError struct {
	Index   int    // of the operation in the patch, or of the step in the transform, from 0
	Message string // of a refuse, which has nothing of what follows
	Path    string // JSON Pointer that was tested; without `*`, but with what it stood for
	Wanted  string // JSON, cut to some 200 bytes
	Found   string // JSON, cut to some 200 bytes; "nothing" where the path leads nowhere
	whose
}

func (e *TestError) Error() string { return e.step(e.Index) + ": " + e.reason() }

func (e *TestError) reason() string {
	if e.Message != "" {
		return e.Message
	}
	return fmt.Sprintf("test of %q failed: wanted %s, found %s", cut(e.Path, maxPathBytes), e.Wanted, e.Found)
}

// A TypeError reports a step that can't be applied to what it found. Nothing was applied.
type TypeError struct {
	Step   int // from 0
	Action Action
	Source string // where the path leads: "" is the document that is written, else where the step's value is from: "incoming", "header X-By"
	Path   string // JSON Pointer of what doesn't fit; without `*`, but with what it stood for
	Want   string // what would have fitted: "number", "array", "object or array", …
	Found  string // the kind of what is there, and, if it is a number or a string, what, cut to some 200 bytes
	whose
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("%s (%s): %s", e.step(e.Step), e.Action, e.reason())
}

func (e *TypeError) reason() string {
	in := ""
	if e.Source != "" {
		in = " of " + e.Source
	}
	return fmt.Sprintf("wanted %s at %q%s, found %s", e.Want, cut(e.Path, maxPathBytes), in, e.Found)
}

// A StepError reports a step that is malformed (from NewTransformer and ParseSteps), or that can't be applied for another reason
// than those of TestError and TypeError. Nothing was applied.
type StepError struct {
	Step   int    // from 0; -1 where all of them are meant
	Action Action // 0 where there is none
	Path   string // the step's, or the JSON Pointer that could not be followed
	Field  string // that is to blame: op, path, from, value, format, message, when; "" where it is none of them
	Reason string
	Err    error // of a condition, of a literal, or of a bound that the step is over; else nil
	whose
}

func (e *StepError) Error() string {
	text := "patch" // only ParseSteps means all of them
	if e.Step >= 0 {
		text = e.step(e.Step)
	}
	switch {
	case e.Action == OpRefuse: // it has no path
		text += fmt.Sprintf(" (%s)", e.Action)
	case e.Action != 0:
		text += fmt.Sprintf(" (%s %q)", e.Action, cut(e.Path, maxPathBytes))
	}
	return text + ": " + e.reason()
}

func (e *StepError) reason() string {
	if e.Field != "" {
		return cut(e.Field, maxShown) + ": " + e.Reason
	}
	return e.Reason
}

// Unwrap returns the error of the condition, the literal or the bound.
func (e *StepError) Unwrap() error { return e.Err }

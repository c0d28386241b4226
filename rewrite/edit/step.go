package edit

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// The forms of Step.Format.
const (
	formatText   = "rfc3339" // as ""
	formatMillis = "epoch_millis"
	formatSecond = "epoch_second"
)

// A step is the compiled form of a Step, or of an operation of a JSON Patch.
type step struct {
	Step
	strict            bool // it is of a JSON Patch: what isn't there is a mistake, and `*` a key
	path, from, value []string
	// shared is how many tokens of path and from lead to what the last `*` of from stands for.
	shared  int
	literal tree.Value // its tree is frozen, but for that of a JSON Patch
}

// star as a whole token is every element or member.
const star = "*"

func stars(tokens []string) (n, afterLast int) {
	for i, t := range tokens {
		if t == star {
			n, afterLast = n+1, i+1
		}
	}
	return n, afterLast
}

// compile checks a step. The error has no Step yet.
func (s *step) compile(l tree.Limits) *StepError {
	if s.Action == 0 || int(s.Action) >= len(actions) {
		return &StepError{Field: "op", Reason: "is not an operation"}
	}
	err := l.Take(s.room())
	if err != nil {
		return &StepError{Reason: err.Error(), Err: err}
	}
	if s.path, err = jsontext.SplitPointer(s.Path); err != nil {
		return &StepError{Field: "path", Reason: err.Error()}
	}
	if len(s.path) == 0 && !actions[s.Action].whole {
		return &StepError{Field: "path", Reason: "is the whole document, of which that can't be done"}
	}
	if reason := s.checkMessage(); reason != "" {
		return &StepError{Field: "message", Reason: reason}
	}
	if reason := s.compileFrom(); reason != "" {
		return &StepError{Field: "from", Reason: reason}
	}
	if reason := s.compileValue(); reason != "" {
		return &StepError{Field: "value", Reason: reason}
	}
	if err := s.readLiteral(l); err != nil {
		return &StepError{Field: "value", Reason: err.Error(), Err: err}
	}
	switch s.Format {
	case "", formatText, formatMillis, formatSecond:
	default:
		return &StepError{Field: "format", Reason: "is none of " + formatText + ", " + formatMillis + ", " + formatSecond}
	}
	if s.Format != "" && !s.readsClock() {
		return &StepError{Field: "format", Reason: "is for the time only"}
	}
	return nil
}

// room is how many bytes the compiled form takes beside its literal's tree.
func (s *step) room() int {
	const token = 16 // a string
	n := len(s.Value.Literal)
	for _, pointer := range [...]string{s.Path, s.From, s.Value.Path} {
		n += token * min(strings.Count(pointer, "/"), jsontext.MaxNesting)
	}
	return n
}

// readsClock reports whether the value is the time.
func (s *step) readsClock() bool {
	return s.Action == OpNow || actions[s.Action].value && s.Value.Source == FromNow
}

// isStar reports whether a token of the step's path is every element or member.
func (s *step) isStar(token string) bool { return token == star && !s.strict }

// sets reports whether the step sets the value at its path whatever there is: without a condition, and to a value that is always known.
func (s *step) sets() bool {
	if s.When != nil || len(s.path) == 0 {
		return false
	}
	switch last := s.path[len(s.path)-1]; s.Action {
	case OpNow:
		return true
	case OpAdd: // before an element, or behind the last one, it inserts
		return s.Value.Source.isKnown() && strings.Trim(last, "0123456789-") != ""
	case OpReplace:
		return s.Value.Source.isKnown()
	}
	return false
}

// isTakenBy reports whether a later step takes away what stands at this one's path.
func (s *step) isTakenBy(later step) bool {
	return later.Action == OpRemove && later.Path == s.Path || later.Action == OpMove && later.From == s.Path
}

// makes reports whether the step sets something where there is nothing.
func (s *step) makes() bool { return actions[s.Action].makes }

func (s *step) checkMessage() (reason string) {
	switch refuses := s.Action == OpRefuse; {
	case refuses && s.Message == "":
		return "is missing"
	case refuses && s.Path != "":
		return "is about the whole write, which has no path"
	case !refuses && s.Message != "":
		return "is not for this operation"
	}
	return ""
}

func (s *step) compileFrom() (reason string) {
	if !actions[s.Action].from {
		if s.From != "" {
			return "is not for this operation"
		}
		return ""
	}
	var err error
	if s.from, err = jsontext.SplitPointer(s.From); err != nil {
		return err.Error()
	}
	var inFrom int
	inFrom, s.shared = stars(s.from)
	inPath, _ := stars(s.path)
	switch {
	case s.shared > len(s.path) || !slices.Equal(s.from[:s.shared], s.path[:s.shared]):
		return "must be like path up to its last `*`"
	case s.Action == OpCopy:
		return ""
	case len(s.from) == 0:
		return "is the whole document, which can't be moved"
	case inFrom != inPath:
		return "is one value, which can't be moved to every place that path's `*` stands for"
	case len(s.path) > len(s.from) && slices.Equal(s.from, s.path[:len(s.from)]):
		return "is around path: nothing can be moved into itself"
	}
	return ""
}

func (s *step) compileValue() (reason string) {
	v := &s.Value
	if !actions[s.Action].value {
		if v.Source != FromLiteral || v.Literal != nil || v.Path != "" || v.Name != "" {
			return "is not for this operation"
		}
		return ""
	}
	if s.value, reason = v.check(); reason != "" {
		return reason
	}
	if v.Source != FromLiteral {
		if !v.Source.isDocument() && (v.Source != FromNow || s.Format == "" || s.Format == formatText) && !s.Action.fits(tree.String) {
			return "must be a " + s.Action.wants() + ", and from " + v.Source.String() + " is a string"
		}
	}
	return ""
}

// readLiteral reads the step's own copy of its literal.
func (s *step) readLiteral(l tree.Limits) error {
	if !actions[s.Action].value || s.Value.Source != FromLiteral {
		return nil
	}
	s.Value.Literal = bytes.Clone(s.Value.Literal)
	t := new(tree.Tree)
	var syntax *tree.SyntaxError
	switch err := t.Parse(s.Value.Literal, l); {
	case errors.As(err, &syntax):
		return errors.New("is not JSON: " + syntax.Reason)
	case err != nil:
		return err
	}
	t.Freeze()
	if s.literal = t.Root(); !s.Action.fits(s.literal.Kind()) {
		return errors.New("must be a " + s.Action.wants() + ", and is " + describe(s.literal))
	}
	return nil
}

func (v *Value) check() (path []string, reason string) {
	switch {
	case int(v.Source) >= len(sourceNames):
		return nil, "has no source"
	case v.Source == FromLiteral && v.Literal == nil:
		return nil, "is missing"
	case v.Source != FromLiteral && v.Literal != nil:
		return nil, "is a literal and a reference"
	}
	if reason = v.Source.takes(v.Path != "", v.Name != ""); reason != "" {
		return nil, reason
	}
	path, err := jsontext.SplitPointer(v.Path)
	if err != nil {
		return nil, err.Error()
	}
	if n, _ := stars(path); n > 0 {
		return nil, "is one value: its path has no `*`"
	}
	return path, ""
}

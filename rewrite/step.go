package rewrite

import (
	"bytes"
	"errors"
	"slices"
)

// The forms of Step.Format.
const (
	formatMillis = "epoch_millis"
	formatSecond = "epoch_second"
)

// A step is the compiled form of a Step.
type step struct {
	Step
	path, from, value []token
	// shared is how many tokens of path and from lead to what the last `*` of from stands for.
	shared  int
	literal tree // nothing in it is written to any more
}

// A token is one step of a path.
type token struct {
	text string
	star bool // every element or member
}

func tokensOf(path string) (tokens []token, reason string) {
	texts, reason := splitPointer(path)
	for _, text := range texts {
		tokens = append(tokens, token{text, text == "*"})
	}
	return tokens, reason
}

func stars(tokens []token) (n, afterLast int) {
	for i, t := range tokens {
		if t.star {
			n, afterLast = n+1, i+1
		}
	}
	return n, afterLast
}

// compile checks a step. The error has no Step yet.
func (s *step) compile(l Limits) *StepError {
	if s.Action == 0 || int(s.Action) >= len(actionNames) {
		return &StepError{Field: "op", Reason: "is not an operation"}
	}
	var reason string
	if s.path, reason = tokensOf(s.Path); reason != "" {
		return &StepError{Field: "path", Reason: reason}
	}
	if len(s.path) == 0 && !s.Action.takesDocument() {
		return &StepError{Field: "path", Reason: "is the whole document, of which that can't be done"}
	}
	if reason = s.compileFrom(); reason != "" {
		return &StepError{Field: "from", Reason: reason}
	}
	if reason = s.compileValue(l); reason != "" {
		return &StepError{Field: "value", Reason: reason}
	}
	switch s.Format {
	case "", formatMillis, formatSecond:
	default:
		return &StepError{Field: "format", Reason: "is neither " + formatMillis + " nor " + formatSecond}
	}
	if s.Format != "" && !s.readsClock() {
		return &StepError{Field: "format", Reason: "is for the time only"}
	}
	return nil
}

// readsClock reports whether the value is the time.
func (s *step) readsClock() bool {
	return s.Action == OpNow || s.Action.takesValue() && s.Value.Source == FromNow
}

// takesDocument reports whether a path may be the whole document.
func (a Action) takesDocument() bool {
	switch a {
	case OpAdd, OpReplace, OpCopy, OpMove, OpTest, OpMerge, OpRemoveEmpty:
		return true
	}
	return false
}

func (s *step) compileFrom() (reason string) {
	if !s.Action.takesFrom() {
		if s.From != "" {
			return "is not for this operation"
		}
		return ""
	}
	if s.from, reason = tokensOf(s.From); reason != "" {
		return reason
	}
	var inFrom int
	inFrom, s.shared = stars(s.from)
	inPath, _ := stars(s.path)
	if s.shared > len(s.path) || !slices.Equal(s.from[:s.shared], s.path[:s.shared]) {
		return "must be like path up to its last `*`"
	}
	if s.Action == OpCopy {
		return ""
	}
	switch {
	case len(s.from) == 0:
		return "is the whole document, which can't be moved"
	case inFrom != inPath:
		return "is one value, which can't be moved to every place that path's `*` stands for"
	case len(s.path) > len(s.from) && slices.Equal(s.from, s.path[:len(s.from)]):
		return "is around path: nothing can be moved into itself"
	}
	return ""
}

func (s *step) compileValue(l Limits) (reason string) {
	v := &s.Value
	if !s.Action.takesValue() {
		if v.Source != FromLiteral || v.Literal != nil || v.Path != "" || v.Name != "" {
			return "is not for this operation"
		}
		return ""
	}
	if reason = v.check(); reason != "" {
		return reason
	}
	if v.Source != FromLiteral {
		s.value, _ = tokensOf(v.Path)
		if !s.Action.fits(s.kindOfReference()) {
			return "must be a " + s.Action.wants() + ", and from " + v.Source.String() + " is a string"
		}
		return ""
	}
	v.Literal = bytes.Clone(v.Literal)
	var syntax *SyntaxError
	switch err := s.literal.parse(v.Literal, l); {
	case errors.As(err, &syntax):
		return "is not JSON: " + syntax.Reason
	case err != nil:
		return err.Error()
	}
	s.literal.freeze()
	if k := s.literal.nodes[0].kind; !s.Action.fits(k) {
		return "must be a " + s.Action.wants() + ", and is " + s.literal.describe(0)
	}
	return ""
}

func (v *Value) check() (reason string) {
	switch {
	case int(v.Source) >= len(sourceNames):
		return "has no source"
	case v.Source == FromLiteral && v.Literal == nil:
		return "is missing"
	case v.Source != FromLiteral && v.Literal != nil:
		return "is a literal and a reference"
	case v.Name != "" && v.Source != FromHeader:
		return "from " + v.Source.String() + " has no name"
	case v.Name == "" && v.Source == FromHeader:
		return "from header needs the name of the header"
	case v.Path != "" && !v.Source.isDocument():
		return "from " + v.Source.String() + " has no path"
	}
	tokens, reason := tokensOf(v.Path)
	if n, _ := stars(tokens); n > 0 {
		return "is one value: its path has no `*`"
	}
	return reason
}

// kindOfReference is the kind of a value that is known before it is looked up; of others it is one that always fits.
func (s *step) kindOfReference() kind {
	switch {
	case s.Value.Source.isDocument(), s.Value.Source == FromNow && s.Format != "":
		return kindNumber
	}
	return kindString
}

// fits reports whether the action can do something with a value of the kind.
func (a Action) fits(k kind) bool {
	switch a {
	case OpIncrement:
		return k == kindNumber
	case OpMax, OpMin:
		return k == kindNumber || k == kindString
	}
	return true
}

// wants is what fits says.
func (a Action) wants() string {
	if a == OpIncrement {
		return "number"
	}
	return "number or string"
}

func isIndex(text string) bool {
	_, reason := arrayIndex(text, 1<<31-1)
	return reason == ""
}

// freeze does all that looking into a tree would do to it, so that several goroutines may look at the same time.
func (t *tree) freeze() {
	for i := range t.nodes {
		if t.nodes[i].kind == kindObject {
			t.prepare(int32(i))
		}
	}
	for i := range t.nodes {
		t.hashOf(int32(i))
	}
}

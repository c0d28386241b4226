package edit

import (
	"bytes"
	"slices"
	"strings"

	"optimist/rewrite/tree"
)

// The keys of an operation in a body.
const (
	keyOp = iota
	keyPath
	keyFrom
	keyValue
	keyFormat
)

var keyNames = [...]string{keyOp: "op", keyPath: "path", keyFrom: "from", keyValue: "value", keyFormat: "format"}

// notOperations is the reason of the error of a body that isn't an array, as if it had one operation without the brackets.
const notOperations = `is not an array of operations, such as [{"op":"add","path":"/n","value":1}]`

// An operation is one as a body has it: the value of each key that is there.
type operation [len(keyNames)]tree.Value

// parseOperations calls read for each element of a body, until it returns an error. What read keeps of it outlives src.
//
// Errors: *tree.SyntaxError, tree.ErrTooDeep, tree.ErrTooLarge, those of Limits.Room, notArray.
func parseOperations(src []byte, l tree.Limits, notArray error, read func(v tree.Value) error) error {
	if err := l.Take(2 * len(src)); err != nil { // for the clone, and for the texts that are read from it
		return err
	}
	t := tree.Borrow()
	defer t.Return()
	if err := t.Parse(bytes.Clone(src), l); err != nil {
		return err
	}
	if t.Root().Kind() != tree.Array {
		return notArray
	}
	for c := t.Root().First(); c.Exists(); c = c.Next() {
		if err := read(c); err != nil {
			return err
		}
	}
	return nil
}

// operationOf looks up the keys of an operation. strict refuses others; format is a key only to strict. bad is a key that can't be as it
// is, and reason says why.
func operationOf(v tree.Value, strict bool) (o operation, bad, reason string) {
	if v.Kind() != tree.Object {
		return o, "", "is not an object"
	}
	v.Len() // marks what is hidden
	names := keyNames[:]
	if !strict {
		names = names[:keyFormat]
	}
	for m := v.FirstOfAll(); m.Exists(); m = m.NextOfAll() {
		key := slices.IndexFunc(names, m.KeyIs)
		switch {
		case key < 0 && !strict:
		case key < 0:
			return o, m.Key(), "is not a key of an operation: " + strings.Join(names, ", ")
		case m.Hidden():
			return o, m.Key(), "is given twice"
		case key != keyValue && strict && m.Kind() != tree.String:
			return o, m.Key(), "is not a string"
		default:
			o[key] = m
		}
	}
	return o, "", ""
}

// text is the content of a member that is a string.
func (o *operation) text(key int) (s, reason string) {
	switch o[key].Kind() {
	case tree.String:
		return o[key].Text(), ""
	case tree.Missing:
		return "", "is missing"
	}
	return "", "is not a string"
}

// ParseSteps reads the body of an application/vnd.optimist-patch+json request: an array of objects with op, path, from, value and format,
// and nothing else. A value is a literal, unless it is an object whose only keys are `from` and, if need be, `path` or `name`, with
// `from` one of the sources: {"from":"incoming","path":"/x"}, {"from":"header","name":"X-Team"}, {"from":"now"}. An object whose only key
// is `literal` stands for its value, so that {"literal":{"from":"id"}} is the object {"from":"id"}.
//
// Errors: *StepError, whose Step is -1 where the body as a whole is meant; *tree.SyntaxError, tree.ErrTooDeep, tree.ErrTooLarge, and
// those of Limits.Room.
func ParseSteps(src []byte, l tree.Limits) (steps []Step, err error) {
	err = parseOperations(src, l, &StepError{Step: -1, Reason: notOperations}, func(v tree.Value) error {
		if len(steps) == MaxSteps {
			return tooManySteps()
		}
		var s Step
		if field, reason := s.read(v); reason != "" {
			return &StepError{Step: len(steps), Action: s.Action, Path: s.Path, Field: field, Reason: reason}
		}
		steps = append(steps, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return steps, nil
}

// read reads a step; reason says what is wrong with a field of it.
func (s *Step) read(v tree.Value) (field, reason string) {
	o, bad, reason := operationOf(v, true)
	if reason != "" {
		return bad, reason
	}
	name, reason := o.text(keyOp)
	if reason != "" {
		return "op", reason
	}
	var err error
	if s.Action, err = ParseAction(name); err != nil {
		return "op", err.Error()
	}
	if s.Action == OpRefuse {
		return "op", "refuse is for rules, which have conditions"
	}
	if s.Path, reason = o.text(keyPath); reason != "" && s.Action != OpRemoveEmpty {
		return "path", reason
	}
	for _, key := range [...]int{keyFrom, keyValue} {
		has, wants := o[key].Exists(), actions[s.Action].from
		if key == keyValue {
			wants = actions[s.Action].value
		}
		switch {
		case has && !wants:
			return keyNames[key], "is not for this operation"
		case wants && !has:
			return keyNames[key], "is missing"
		}
	}
	s.From, _ = o.text(keyFrom)
	s.Format, _ = o.text(keyFormat)
	if !o[keyValue].Exists() {
		return "", ""
	}
	s.Value, reason = valueOf(o[keyValue])
	return "value", reason
}

// valueOf reads the value of a step; reason says why it is none.
func valueOf(v tree.Value) (value Value, reason string) {
	literal := Value{Literal: v.Raw()}
	if c := v.Get("literal"); c.Exists() && v.Len() == 1 {
		return Value{Literal: c.Raw()}, ""
	}
	from, path, name := v.Get("from"), v.Get("path"), v.Get("name")
	known := 0
	for _, c := range [...]tree.Value{from, path, name} {
		if c.Kind() == tree.String {
			known++
		}
	}
	if from.Kind() != tree.String || v.Len() != known {
		return literal, ""
	}
	source, err := ParseSource(from.Text())
	if err != nil || source == FromLiteral {
		if known == 1 {
			return literal, ""
		}
		return Value{}, "has an unknown `from`: write {\"literal\": …} around an object that is meant as it stands"
	}
	ref := Value{Source: source}
	if path.Exists() {
		ref.Path = path.Text()
	}
	if name.Exists() {
		ref.Name = name.Text()
	}
	return ref, source.takes(path.Exists(), name.Exists())
}

// takes says what is wrong with a reference that has a path, or a name, or not.
func (s Source) takes(path, name bool) (reason string) {
	switch {
	case path && !s.isDocument():
		return "from " + s.String() + " has no path"
	case name && s != FromHeader:
		return "from " + s.String() + " has no name"
	case !name && s == FromHeader:
		return "from header needs the name of the header"
	}
	return ""
}

package rewrite

import "bytes"

// ParseSteps reads the body of an application/vnd.optimist-patch+json request: an array of objects with op, path, from, value
// and format, and nothing else. A value is read by ParseValue.
//
// Errors: *StepError, whose Step is -1 where the body as a whole is meant; *SyntaxError, ErrTooDeep, ErrTooLarge.
func ParseSteps(src []byte, l Limits) ([]Step, error) {
	var t tree
	if err := t.parse(bytes.Clone(src), l.withDefaults()); err != nil {
		return nil, err
	}
	if t.nodes[0].kind != kindArray {
		return nil, &StepError{Step: -1, Reason: "is not an array of operations"}
	}
	steps := make([]Step, 0, min(int(t.nodes[0].count), MaxSteps))
	for c := t.firstChild(0); c != none; c = t.nextChild(0, c) {
		if len(steps) == MaxSteps {
			return nil, tooManySteps()
		}
		s, e := t.step(c)
		if e != nil {
			e.Step, e.Action, e.Path = len(steps), s.Action, s.Path
			return nil, e
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// step reads value i as a step. The error has no Step yet.
func (t *tree) step(i int32) (s Step, e *StepError) {
	if t.nodes[i].kind != kindObject {
		return s, &StepError{Reason: "is not an object"}
	}
	t.prepare(i)
	has := [5]int32{none, none, none, none, none}
	names := [...]string{"op", "path", "from", "value", "format"}
	for c := t.firstChild(i); c != none; c = t.nextChild(i, c) {
		key, esc := t.keyText(c)
		name, at := string(appendText(nil, key, esc)), -1
		for n := range names {
			if names[n] == name {
				at = n
			}
		}
		switch {
		case at < 0:
			return s, &StepError{Field: name, Reason: "is no key of an operation: op, path, from, value, format"}
		case t.shadowed(c):
			return s, &StepError{Field: name, Reason: "is given twice"}
		case at != 3 && t.nodes[c].kind != kindString:
			return s, &StepError{Field: name, Reason: "is not a string"}
		}
		has[at] = c
	}
	if has[0] == none {
		return s, &StepError{Field: "op", Reason: "is missing"}
	}
	var err error
	if s.Action, err = ParseAction(t.content(has[0])); err != nil {
		return s, &StepError{Field: "op", Reason: err.Error()}
	}
	if has[1] != none {
		s.Path = t.content(has[1])
	} else if s.Action != OpRemoveEmpty {
		return s, &StepError{Field: "path", Reason: "is missing"}
	}
	if has[2] != none {
		s.From = t.content(has[2])
	}
	if has[2] != none != s.Action.takesFrom() {
		return s, unwanted("from", has[2] != none)
	}
	if has[3] != none != s.Action.takesValue() {
		return s, unwanted("value", has[3] != none)
	}
	if has[3] != none {
		var reason string
		if s.Value, reason = t.valueOf(has[3]); reason != "" {
			return s, &StepError{Field: "value", Reason: reason}
		}
	}
	if has[4] != none {
		s.Format = t.content(has[4])
	}
	return s, nil
}

func unwanted(field string, given bool) *StepError {
	if given {
		return &StepError{Field: field, Reason: "is not for this operation"}
	}
	return &StepError{Field: field, Reason: "is missing"}
}

// content returns what string i says.
func (t *tree) content(i int32) string {
	text, esc := t.text(i)
	return string(appendText(nil, text, esc))
}

// ParseValue reads the JSON form of a Value. It is a literal, unless it is an object whose only keys are `from` and, if need
// be, `path` or `name`, with `from` one of the sources: {"from":"incoming","path":"/x"}, {"from":"header","name":"X-Team"},
// {"from":"now"}. An object whose only key is `literal` is what stands there, so that {"literal":{"from":"id"}} is the object
// {"from":"id"}. The value keeps no reference to src.
//
// Errors: *StepError with Step -1 and Field "value"; *SyntaxError, ErrTooDeep, ErrTooLarge.
func ParseValue(src []byte, l Limits) (Value, error) {
	var t tree
	if err := t.parse(bytes.Clone(src), l.withDefaults()); err != nil {
		return Value{}, err
	}
	v, reason := t.valueOf(0)
	if reason != "" {
		return Value{}, &StepError{Step: -1, Field: "value", Reason: reason}
	}
	return v, nil
}

func (t *tree) valueOf(i int32) (v Value, reason string) {
	literal := Value{Literal: t.raw(i)}
	if t.nodes[i].kind != kindObject {
		return literal, ""
	}
	t.prepare(i)
	if c := t.find(i, []byte("literal"), false, none); c != none && t.nodes[i].count == 1 {
		return Value{Literal: t.raw(c)}, ""
	}
	from := t.find(i, []byte("from"), false, none)
	if from == none || t.nodes[from].kind != kindString {
		return literal, ""
	}
	path, name := t.find(i, []byte("path"), false, none), t.find(i, []byte("name"), false, none)
	known := int32(1)
	for _, c := range [...]int32{path, name} {
		if c != none && t.nodes[c].kind == kindString {
			known++
		}
	}
	if t.nodes[i].count != known {
		return literal, ""
	}
	source, err := ParseSource(t.content(from))
	if err != nil || source == FromLiteral {
		if known == 1 {
			return literal, ""
		}
		return v, "has an unknown `from`: write {\"literal\": …} around an object that is meant as it stands"
	}
	v.Source = source
	switch {
	case path != none && !source.isDocument():
		return v, "from " + source.String() + " has no path"
	case name != none && source != FromHeader:
		return v, "from " + source.String() + " has no name"
	case name == none && source == FromHeader:
		return v, "from header needs the name of the header"
	}
	if path != none {
		v.Path = t.content(path)
	}
	if name != none {
		v.Name = t.content(name)
	}
	return v, ""
}

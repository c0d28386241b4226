package edit

import (
	"errors"
	"strings"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// An Operation is one operation of RFC 6902.
type Operation struct {
	Op    string // add, remove, replace, move, copy or test
	Path  string // JSON Pointer (RFC 6901), unescaped as JSON but not as a pointer
	From  string // JSON Pointer; of move and copy
	Value []byte // one JSON value; of add, replace and test
}

// A Patch is a JSON Patch (RFC 6902). It may be applied by several goroutines at once as long as none changes it.
type Patch []Operation

// action returns what the operation does, 0 if RFC 6902 doesn't have it.
func (op *Operation) action() Action {
	if a, _ := ParseAction(op.Op); a <= OpTest {
		return a
	}
	return 0
}

// ParsePatch reads the body of an application/json-patch+json request. Members that RFC 6902 doesn't define are ignored, as
// it says; one that it does define must not be there twice. The patch keeps no reference to src.
//
// Errors: *PatchError; *tree.SyntaxError, tree.ErrTooDeep or tree.ErrTooLarge for the body as a whole; those of Limits.Room.
func ParsePatch(src []byte, l tree.Limits) (p Patch, err error) {
	p = Patch{}
	err = parseOperations(src, l, &PatchError{Index: -1, Reason: notOperations}, func(v tree.Value) error {
		var op Operation
		reason := op.read(v)
		if reason == "" {
			_, reason = op.compile()
		}
		if reason != "" {
			return &PatchError{Index: len(p), Op: op.Op, Path: op.Path, Reason: reason}
		}
		p = append(p, op)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// read reads an operation as far as it is one; reason says where it is not.
func (op *Operation) read(v tree.Value) (reason string) {
	o, twice, reason := operationOf(v, false)
	switch {
	case twice != "":
		return `has two "` + twice + `"`
	case reason != "":
		return reason
	}
	field := func(key int) (text string) {
		if text, wrong := o.text(key); wrong == "" || reason != "" {
			return text
		}
		reason = `"` + keyNames[key] + `" is not a string`
		if !o[key].Exists() {
			reason = `has no "` + keyNames[key] + `"`
		}
		return ""
	}
	op.Op = field(keyOp)
	if reason != "" {
		return reason
	}
	op.Path = field(keyPath)
	switch a := op.action(); {
	case a == 0:
		return notRFC6902
	case actions[a].from:
		op.From = field(keyFrom)
	case actions[a].value:
		if op.Value = o[keyValue].Raw(); op.Value == nil && reason == "" {
			reason = `has no "value"`
		}
	}
	return reason
}

const notRFC6902 = "is not an operation of RFC 6902"

// compile makes a step of the operation, without its value; reason says what is wrong with it, whatever it is applied to.
func (op *Operation) compile() (s step, reason string) {
	s = step{Step: Step{Action: op.action(), Path: op.Path, From: op.From}, strict: true}
	if s.Action == 0 {
		return s, notRFC6902
	}
	var err error
	if s.path, err = jsontext.SplitPointer(op.Path); err != nil {
		return s, "path " + err.Error()
	}
	if actions[s.Action].from {
		if s.from, err = jsontext.SplitPointer(op.From); err != nil {
			return s, "from " + err.Error()
		}
	}
	return s, ""
}

// Apply returns doc with the patch applied to it, all of it or, with an error, none. doc may be any JSON value. Bytes that no operation
// touches stay; a new member goes to the end of its object; of duplicate keys the last is meant, and a removal takes all of them. Numbers
// are tested by their decimal value, strings by their content.
//
// Errors: *PatchError, *TestError; *tree.SyntaxError for doc; tree.ErrTooDeep and tree.ErrTooLarge for doc, or for the result. Values
// that the patch adds and then removes count, too.
func (p Patch) Apply(doc []byte, l tree.Limits) ([]byte, error) {
	r := newRun(nil)
	defer r.end()
	if err := r.read(doc, l); err != nil {
		return nil, err
	}
	for i := range p {
		if err := r.operate(i, &p[i]); err != nil {
			return nil, r.bound(err)
		}
	}
	return r.render()
}

// operate carries out operation n of a patch.
func (r *run) operate(n int, op *Operation) error {
	s, reason := op.compile()
	r.op, r.n, r.s = s, n, &r.op
	switch inside := strings.HasPrefix(op.Path, op.From+"/"); {
	case reason != "":
	case s.Action == OpRemove && op.Path == "":
		reason = "the whole document can't be removed"
	case s.Action == OpMove && inside:
		reason = "is inside the value that is moved"
	}
	if reason != "" {
		return &PatchError{Index: n, Op: op.Op, Path: op.Path, Reason: reason}
	}
	if actions[s.Action].value {
		v, err := r.parse(op.Value, 0)
		var syntax *tree.SyntaxError
		if errors.As(err, &syntax) {
			return r.fail("", op.Path, "value is not JSON: "+syntax.Reason)
		} else if err != nil {
			return err
		}
		r.op.literal = v
	}
	_, err := r.carryOut(n, &r.op)
	return err
}

// AppendJSON appends the patch as the body of an application/json-patch+json request.
func (p Patch) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range p {
		op, a := &p[i], p[i].action()
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = tree.AppendString(append(dst, `{"op":`...), op.Op)
		dst = tree.AppendString(append(dst, `,"path":`...), op.Path)
		if actions[a].from {
			dst = tree.AppendString(append(dst, `,"from":`...), op.From)
		}
		if actions[a].value {
			dst = append(append(dst, `,"value":`...), op.Value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// MarshalJSON is AppendJSON: without it, encoding/json would write values as base64.
func (p Patch) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

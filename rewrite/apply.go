package rewrite

import (
	"errors"
	"strings"
)

// Apply returns doc with the patch applied to it, all of it or, with an error, none. doc may be any JSON value. What no
// operation touches keeps its bytes; a new member goes to the end of its object; of duplicate keys the last is meant, and
// a removal takes all of them. Numbers are tested by their decimal value, strings by their content.
//
// Errors: *PatchError, *TestError; *SyntaxError for doc; ErrTooDeep and ErrTooLarge for doc, or for the result, in which
// what the patch put there counts although it took it away again.
func (p Patch) Apply(doc []byte) ([]byte, error) { return p.ApplyWithin(doc, Limits{}) }

// ApplyWithin is Apply within limits.
func (p Patch) ApplyWithin(doc []byte, l Limits) ([]byte, error) {
	a := applier{editor: newEditor(l)}
	defer a.free()
	if err := a.read(doc); err != nil {
		return nil, err
	}
	for i := range p {
		a.index, a.op = i, &p[i]
		if err := a.apply(); err != nil {
			return nil, err
		}
	}
	return a.render(), nil
}

// An applier is one application of a patch.
type applier struct {
	*editor
	index int // of the operation
	op    *Operation
}

func (a *applier) fail(path, reason string) error {
	return &PatchError{a.index, a.op.Op, path, reason}
}

func (a *applier) apply() error {
	op := a.op
	if err := a.bounded(); err != nil {
		return err
	}
	if reason := op.check(); reason != "" {
		return a.fail(op.Path, reason)
	}
	switch op.Op {
	case "add", "replace":
		v, err := a.parse(op.Value)
		if err != nil {
			return err
		}
		return a.put(v)
	case "remove":
		_, err := a.take(op.Path)
		return err
	case "move":
		return a.move()
	case "copy":
		v, err := a.find(op.From)
		if err != nil {
			return err
		}
		if v, err = a.clone(v); err != nil {
			return err
		}
		return a.put(v)
	}
	return a.test()
}

// parse reads the value of an operation.
func (a *applier) parse(src []byte) (*value, error) {
	v, err := a.add(src)
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		return nil, a.fail(a.op.Path, "value is not JSON: "+syntax.Reason)
	}
	return v, err
}

func (a *applier) test() error {
	want, err := a.parse(a.op.Value)
	if err != nil {
		return err
	}
	a.size -= len(a.op.Value) // it does not come to the document
	failed := &TestError{Index: a.index, Path: a.op.Path, Wanted: cut(want.t.raw(0)), Found: "nothing"}
	got, err := a.find(a.op.Path)
	if err != nil {
		return failed // somebody else may have taken it out, as another may have changed it
	}
	if !got.equal(want.t, 0) {
		failed.Found = cut(got.append(nil))
		return failed
	}
	return nil
}

func (a *applier) move() error {
	op := a.op
	if strings.HasPrefix(op.Path, op.From+"/") {
		return a.fail(op.Path, "is inside of what is moved")
	}
	if op.From == op.Path {
		_, err := a.find(op.From) // it is where it is to be, if it is
		return err
	}
	v, err := a.take(op.From)
	if err != nil {
		return err
	}
	return a.put(v)
}

// find returns the value at a path.
func (a *applier) find(path string) (*value, error) {
	tokens, _ := splitPointer(path)
	return a.walk(path, tokens)
}

// walk is find for the tokens of a path, or of a part of it.
func (a *applier) walk(path string, tokens []string) (*value, error) {
	a.above = a.above[:0]
	v := a.root.v
	for _, token := range tokens {
		a.above = append(a.above, v)
		child, reason := v.child(&a.memory, token)
		if reason != "" {
			return nil, a.fail(path, reason)
		}
		v = child.v
	}
	return v, nil
}

// parent returns the container of the value at a path, which isn't the document, and the last token.
func (a *applier) parent(path string) (v *value, token string, err error) {
	tokens, _ := splitPointer(path)
	last := len(tokens) - 1
	if v, err = a.walk(path, tokens[:last]); err != nil {
		return nil, "", err
	}
	if v.kind < kindArray {
		return nil, "", a.fail(path, leadsNowhere)
	}
	a.above = append(a.above, v)
	return v.expand(&a.memory), tokens[last], nil
}

// put sets the value at the operation's path: where there is one already, or is only replaced, or is inserted.
func (a *applier) put(v *value) error {
	path, replace := a.op.Path, a.op.Op == "replace"
	a.above = a.above[:0]
	if path == "" {
		a.root.v = v
		return a.deepen(v)
	}
	parent, token, err := a.parent(path)
	if err != nil {
		return err
	}
	if replace || parent.kind == kindObject {
		if child, reason := parent.child(&a.memory, token); reason == "" {
			child.v = v
			return a.deepen(v)
		} else if replace {
			return a.fail(path, reason)
		}
		parent.addMember(&a.memory, token, v)
		return a.deepen(v)
	}
	at := len(parent.items)
	if token != "-" {
		var reason string
		if at, reason = arrayIndex(token, len(parent.items)+1); reason != "" {
			return a.fail(path, reason)
		}
	}
	if err := a.insert(parent, at, v); err != nil {
		return err
	}
	return a.deepen(v)
}

// take removes the value at a path and returns it.
func (a *applier) take(path string) (*value, error) {
	if path == "" {
		return nil, a.fail(path, "the whole document can't be removed")
	}
	parent, token, err := a.parent(path)
	if err != nil {
		return nil, err
	}
	child, reason := parent.child(&a.memory, token)
	if reason != "" {
		return nil, a.fail(path, reason)
	}
	if parent.kind == kindObject {
		parent.removeMember(child)
		return child.v, nil
	}
	at, _ := arrayIndex(token, len(parent.items))
	return child.v, a.removeElement(parent, at)
}

package edit

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// maxShown bounds how much of a value an error shows.
const maxShown = 200

// maxPathBytes bounds the pointers of errors.
const maxPathBytes = 4096

// cut returns the beginning of a text that a client has sent, whole if it is short.
func cut[T string | []byte](text T, most int) string {
	if len(text) <= most {
		return string(text)
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return string(text[:end]) + "…"
}

// describe names the kind of a value, and shows it if it is a number or a string.
func describe(v tree.Value) string {
	k := v.Kind()
	if k == tree.Number || k == tree.String {
		return k.String() + " " + cut(v.Raw(), maxShown)
	}
	return k.String()
}

// fail returns the error of a step that can't be done.
func (r *run) fail(field, path, reason string) error {
	if r.s.strict {
		return &PatchError{Index: r.n, Op: r.s.Action.String(), Path: path, Reason: reason}
	}
	return &StepError{Step: r.n, Action: r.s.Action, Path: path, Field: field, Reason: reason}
}

// bound names the step in the error of one that is over a bound.
func (r *run) bound(err error) error {
	if !errors.Is(err, tree.ErrTooLarge) && !errors.Is(err, tree.ErrTooDeep) {
		return err
	}
	if r.s.strict {
		return &PatchError{Index: r.n, Op: r.s.Action.String(), Path: r.s.Path, Reason: err.Error(), Err: err}
	}
	return &StepError{Step: r.n, Action: r.s.Action, Path: r.s.Path, Reason: err.Error(), Err: err}
}

// mismatch returns the error of a step that wants something else at a path than n.
func (r *run) mismatch(n *node, path, want string) error {
	return &TypeError{Step: r.n, Action: r.s.Action, Path: path, Want: want, Found: describe(n.was)}
}

// unfit returns the error of a step that can do nothing with its value.
func (r *run) unfit() error {
	return &TypeError{Step: r.n, Action: r.s.Action, Source: r.source(), Path: r.s.Value.Path, Want: r.s.Action.wants(),
		Found: describe(r.val)}
}

// differs returns the error of a test.
func (r *run) differs(path, found string) error {
	wanted := cut(r.val.Raw(), maxShown)
	if !r.val.Exists() {
		wanted = "what isn't there: " + r.source() + " " + cut(r.s.Value.Path, maxPathBytes)
	}
	return &TestError{Index: r.n, Path: path, Wanted: wanted, Found: found}
}

// source names where the step's value is from.
func (r *run) source() string {
	if v := &r.s.Value; v.Name != "" {
		return v.Source.String() + " " + cut(v.Name, maxShown)
	}
	return r.s.Value.Source.String()
}

// pointer returns the JSON Pointer of the first n tokens of the step's path, as far as it was gone with what `*` stood for; of an
// operation it is the path.
func (r *run) pointer(n int) string {
	if r.s.strict {
		return r.s.Path
	}
	var buf []byte
	for i, token := range r.s.path[:n] {
		name := token
		if i < len(r.trail) {
			switch p := &r.trail[i]; {
			case p.parent.kind == tree.Array && p.reason == "":
				name = strconv.Itoa(p.at)
			case p.star && p.it.was.Exists():
				name = p.it.was.Key()
			case p.star:
				name = p.it.name
			}
		}
		if buf = jsontext.AppendToken(buf, name); len(buf) > maxPathBytes {
			return string(buf[:maxPathBytes])
		}
	}
	return string(buf)
}

package rewrite

import (
	"strconv"
	"unicode/utf8"
)

// maxShown bounds how much of a value an error shows.
const maxShown = 200

// cut returns the beginning of a JSON text, whole if it is short.
func cut(text []byte) string {
	if len(text) <= maxShown {
		return string(text)
	}
	end := maxShown
	for end > maxShown-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return string(text[:end]) + "…"
}

var kindNames = [...]string{"null", "false", "true", "number", "string", "array", "object"}

// describe names the kind of value i, and shows it if it is a number or a string.
func (t *tree) describe(i int32) string {
	k := t.nodes[i].kind
	if k == kindNumber || k == kindString {
		return kindNames[k] + " " + cut(t.raw(i))
	}
	return kindNames[k]
}

// fail returns the error of a step that can't be done.
func (a *application) fail(field, path, reason string) error {
	return &StepError{Step: a.n, Action: a.s.Action, Path: path, Field: field, Reason: reason}
}

// mismatch returns the error of a step that wants something else at a path than v.
func (a *application) mismatch(v *value, path, want string) error {
	return &TypeError{Step: a.n, Action: a.s.Action, Path: path, Want: want, Found: v.t.describe(v.node)}
}

// unfit returns the error of a step that can do nothing with its value.
func (a *application) unfit() error {
	return &TypeError{Step: a.n, Action: a.s.Action, Source: a.source(), Path: a.s.Value.Path, Want: a.s.Action.wants(),
		Found: a.val.t.describe(a.val.node)}
}

// differs returns the error of a test.
func (a *application) differs(path, found string) error {
	e := &TestError{Index: a.n, Path: path, Found: found}
	if a.val.t == nil {
		e.Wanted = "what isn't there: " + a.source() + " " + a.s.Value.Path
		return e
	}
	e.Wanted = cut(a.val.t.raw(a.val.node))
	return e
}

// source says where the step's value is from.
func (a *application) source() string {
	if v := &a.s.Value; v.Name != "" {
		return v.Source.String() + " " + v.Name
	}
	return a.s.Value.Source.String()
}

// pointer returns the JSON Pointer of the first n tokens of the step's path, as far as it was gone with what `*` stood for.
func (a *application) pointer(n int) string {
	var buf []byte
	for i := range n {
		if buf = append(buf, '/'); i >= len(a.trail) {
			buf = appendPointerText(buf, []byte(a.s.path[i].text), false)
			continue
		}
		switch p := &a.trail[i]; {
		case p.parent.kind == kindArray && p.reason == "":
			buf = strconv.AppendInt(buf, int64(p.at), 10)
		case p.it != nil:
			key, esc := p.parent.keyText(p.it)
			buf = appendPointerText(buf, key, esc)
		default:
			buf = appendPointerText(buf, []byte(p.name), false)
		}
		if len(buf) > maxPathBytes {
			return string(buf[:maxPathBytes])
		}
	}
	return string(buf)
}

func appendPointerText(dst, text []byte, esc bool) []byte {
	u := unescaper{src: text, plain: !esc}
	for b, ok := u.next(); ok; b, ok = u.next() {
		dst = appendPointerByte(dst, b)
	}
	return dst
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

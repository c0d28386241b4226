package rewrite

import (
	"bytes"
	"strconv"
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

// wants says which members an operation must have.
func wants(op string) (from, value, known bool) {
	switch op {
	case "add", "replace", "test":
		return false, true, true
	case "move", "copy":
		return true, false, true
	case "remove":
		return false, false, true
	}
	return false, false, false
}

// ParsePatch reads the body of an application/json-patch+json request. Members that RFC 6902 doesn't define are ignored, as
// it says; one that it does define must not be there twice. The patch keeps no reference to src.
//
// Errors: *PatchError; *SyntaxError, ErrTooDeep or ErrTooLarge for the body as a whole.
func ParsePatch(src []byte) (Patch, error) { return Limits{}.ParsePatch(src) }

// ParsePatch is the function of that name within limits.
func (l Limits) ParsePatch(src []byte) (Patch, error) {
	var t tree
	if err := t.parse(bytes.Clone(src), l.withDefaults()); err != nil {
		return nil, err
	}
	if t.nodes[0].kind != kindArray {
		return nil, &PatchError{Index: -1, Reason: "is not an array of operations"}
	}
	p := make(Patch, 0, t.nodes[0].count)
	for c := t.firstChild(0); c != none; c = t.nextChild(0, c) {
		op, reason := t.operation(c)
		if reason == "" {
			reason = op.check()
		}
		if reason != "" {
			return nil, &PatchError{len(p), op.Op, op.Path, reason}
		}
		p = append(p, op)
	}
	return p, nil
}

// operation reads value i as an operation, as far as it is one; reason says where it is not.
func (t *tree) operation(i int32) (op Operation, reason string) {
	if t.nodes[i].kind != kindObject {
		return op, "is not an object"
	}
	t.prepare(i)
	for c := t.firstChild(i); c != none; c = t.nextChild(i, c) {
		key, esc := t.keyText(c)
		name := string(appendText(nil, key, esc))
		if name != "op" && name != "path" && name != "from" && name != "value" {
			continue
		}
		if t.shadowed(c) {
			return op, `has two "` + name + `"`
		}
	}
	if op.Op, reason = t.stringMember(i, "op"); reason != "" {
		return op, reason
	}
	from, value, known := wants(op.Op)
	if !known {
		op.Path, _ = t.stringMember(i, "path") // so that the error names it
		return op, "is not an operation of RFC 6902"
	}
	if op.Path, reason = t.stringMember(i, "path"); reason != "" {
		return op, reason
	}
	if from {
		if op.From, reason = t.stringMember(i, "from"); reason != "" {
			return op, reason
		}
	}
	if value {
		c := t.find(i, []byte("value"), false, none)
		if c == none {
			return op, `has no "value"`
		}
		op.Value = t.raw(c)
	}
	return op, ""
}

func (t *tree) stringMember(i int32, name string) (s, reason string) {
	c := t.find(i, []byte(name), false, none)
	if c == none {
		return "", `has no "` + name + `"`
	}
	if t.nodes[c].kind != kindString {
		return "", `"` + name + `" is not a string`
	}
	text, esc := t.text(c)
	return string(appendText(nil, text, esc)), ""
}

// check says what is wrong with an operation before it is applied to anything, if something is.
func (op *Operation) check() (reason string) {
	from, _, known := wants(op.Op)
	if !known {
		return "is not an operation of RFC 6902"
	}
	if _, reason = splitPointer(op.Path); reason != "" {
		return "path " + reason
	}
	if from {
		if _, reason = splitPointer(op.From); reason != "" {
			return "from " + reason
		}
	}
	return ""
}

// AppendJSON appends the patch as the body of an application/json-patch+json request.
func (p Patch) AppendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, op := range p {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"op":`...), op.Op)
		dst = appendString(append(dst, `,"path":`...), op.Path)
		from, value, _ := wants(op.Op)
		if from {
			dst = appendString(append(dst, `,"from":`...), op.From)
		}
		if value {
			dst = append(append(dst, `,"value":`...), op.Value...)
		}
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

// MarshalJSON is AppendJSON: without it, encoding/json would write values as base64.
func (p Patch) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// appendString appends s as a JSON string. Half surrogates, which unescaping leaves as three bytes, become escapes again,
// unless two of them would come to mean one character.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	half := false // an escaped one was just written
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == 0xED && i+2 < len(s) && s[i+1] >= 0xA0 && s[i+1] <= 0xBF && s[i+2]&0xC0 == 0x80 && !half {
			r := int64(c&0x0F)<<12 | int64(s[i+1]&0x3F)<<6 | int64(s[i+2]&0x3F)
			dst = strconv.AppendInt(append(dst, `\u`...), r, 16)
			half, i = true, i+2
			continue
		}
		half = false
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < 0x20:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

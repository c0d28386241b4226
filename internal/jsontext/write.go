package jsontext

import (
	"bytes"
	"encoding/json"
)

// AppendString appends a string of JSON as people read it: < > and & stand as they are. The library escapes them, as only a text inside of
// a page of HTML needs it.
func AppendString(dst []byte, s string) []byte {
	text, _ := Marshal(s) // a string always has a form
	return append(dst, text...)
}

// Marshal is v as JSON, with its strings as AppendString writes them.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

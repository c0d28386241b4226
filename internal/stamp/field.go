package stamp

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"optimist/internal/jsontext"
)

// Put appends document, a JSON object, to dst with the stamp as its last member under the field. Every other byte stays as it is; what the
// document has under the field itself is left out, for a client can't tell it from the stamp. ok is false for what isn't an object that can
// be read; dst is then as it was.
func Put(dst, document []byte, field string, s Stamp) (out []byte, ok bool) {
	var text [64]byte
	return PutValue(dst, document, field, append(s.Append(append(text[:0], '"')), '"'))
}

// PutValue is Put for another value than a stamp: value is JSON.
func PutValue(dst, document []byte, field string, value []byte) (out []byte, ok bool) {
	document, _, ok = Take(document, field)
	if !ok {
		return dst, false
	}
	end, empty := lastMember(document)
	dst = append(dst, document[:end]...)
	if !empty {
		dst = append(dst, ',')
	}
	dst = append(appendKey(dst, field), ':')
	dst = append(dst, value...)
	return append(dst, document[end:]...), true
}

// appendKey appends the field's name as JSON writes it.
func appendKey(dst []byte, field string) []byte {
	if plain(field) {
		return append(append(append(dst, '"'), field...), '"')
	}
	name, _ := json.Marshal(field) // a string always has a form
	return append(dst, name...)
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// Taken is what stood under the field.
type Taken struct {
	// Value is the JSON under the field, the last one's where there were several, nil where there was none.
	Value []byte
	// Differ says that there were several, with different values.
	Differ bool
}

// Stamp reads what stood there. found says that something did which isn't null: what applications write before they know a value. ok
// says that it is a stamp.
func (t Taken) Stamp() (s Stamp, found, ok bool) {
	if t.Value == nil || string(t.Value) == "null" && !t.Differ {
		return Stamp{}, false, false
	}
	if t.Differ || len(t.Value) < 2 || t.Value[0] != '"' {
		return Stamp{}, true, false
	}
	text := t.Value[1 : len(t.Value)-1]
	if bytes.IndexByte(text, '\\') >= 0 { // whoever writes JSON may write every character as an escape
		plain, _ := unquote(t.Value)
		text = []byte(plain)
	}
	s, ok = Parse(text)
	return s, true, ok
}

// Take takes the members with the field's name out of a JSON object, at its top only. rest is the document itself where there is none,
// else a copy in which every other byte is as it was. ok is false for what isn't an object that can be read.
func Take(document []byte, field string) (rest []byte, t Taken, ok bool) {
	var out []byte
	from, kept := 0, false // what is before from is in out, or left out
	comma := -1            // the one before the member at hand
	s := jsontext.Scan(document)
	for s.IsObject() && s.Next() {
		if !s.Named(field) {
			kept, comma = true, s.Comma
			continue
		}
		t.add(s.Text())
		cut, to := s.Key, s.End
		switch {
		case kept:
			cut = comma
		case s.Comma >= 0:
			to = s.Comma + 1
		}
		out = append(out, document[from:cut]...)
		from, comma = to, s.Comma
	}
	if !s.Whole() || !s.IsObject() {
		return document, Taken{}, false
	}
	if t.Value == nil {
		return document, t, true
	}
	return append(out, document[from:]...), t, true
}

// unquote gives the meaning of a JSON string.
func unquote(quoted []byte) (plain string, ok bool) {
	err := json.Unmarshal(quoted, &plain)
	return plain, err == nil
}

func (t *Taken) add(value []byte) {
	t.Differ = t.Differ || t.Value != nil && !bytes.Equal(t.Value, value)
	t.Value = value
}

// lastMember is where the last member of an object ends, or, of an empty one, where its first would begin. The object is known to be
// whole.
func lastMember(document []byte) (end int, empty bool) {
	end = bytes.LastIndexByte(document, '}')
	for end > 0 && jsontext.IsSpace(document[end-1]) {
		end--
	}
	if document[end-1] == '{' && onlyBrace(document[:end]) {
		return end, true
	}
	return end, false
}

// Without takes the members with these names out of a JSON object, at its top. It reports whether there was one.
func Without(document []byte, fields ...string) (rest []byte, found bool) {
	for _, field := range fields {
		if without, t, ok := Take(document, field); ok && t.Value != nil {
			found, document = true, without
		}
	}
	return document, found
}

// onlyBrace reports whether the object's opening brace is all that stands there.
func onlyBrace(b []byte) bool { return jsontext.SkipSpace(b, 0) == len(b)-1 }

// TakeIn is Take for the objects that are members of the document under the name.
func TakeIn(document []byte, name, field string) (rest []byte, t Taken, ok bool) {
	var out []byte
	from, s := 0, jsontext.Scan(document)
	for s.IsObject() && s.Next() {
		if !s.Named(name) {
			continue
		}
		inner, taken, is := Take(s.Text(), field)
		if !is || taken.Value == nil {
			continue
		}
		t.add(taken.Value)
		t.Differ = t.Differ || taken.Differ
		out = append(append(out, document[from:s.Value]...), inner...)
		from = s.End
	}
	if !s.Whole() || !s.IsObject() {
		return document, Taken{}, false
	}
	if t.Value == nil {
		return document, t, true
	}
	return append(out, document[from:]...), t, true
}

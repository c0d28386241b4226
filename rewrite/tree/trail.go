package tree

import (
	"strconv"

	"optimist/internal/jsontext"
)

// A Place is one step of a path: into a member, or into the element of that index.
type Place struct {
	Member Value
	Index  int // of an element, for which Member is not there
}

// append appends p as a token of a JSON Pointer, with its slash.
func (p Place) append(dst []byte) []byte {
	if p.Member.Exists() {
		var buf [onStack]byte
		key, esc := p.Member.t.keyText(p.Member.i)
		return jsontext.AppendToken(dst, content(buf[:0], key, esc))
	}
	return strconv.AppendInt(append(dst, '/'), int64(p.Index), 10)
}

// A Trail is the path from a document to a value in it.
type Trail []Place

// Pointer returns the trail as a JSON Pointer (RFC 6901) of at most that many bytes: a longer one is cut back to the nearest value
// around it, so that keys of a megabyte don't multiply with what is below them.
func (t Trail) Pointer(most int) string {
	var buf []byte
	for _, p := range t {
		if p.Member.Exists() && p.Member.KeyLen() > most {
			break
		}
		at := len(buf)
		if buf = p.append(buf); len(buf) > most {
			buf = buf[:at]
			break
		}
	}
	return string(buf)
}

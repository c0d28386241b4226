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
	dst = append(dst, '/')
	if !p.Member.Exists() {
		return strconv.AppendInt(dst, int64(p.Index), 10)
	}
	key, esc := p.Member.t.keyText(p.Member.i)
	u := unescaper{src: key, plain: !esc}
	for b, ok := u.next(); ok; b, ok = u.next() {
		dst = jsontext.AppendTokenByte(dst, b)
	}
	return dst
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

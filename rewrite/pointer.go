package rewrite

import "strconv"

// MaxPaths bounds how many paths a Result or a ConflictError names.
const MaxPaths = 100

// maxPathBytes bounds each of them: a longer one is cut back to the nearest value around it, so that keys of a
// megabyte don't multiply with what is below them.
const maxPathBytes = 4096

// A place is one step of a path: a member, which has its key in t, or an element.
type place struct {
	t     *tree
	node  int32 // of the member
	index int32 // of the element; none for a member
}

// appendPlace appends p as a token of a JSON Pointer (RFC 6901), with its slash.
func appendPlace(dst []byte, p place) []byte {
	dst = append(dst, '/')
	if p.index != none {
		return strconv.AppendInt(dst, int64(p.index), 10)
	}
	key, esc := p.t.keyText(p.node)
	u := unescaper{src: key, plain: !esc}
	for b, ok := u.next(); ok; b, ok = u.next() {
		dst = appendPointerByte(dst, b)
	}
	return dst
}

func appendPointerByte(dst []byte, b byte) []byte {
	switch b {
	case '~':
		return append(dst, "~0"...)
	case '/':
		return append(dst, "~1"...)
	}
	return append(dst, b)
}

// pointer returns the JSON Pointer of a path.
func pointer(trail []place) string {
	var buf []byte
	for _, p := range trail {
		if p.index == none && int(p.t.nodes[p.node].keyEnd-p.t.nodes[p.node].key) > maxPathBytes {
			break
		}
		at := len(buf)
		if buf = appendPlace(buf, p); len(buf) > maxPathBytes {
			buf = buf[:at]
			break
		}
	}
	return string(buf)
}

// A pathList collects the paths that a Result or an error names.
type pathList struct {
	paths []string
	more  int
}

func (l *pathList) add(trail []place) {
	if len(l.paths) >= MaxPaths {
		l.more++
		return
	}
	p := pointer(trail)
	if n := len(l.paths); n == 0 || l.paths[n-1] != p {
		l.paths = append(l.paths, p)
	}
}

package rewrite

import (
	"encoding/binary"
	"math/bits"
)

// parse reads src, which must be one JSON value as RFC 8259 has it, into t. Bytes from 0x80 up are taken in strings as they
// are: the engine is the judge of their encoding, and a document that it took must be mergeable.
func (t *tree) parse(src []byte, l Limits) error {
	t.src, t.nodes, t.tables, t.slots = src, t.nodes[:0], t.tables[:0], t.slots[:0]
	t.depth, t.values = l.Depth, l.Values
	if len(src) > l.Bytes {
		return ErrTooLarge
	}
	end, err := t.scanValue(t.space(0), 0)
	if err != nil {
		return err
	}
	if end = t.space(end); end != len(src) {
		return syntaxError(end, "something follows the document")
	}
	return nil
}

// parseObject is parse for a document. A nil src is the absent document, which merges as an empty object.
func (t *tree) parseObject(src []byte, l Limits) error {
	if src == nil {
		src = absent
	}
	if err := t.parse(src, l); err != nil {
		return err
	}
	if t.nodes[0].kind != kindObject {
		return ErrNotObject
	}
	return nil
}

var absent = []byte("{}")

func syntaxError(at int, reason string) error { return &SyntaxError{Offset: at, Reason: reason} }

// space returns the offset of the first byte from at on that isn't white space.
func (t *tree) space(at int) int {
	for at < len(t.src) {
		switch t.src[at] {
		case ' ', '\t', '\n', '\r':
			at++
		default:
			return at
		}
	}
	return at
}

// scanValue adds the value that begins at offset at and returns the offset after it. depth is the number of containers
// around it.
func (t *tree) scanValue(at, depth int) (int, error) {
	if at >= len(t.src) {
		return 0, syntaxError(at, "a value is missing")
	}
	if len(t.nodes) >= t.values {
		return 0, ErrTooLarge
	}
	self := len(t.nodes)
	t.nodes = append(t.nodes, node{start: int32(at)})
	n := &t.nodes[self]
	var end int
	var err error
	switch c := t.src[at]; {
	case c == '"':
		var esc bool
		if end, esc, err = t.scanString(at + 1); esc {
			n.flags |= flagEscaped
		}
		n.kind = kindString
	case c == '-' || c >= '0' && c <= '9':
		end, err = t.scanNumber(at)
		n.kind = kindNumber
	case c == '{' || c == '[':
		if depth >= t.depth {
			return 0, ErrTooDeep
		}
		if c == '{' {
			end, err = t.scanObject(self, at, depth+1)
		} else {
			end, err = t.scanArray(self, at, depth+1)
		}
		n = &t.nodes[self] // the slice may have moved
	case c == 't':
		end, err = t.scanWord(at, "true")
		n.kind = kindTrue
	case c == 'f':
		end, err = t.scanWord(at, "false")
		n.kind = kindFalse
	case c == 'n':
		end, err = t.scanWord(at, "null")
	default:
		return 0, syntaxError(at, "not the beginning of a value")
	}
	n.end, n.skip = int32(end), int32(len(t.nodes))
	return end, err
}

func (t *tree) scanWord(at int, word string) (int, error) {
	for i := range len(word) {
		if at+i >= len(t.src) || t.src[at+i] != word[i] {
			return 0, syntaxError(at+i, "not true, false or null")
		}
	}
	return at + len(word), nil
}

func (t *tree) scanObject(self, at, depth int) (int, error) {
	count, height := int32(0), uint16(0)
	at = t.space(at + 1)
	if at < len(t.src) && t.src[at] == '}' {
		return t.closeContainer(self, kindObject, at, 0, 0), nil
	}
	for {
		if at >= len(t.src) || t.src[at] != '"' {
			return 0, syntaxError(at, "a key is missing")
		}
		keyEnd, esc, err := t.scanString(at + 1)
		if err != nil {
			return 0, err
		}
		colon := t.space(keyEnd)
		if colon >= len(t.src) || t.src[colon] != ':' {
			return 0, syntaxError(colon, "a colon is missing")
		}
		child := len(t.nodes)
		end, err := t.scanValue(t.space(colon+1), depth)
		if err != nil {
			return 0, err
		}
		n := &t.nodes[child]
		n.key, n.keyEnd = int32(at), int32(keyEnd)
		if esc {
			n.flags |= flagKeyEscaped
		}
		count, height = count+1, max(height, n.height)
		at = t.space(end)
		switch {
		case at < len(t.src) && t.src[at] == ',':
			at = t.space(at + 1)
		case at < len(t.src) && t.src[at] == '}':
			return t.closeContainer(self, kindObject, at, count, height), nil
		default:
			return 0, syntaxError(at, "a comma or the end of the object is missing")
		}
	}
}

func (t *tree) scanArray(self, at, depth int) (int, error) {
	count, height := int32(0), uint16(0)
	at = t.space(at + 1)
	if at < len(t.src) && t.src[at] == ']' {
		return t.closeContainer(self, kindArray, at, 0, 0), nil
	}
	for {
		child := len(t.nodes)
		end, err := t.scanValue(at, depth)
		if err != nil {
			return 0, err
		}
		count, height = count+1, max(height, t.nodes[child].height)
		at = t.space(end)
		switch {
		case at < len(t.src) && t.src[at] == ',':
			at = t.space(at + 1)
		case at < len(t.src) && t.src[at] == ']':
			return t.closeContainer(self, kindArray, at, count, height), nil
		default:
			return 0, syntaxError(at, "a comma or the end of the array is missing")
		}
	}
}

// closeContainer notes what is known at a container's closing bracket, and returns the offset after it.
func (t *tree) closeContainer(self int, k kind, at int, count int32, height uint16) int {
	n := &t.nodes[self]
	n.kind, n.count, n.height = k, count, height+1
	return at + 1
}

// scanString returns the offset after the closing quote, and whether the string has escapes. at is after the opening one.
func (t *tree) scanString(at int) (end int, esc bool, err error) {
	src := t.src
	for {
		at = plainText(src, at)
		if at >= len(src) {
			return 0, esc, syntaxError(at, "a string does not end")
		}
		switch src[at] {
		case '"':
			return at + 1, esc, nil
		case '\\':
			esc = true
			if at, err = t.scanEscape(at); err != nil {
				return 0, esc, err
			}
		default:
			return 0, esc, syntaxError(at, "a control character in a string")
		}
	}
}

// plainText returns the offset of the first quote, backslash or control character from at on, looking at eight bytes at a
// time: strings are most of a document.
func plainText(src []byte, at int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(src); at += 8 {
		w := binary.LittleEndian.Uint64(src[at:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		// Each term marks bytes that are zero (or, the last, below 0x20). Borrows only spoil bytes above a marked one,
		// so the lowest mark is always right.
		hit := ((quote-ones)&^quote | (slash-ones)&^slash | (w-0x20*ones)&^w) & highs
		if hit != 0 {
			return at + bits.TrailingZeros64(hit)/8
		}
	}
	for ; at < len(src); at++ {
		if c := src[at]; c == '"' || c == '\\' || c < 0x20 {
			return at
		}
	}
	return at
}

// scanEscape returns the offset after the escape that begins at offset at. A surrogate without its other half is taken:
// it is what Java's and JavaScript's serializers write for a string that was cut.
func (t *tree) scanEscape(at int) (int, error) {
	if at+1 >= len(t.src) {
		return 0, syntaxError(at+1, "a string does not end")
	}
	switch t.src[at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return at + 2, nil
	case 'u':
		for i := at + 2; i < at+6; i++ {
			if i >= len(t.src) || hexDigit(t.src[i]) < 0 {
				return 0, syntaxError(i, "not a hexadecimal digit")
			}
		}
		return at + 6, nil
	}
	return 0, syntaxError(at+1, "not an escape")
}

func (t *tree) scanNumber(at int) (int, error) {
	src := t.src
	if src[at] == '-' {
		at++
	}
	switch {
	case at < len(src) && src[at] == '0':
		at++
	default:
		end := digits(src, at)
		if end == at {
			return 0, syntaxError(at, "a digit is missing")
		}
		at = end
	}
	if at < len(src) && src[at] == '.' {
		end := digits(src, at+1)
		if end == at+1 {
			return 0, syntaxError(end, "a digit is missing")
		}
		at = end
	}
	if at < len(src) && src[at]|0x20 == 'e' {
		at++
		if at < len(src) && (src[at] == '+' || src[at] == '-') {
			at++
		}
		end := digits(src, at)
		if end == at {
			return 0, syntaxError(end, "a digit is missing")
		}
		at = end
	}
	return at, nil
}

// digits returns the offset after the run of digits at offset at.
func digits(src []byte, at int) int {
	for at < len(src) && src[at] >= '0' && src[at] <= '9' {
		at++
	}
	return at
}

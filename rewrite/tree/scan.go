package tree

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// Parse reads src, which must be one JSON value as RFC 8259 has it. Bytes from 0x80 up are taken in strings as they
// are: the engine is the judge of their encoding, and a document that it took must be mergeable. The tree keeps src, which must
// not change until Release.
//
// Errors: *SyntaxError, ErrTooDeep, ErrTooLarge, and those of Limits.Room.
func (t *Tree) Parse(src []byte, l Limits) error {
	l = l.WithDefaults()
	t.src, t.nodes, t.tables, t.slots = src, t.nodes[:0], t.tables[:0], t.slots[:0]
	t.depth, t.values, t.room = l.Depth, l.Values, l.Room
	if len(src) > l.Bytes {
		return ErrTooLarge
	}
	end, err := t.scanValue(t.space(0), 0)
	if err != nil {
		return err
	}
	t.nodes[0].flags |= flagLast
	if end = t.space(end); end != len(src) {
		return syntaxError(end, "something follows the document")
	}
	return nil
}

// ParseObject is Parse for what must be an object, else the error is ErrNotObject. A nil src is the absent document, which is an
// empty object.
func (t *Tree) ParseObject(src []byte, l Limits) error {
	if src == nil {
		src = []byte("{}")
	}
	if err := t.Parse(src, l); err != nil {
		return err
	}
	if t.nodes[0].kind != Object {
		return ErrNotObject
	}
	return nil
}

// Check is ParseObject without the document.
func Check(src []byte, l Limits) error {
	t := Borrow()
	defer t.Return()
	return t.ParseObject(src, l)
}

func syntaxError(at int, reason string) error { return &SyntaxError{Offset: at, Reason: reason} }

// space returns the offset of the first byte from at on that isn't white space.
func (t *Tree) space(at int) int {
	for at < len(t.src) && t.src[at] <= ' ' && (t.src[at] == ' ' || t.src[at] == '\n' || t.src[at] == '\r' || t.src[at] == '\t') {
		at++
	}
	return at
}

// scanValue adds the value that begins at offset at and returns the offset after it. depth is the number of containers
// around it.
func (t *Tree) scanValue(at, depth int) (int, error) {
	if at >= len(t.src) {
		return 0, syntaxError(at, "a value is missing")
	}
	if len(t.nodes) >= t.values {
		return 0, ErrTooLarge
	}
	n := node{start: int32(at), skip: int32(len(t.nodes) + 1)}
	var end int
	var err error
	switch c := t.src[at]; {
	case c == '"':
		var esc bool
		n.kind = String
		if end, esc, err = t.scanString(at + 1); esc {
			n.flags = flagEscaped
		}
	case c == '-' || c >= '0' && c <= '9':
		n.kind = Number
		end, err = t.scanNumber(at)
	case c == '{' || c == '[':
		return t.scanContainer(n, at, depth+1)
	case c == 't':
		n.kind = True
		end, err = t.scanWord(at, "true")
	case c == 'f':
		n.kind = False
		end, err = t.scanWord(at, "false")
	case c == 'n':
		n.kind = Null
		end, err = t.scanWord(at, "null")
	default:
		return 0, syntaxError(at, "not the beginning of a value")
	}
	n.end = int32(end)
	if err == nil {
		err = t.add(n)
	}
	return end, err
}

// add adds a node. Memory is taken for as many as are made room for, which is for half as many again.
func (t *Tree) add(n node) error {
	const atFirst = 64
	if len(t.nodes) == cap(t.nodes) {
		more := max(cap(t.nodes)/2, atFirst)
		if t.room != nil {
			if err := t.room.Take(int64(more) * roomOfValue); err != nil {
				return err
			}
		}
		t.nodes = slices.Grow(t.nodes, more)
	}
	t.nodes = append(t.nodes, n)
	return nil
}

func (t *Tree) scanWord(at int, word string) (int, error) {
	for i := range len(word) {
		if at+i >= len(t.src) || t.src[at+i] != word[i] {
			return 0, syntaxError(at+i, "not true, false or null")
		}
	}
	return at + len(word), nil
}

// scanContainer is scanValue for an object or array.
func (t *Tree) scanContainer(n node, at, depth int) (int, error) {
	if depth > t.depth {
		return 0, ErrTooDeep
	}
	self, isObject, closing := len(t.nodes), t.src[at] == '{', t.src[at]+2 // as } and ] are in ASCII
	n.kind, n.height = Array, 1
	if isObject {
		n.kind = Object
	}
	if err := t.add(n); err != nil {
		return 0, err
	}
	at = t.space(at + 1)
	if at < len(t.src) && t.src[at] == closing {
		t.nodes[self].end = int32(at + 1)
		return at + 1, nil
	}
	for {
		child := len(t.nodes)
		end, err := t.scanChild(isObject, at, depth)
		if err != nil {
			return 0, err
		}
		c := &t.nodes[child]
		n.count, n.height = n.count+1, max(n.height, c.height+1)
		at = t.space(end)
		switch {
		case at < len(t.src) && t.src[at] == ',':
			at = t.space(at + 1)
		case at < len(t.src) && t.src[at] == closing:
			c.flags |= flagLast
			n.end, n.skip = int32(at+1), int32(len(t.nodes))
			t.nodes[self] = n
			return at + 1, nil
		default:
			return 0, syntaxError(at, "a comma or the end of the "+n.kind.String()+" is missing")
		}
	}
}

// scanChild is scanValue for an element, or, with its key, for a member.
func (t *Tree) scanChild(isMember bool, at, depth int) (int, error) {
	if !isMember {
		return t.scanValue(at, depth)
	}
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
	c := &t.nodes[child]
	c.key, c.keyEnd = int32(at), int32(keyEnd)
	if esc {
		c.flags |= flagKeyEscaped
	}
	return end, nil
}

// scanString returns the offset after the closing quote, and whether the string has escapes. at is after the opening one.
func (t *Tree) scanString(at int) (end int, esc bool, err error) {
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
func (t *Tree) scanEscape(at int) (int, error) {
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

func (t *Tree) scanNumber(at int) (int, error) {
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

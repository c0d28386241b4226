package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxDepth is how deep a document may be nested. The engines' parser gives up at the same depth.
const maxDepth = 1000

// kind is the type of a JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is one JSON value as it stands in its source. Nothing is converted: numbers keep every digit, strings their
// escapes. Nodes point into the parsed bytes and must not outlive a change of them.
type node struct {
	kind kind
	raw  []byte // the value's own bytes, from its first to its last
	name string // of an object's member, decoded
	key  []byte // the same as it is written, between the quotes
	kids []node // members or elements, in order
}

// member returns the member of an object by its decoded name, or nil.
func (n *node) member(name string) *node {
	if n == nil || n.kind != kindObject {
		return nil
	}
	for i := range n.kids {
		if n.kids[i].name == name {
			return &n.kids[i]
		}
	}
	return nil
}

// text returns a scalar as text: a string decoded, everything else as written.
func (n *node) text() string {
	if n == nil {
		return ""
	}
	if n.kind == kindString {
		return unquote(n.raw[1 : len(n.raw)-1])
	}
	return string(n.raw)
}

// isTrue reports whether the value is true, or the string "true", which the engines take as well.
func (n *node) isTrue() bool { return n != nil && n.text() == "true" }

// syntaxError says where a body stops being JSON, in the words of the engines' parser as far as clients look at them.
type syntaxError struct {
	eof bool // the body ends too early
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// errEmpty reports a body with nothing but white space.
var errEmpty = errors.New("empty body")

type parser struct {
	src   []byte
	pos   int
	depth int
}

// parseJSON reads exactly one value. It returns errEmpty or a *syntaxError. rest is what follows the value, white space
// skipped: the callers differ in whether they mind.
func parseJSON(src []byte) (n node, rest []byte, err error) {
	p := &parser{src: src}
	p.space()
	if p.pos == len(src) {
		return node{}, nil, errEmpty
	}
	if n, err = p.value(); err != nil {
		return node{}, nil, err
	}
	p.space()
	return n, src[p.pos:], nil
}

// parseObject reads a request body that must be one object and nothing else.
func parseObject(body []byte) (*node, *Error) {
	n, rest, err := parseJSON(body)
	if errors.Is(err, errEmpty) {
		return nil, errBodyRequired()
	}
	if err != nil {
		return nil, badRequest("x_content_parse_exception", err.Error())
	}
	if n.kind != kindObject || len(rest) > 0 {
		return nil, badRequest("parse_exception", "request body must be a single object")
	}
	return &n, nil
}

func (p *parser) space() {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) fail() error {
	line, col := p.place(p.pos)
	if p.pos >= len(p.src) {
		return &syntaxError{eof: true, msg: fmt.Sprintf("[%d:%d] Unexpected end of file", line, col)}
	}
	r, _ := utf8.DecodeRune(p.src[p.pos:])
	return &syntaxError{msg: fmt.Sprintf("[%d:%d] Unexpected character ('%c' (code %d))", line, col, r, r)}
}

// place returns the line and column of an offset, both from 1, columns in bytes as the engines count them.
func (p *parser) place(off int) (line, col int) {
	before := p.src[:off]
	return bytes.Count(before, []byte{'\n'}) + 1, off - bytes.LastIndexByte(before, '\n')
}

func (p *parser) value() (node, error) {
	if p.pos >= len(p.src) {
		return node{}, p.fail()
	}
	start := p.pos
	switch c := p.src[p.pos]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		if _, err := p.str(); err != nil {
			return node{}, err
		}
		return node{kind: kindString, raw: p.src[start:p.pos]}, nil
	case c == '-' || c >= '0' && c <= '9':
		if err := p.number(); err != nil {
			return node{}, err
		}
		return node{kind: kindNumber, raw: p.src[start:p.pos]}, nil
	}
	for _, w := range []struct {
		word string
		kind kind
	}{{"true", kindBool}, {"false", kindBool}, {"null", kindNull}} {
		if bytes.HasPrefix(p.src[p.pos:], []byte(w.word)) {
			p.pos += len(w.word)
			return node{kind: w.kind, raw: p.src[start:p.pos]}, nil
		}
	}
	return node{}, p.fail()
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return &syntaxError{msg: fmt.Sprintf("Document nesting depth (%d) exceeds the maximum allowed (%d)", p.depth, maxDepth)}
	}
	p.pos++
	p.space()
	return nil
}

func (p *parser) object() (node, error) {
	n := node{kind: kindObject}
	start := p.pos
	if err := p.enter(); err != nil {
		return node{}, err
	}
	for first := true; ; first = false {
		if p.pos < len(p.src) && p.src[p.pos] == '}' && first {
			break
		}
		kid, err := p.memberOf(&n)
		if err != nil {
			return node{}, err
		}
		n.kids = append(n.kids, kid)
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == '}' {
			break
		}
		if p.pos >= len(p.src) || p.src[p.pos] != ',' {
			return node{}, p.fail()
		}
		p.pos++
		p.space()
	}
	p.pos++
	p.depth--
	n.raw = p.src[start:p.pos]
	if len(n.kids) > linearKeys {
		if err := p.manyKeys(&n); err != nil {
			return node{}, err
		}
	}
	return n, nil
}

// linearKeys is the number of members up to which a duplicate is looked for by comparing each with each.
const linearKeys = 16

func (p *parser) manyKeys(n *node) error {
	seen := make(map[string]struct{}, len(n.kids))
	for i := range n.kids {
		if _, dup := seen[n.kids[i].name]; dup {
			return p.duplicate(n.kids[i].name)
		}
		seen[n.kids[i].name] = struct{}{}
	}
	return nil
}

func (p *parser) duplicate(name string) error {
	line, col := p.place(p.pos)
	return &syntaxError{msg: fmt.Sprintf("[%d:%d] Duplicate field '%s'", line, col, name)}
}

func (p *parser) memberOf(n *node) (node, error) {
	if p.pos >= len(p.src) || p.src[p.pos] != '"' {
		return node{}, p.fail()
	}
	key, err := p.str()
	if err != nil {
		return node{}, err
	}
	name := unquote(key)
	if len(n.kids) <= linearKeys && n.member(name) != nil {
		return node{}, p.duplicate(name)
	}
	p.space()
	if p.pos >= len(p.src) || p.src[p.pos] != ':' {
		return node{}, p.fail()
	}
	p.pos++
	p.space()
	v, err := p.value()
	v.name, v.key = name, key
	return v, err
}

func (p *parser) array() (node, error) {
	n := node{kind: kindArray}
	start := p.pos
	if err := p.enter(); err != nil {
		return node{}, err
	}
	for first := true; ; first = false {
		if p.pos < len(p.src) && p.src[p.pos] == ']' && first {
			break
		}
		kid, err := p.value()
		if err != nil {
			return node{}, err
		}
		n.kids = append(n.kids, kid)
		p.space()
		if p.pos < len(p.src) && p.src[p.pos] == ']' {
			break
		}
		if p.pos >= len(p.src) || p.src[p.pos] != ',' {
			return node{}, p.fail()
		}
		p.pos++
		p.space()
	}
	p.pos++
	p.depth--
	n.raw = p.src[start:p.pos]
	return n, nil
}

// str reads a string and returns what is between its quotes.
func (p *parser) str() ([]byte, error) {
	p.pos++
	start := p.pos
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '"':
			p.pos++
			return p.encoded(p.src[start : p.pos-1])
		case c == '\\':
			if err := p.escape(); err != nil {
				return nil, err
			}
		case c < 0x20:
			return nil, p.fail()
		default:
			p.pos++
		}
	}
	return nil, p.fail()
}

// encoded returns what stands between the quotes of a string that was just read, if it is UTF-8.
func (p *parser) encoded(s []byte) ([]byte, error) {
	if utf8.Valid(s) {
		return s, nil
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && size == 1 {
			line, col := p.place(p.pos - 1 - len(s) + i)
			return nil, &syntaxError{msg: fmt.Sprintf("[%d:%d] Invalid UTF-8 start byte 0x%x", line, col, s[i])}
		}
		i += size
	}
	return s, nil
}

func (p *parser) escape() error {
	p.pos++
	if p.pos >= len(p.src) {
		return p.fail()
	}
	switch p.src[p.pos] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos++
		return nil
	case 'u':
		for i := 0; i < 4; i++ {
			p.pos++
			if p.pos >= len(p.src) || !isHex(p.src[p.pos]) {
				return p.fail()
			}
		}
		p.pos++
		return nil
	}
	return p.fail()
}

func (p *parser) number() error {
	if p.src[p.pos] == '-' {
		p.pos++
	}
	if p.pos < len(p.src) && p.src[p.pos] == '0' {
		p.pos++
	} else if !p.digits() {
		return p.fail()
	}
	if p.pos < len(p.src) && p.src[p.pos] == '.' {
		p.pos++
		if !p.digits() {
			return p.fail()
		}
	}
	if p.pos < len(p.src) && (p.src[p.pos] == 'e' || p.src[p.pos] == 'E') {
		p.pos++
		if p.pos < len(p.src) && (p.src[p.pos] == '+' || p.src[p.pos] == '-') {
			p.pos++
		}
		if !p.digits() {
			return p.fail()
		}
	}
	if p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		return p.fail() // a leading zero
	}
	return nil
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

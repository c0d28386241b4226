package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// limits are those of the engines' parser, which refuses documents that are nested more deeply. The door limits the bytes of a body.
var limits = tree.Limits{Depth: jsontext.MaxNesting, Bytes: math.MaxInt32, Values: math.MaxInt32}

// node is one JSON value as it stands in its source. Nothing is converted: numbers keep every digit, strings their
// escapes. Nodes point into the parsed bytes and must not outlive a change of them.
type node struct {
	kind      tree.Kind
	raw       []byte // the value's own bytes, from its first to its last
	start     int    // where they begin in the source
	name      string // the name of an object's member, decoded
	nameStart int    // where the name's quotes begin in the source
	kids      []*node
}

// member returns the member of an object by its decoded name, or nil.
func (n *node) member(name string) *node {
	if n == nil || n.kind != tree.Object {
		return nil
	}
	for _, kid := range n.kids {
		if kid.name == name {
			return kid
		}
	}
	return nil
}

// text returns a scalar as text: a string decoded, everything else as written.
func (n *node) text() string {
	if n == nil {
		return ""
	}
	if n.kind == tree.String {
		return unquote(n.raw)
	}
	return string(n.raw)
}

// isTrue reports whether the value is true, or the string "true", which the engines take as well.
func (n *node) isTrue() bool { return n != nil && n.text() == "true" }

// elements returns the elements of an array. Any other value counts as an array of one.
func (n *node) elements() []*node {
	switch {
	case n == nil:
		return nil
	case n.kind == tree.Array:
		return n.kids
	}
	return []*node{n}
}

// texts returns the elements as text.
func (n *node) texts() []string {
	var out []string
	for _, kid := range n.elements() {
		out = append(out, kid.text())
	}
	return out
}

// unquote decodes a string, whose escapes were checked when it was parsed. A lone surrogate becomes the replacement character.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // never fails: it was parsed
	return s
}

// textNode and numberNode make values that come from no request.
func textNode(s string) *node {
	return &node{kind: tree.String, raw: appendString(nil, s)}
}

func numberNode(text []byte) *node { return &node{kind: tree.Number, raw: text} }

// syntaxError says where a body isn't JSON. Its words are those of the engines' parser, as far as clients depend on them.
type syntaxError struct {
	eof bool // the body ends too early
	msg string
}

func (e *syntaxError) Error() string { return e.msg }

// errEmpty reports a body with nothing but white space.
var errEmpty = errors.New("empty body")

// parseJSON reads exactly one value. Its errors are errEmpty or a *syntaxError. rest is what follows the value, without white space before
// it: some callers refuse that, and others ignore it.
func parseJSON(src []byte) (n *node, rest []byte, err error) {
	if jsontext.SkipSpace(src, 0) == len(src) {
		return nil, nil, errEmpty
	}
	t := tree.Borrow()
	defer t.Return()
	err = t.Parse(src, limits)
	var syntax *tree.SyntaxError
	if errors.As(err, &syntax) && syntax.Offset < len(src) && t.Parse(src[:syntax.Offset], limits) == nil {
		rest, err = src[syntax.Offset:], nil // the value before the mistake is whole: the mistake is only that something follows it
	}
	if err != nil {
		return nil, nil, syntaxErrorOf(src, err)
	}
	b := builder{src: src, free: make([]node, t.Len())}
	if n, err = b.node(t.Root()); err != nil {
		return nil, nil, err
	}
	if at := invalidUTF8(src[:len(src)-len(rest)]); at >= 0 {
		return nil, nil, &syntaxError{msg: fmt.Sprintf("%s Invalid UTF-8 start byte 0x%x", place(src, at), src[at])}
	}
	return n, rest, nil
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
	if n.kind != tree.Object || len(rest) > 0 {
		return nil, badRequest("parse_exception", "request body must be a single object")
	}
	return n, nil
}

// eachMember calls take with each member of the request's body, which is an object or nothing at all.
func (c *call) eachMember(take func(kid *node) *Error) *Error {
	if len(c.req.Body) == 0 {
		return nil
	}
	n, err := parseObject(c.req.Body)
	if err != nil {
		return err
	}
	return n.each(take)
}

func (n *node) each(take func(kid *node) *Error) *Error {
	for _, kid := range n.kids {
		if err := take(kid); err != nil {
			return err
		}
	}
	return nil
}

// builder makes the nodes of a document in one piece of memory.
type builder struct {
	src  []byte
	free []node
}

func (b *builder) node(v tree.Value) (*node, error) {
	n := &b.free[0]
	b.free = b.free[1:]
	n.kind, n.raw = v.Kind(), v.Raw()
	n.start, _ = v.Span()
	if v.IsMember() {
		n.nameStart, _ = v.Outer()
		n.name = unquote(b.src[n.nameStart : n.nameStart+v.KeyLen()])
	}
	if n.kind.IsContainer() {
		n.kids = make([]*node, 0, v.Len())
	}
	for c := v.FirstOfAll(); c.Exists(); c = c.NextOfAll() {
		if n.kind == tree.Object && c.Hidden() {
			again := v.Get(c.Key())
			at, _ := again.Outer()
			return nil, &syntaxError{msg: fmt.Sprintf("%s Duplicate field '%s'", place(b.src, at+again.KeyLen()), c.Key())}
		}
		kid, err := b.node(c)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	return n, nil
}

// syntaxErrorOf turns an error of our parser into the engines' words.
func syntaxErrorOf(src []byte, err error) error {
	var syntax *tree.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return &syntaxError{msg: fmt.Sprintf("Document nesting depth (%d) exceeds the maximum allowed (%d)", limits.Depth+1, limits.Depth)}
	case syntax.Offset >= len(src):
		return &syntaxError{eof: true, msg: place(src, len(src)) + " Unexpected end of file"}
	}
	r, _ := utf8.DecodeRune(src[syntax.Offset:])
	return &syntaxError{msg: fmt.Sprintf("%s Unexpected character ('%c' (code %d))", place(src, syntax.Offset), r, r)}
}

// place returns an offset as [line:column]. Both count from 1. Columns are in bytes, as in the engines.
func place(src []byte, at int) string {
	before := src[:at]
	return fmt.Sprintf("[%d:%d]", bytes.Count(before, []byte{'\n'})+1, at-bytes.LastIndexByte(before, '\n'))
}

// invalidUTF8 returns the offset of the first byte that isn't UTF-8; -1: there is none.
func invalidUTF8(src []byte) int {
	if utf8.Valid(src) {
		return -1
	}
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

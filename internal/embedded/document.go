package embedded

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"optimist/rewrite/tree"
)

// checkDocument refuses the documents that the engine's mapper refuses. It adds new fields to the mapping, and drops from the stored source
// what the mapping excludes.
func checkDocument(x *index, w *write) *Error {
	n, rest, err := parseJSON(w.source)
	if errors.Is(err, errEmpty) {
		return parsingError("[0:0] failed to parse: [0:0] Unexpected end of file", nil)
	}
	if err != nil {
		return badSyntax(err)
	}
	if n.kind != tree.Object {
		return parsingError("Malformed content, must start with an object", nil)
	}
	if len(rest) > 0 {
		return illegalArgument("Malformed content, found extra data after parsing: %s", tokenName(rest))
	}
	x.mapMu.RLock()
	c := checker{m: x.mapping, src: w.source, id: w.id}
	failed := c.object(&x.mapping.root, n, "")
	filter := x.mapping.source
	x.mapMu.RUnlock()
	if failed == nil && c.unknown {
		failed = learn(x, w, n)
	}
	if failed == nil && filter != nil {
		w.full = w.source
		w.source = nil
		if !filter.none {
			w.source = filter.append(nil, w.full)
		}
	}
	return failed
}

// learn checks a document with fields that the mapping doesn't have yet, and adds them.
func learn(x *index, w *write, n *node) *Error {
	x.mapMu.Lock()
	defer x.mapMu.Unlock()
	next := x.mapping.clone()
	c := checker{m: next, src: w.source, id: w.id, learning: true, known: next.fields}
	if err := c.object(&next.root, n, ""); err != nil {
		return err
	}
	x.mapping = next
	return nil
}

// checker walks a document along a mapping.
type checker struct {
	m        *mapping
	src      []byte
	id       string
	learning bool
	unknown  bool // the document has a field that must be added to the mapping
	known    int  // how many fields the mapping had before
}

// at returns where a value stands in its source, as [line:column].
func (c *checker) at(n *node) string {
	return place(c.src, n.start)
}

func (c *checker) object(f *field, n *node, path string) *Error {
	if f.skip {
		return nil // enabled: false; the engine doesn't even look at names
	}
	for _, kid := range n.kids {
		if err := c.name(kid, path); err != nil {
			return err
		}
		if err := c.member(f, kid.name, kid, path); err != nil {
			return err
		}
	}
	return nil
}

// metadataFields are names that no member of a document may have.
var metadataFields = []string{"_id", "_index", "_source", "_routing", "_seq_no", "_version", "_type", "_primary_term", "_field_names", "_ignored"}

func (c *checker) name(n *node, path string) *Error {
	switch {
	case n.name == "":
		cause := &Error{Type: "illegal_argument_exception", Reason: "field name cannot be an empty string"}
		return parsingError(c.at(n)+" failed to parse: field name cannot be an empty string", cause)
	case path == "" && slices.Contains(metadataFields, n.name):
		cause := parsingError(c.at(n)+" Field ["+n.name+"] is a metadata field and cannot be added inside a document. Use the index API request parameters.", nil)
		e := parsingError(c.at(n)+" failed to parse field ["+n.name+"] of type ["+n.name+"] in document with id '"+c.id+"'.", cause)
		e.root = cause
		return e
	}
	return nil
}

// member checks one member; a name with dots means objects inside each other.
func (c *checker) member(parent *field, name string, n *node, path string) *Error {
	if parent.skip || parent.typ == "flattened" || n.kind == tree.Null {
		return nil
	}
	if head, tail, dotted := strings.Cut(name, "."); dotted && head != "" && tail != "" {
		sub, err := c.field(parent, head, func() string { return "object" }, n, path)
		if sub == nil || err != nil {
			return err
		}
		if sub.isObject() {
			return c.member(sub, tail, n, path+head+".")
		}
	}
	if n.kind == tree.Array {
		for _, kid := range n.kids {
			if err := c.member(parent, name, kid, path); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := c.field(parent, name, func() string { return c.guess(n) }, n, path)
	if f == nil || err != nil {
		return err
	}
	return c.value(f, n, path+name)
}

// field returns the mapping's field for a member. A field that the mapping doesn't have is added with the type that typ returns, or is nil
// if the mapping ignores such members.
func (c *checker) field(parent *field, name string, typ func() string, n *node, path string) (*field, *Error) {
	if f := parent.find(name); f != nil {
		return f, nil
	}
	return c.unmapped(parent, name, typ(), n, path)
}

// unmapped decides about a member that the mapping doesn't have. It returns nil if the mapping ignores such members.
func (c *checker) unmapped(parent *field, name, typ string, n *node, path string) (*field, *Error) {
	dynamic := cmp.Or(parent.dynamic, c.m.root.dynamic)
	switch dynamic {
	case "strict":
		within := cmp.Or(strings.TrimSuffix(path, "."), "_doc")
		return nil, badRequest("strict_dynamic_mapping_exception", "%s mapping set to strict, dynamic introduction of [%s] within [%s] is not allowed", c.at(n), name, within)
	case "false", "runtime":
		return nil, nil
	}
	c.unknown = true
	if !c.learning {
		return nil, nil
	}
	f := &field{name: name, typ: typ}
	if typ == "text" {
		f.multi = []*field{{name: "keyword", typ: "keyword", rest: []raw{{"ignore_above", []byte("256")}}}}
	}
	c.m.add(parent, f)
	if c.m.fields > maxFields {
		return nil, illegalArgument("Limit of total fields [%d] has been exceeded while adding new fields [%d]", maxFields, c.m.fields-c.known)
	}
	return f, nil
}

// guess returns the type that a new field gets from its first value.
func (c *checker) guess(n *node) string {
	switch n.kind {
	case tree.Object:
		return "object"
	case tree.True, tree.False:
		return "boolean"
	case tree.Number:
		if bytes.ContainsAny(n.raw, ".eE") {
			return "float"
		}
		return "long"
	default:
		if !c.m.dateless && looksLikeDate(n.text()) {
			return "date"
		}
		return "text"
	}
}

var datePattern = regexp.MustCompile(`^\d{4}-\d{2}(-\d{2}(T(\d{2}(:\d{2}(:\d{2}([.,]\d{1,9})?)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?)?)?$`)

func looksLikeDate(s string) bool {
	if !datePattern.MatchString(s) {
		return false
	}
	if len(s) < len(time.DateOnly) {
		s += "-01"
	}
	_, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)])
	return err == nil
}

// value checks one value against its field.
func (c *checker) value(f *field, n *node, path string) *Error {
	var bad string
	switch f.typ {
	case "object", "nested":
		if n.kind != tree.Object {
			return parsingError(c.at(n)+" object mapping for ["+path+"] tried to parse field ["+f.name+"] as object, but found a concrete value", nil)
		}
		return c.object(f, n, path+".")
	case "long", "integer", "short", "byte":
		bad = badInteger(f.typ, n)
	case "float", "double", "half_float", "scaled_float", "unsigned_long":
		bad = badDecimal(n)
	case "boolean":
		if s := n.text(); n.kind == tree.Object || s != "true" && s != "false" && s != "" {
			bad = "Failed to parse value [" + s + "] as only [true] or [false] are allowed."
		}
	case "date", "date_nanos":
		if n.kind == tree.Object || n.kind == tree.String && len(f.rest) == 0 && !looksLikeDate(n.text()) && badDecimal(n) != "" {
			bad = "failed to parse date field [" + n.text() + "] with format [strict_date_optional_time||epoch_millis]"
		}
	case "text", "keyword":
		if n.kind == tree.Object {
			bad = "Can't get text on a START_OBJECT at 1:1"
		}
	}
	if bad == "" {
		return nil
	}
	reason := fmt.Sprintf("%s failed to parse field [%s] of type [%s] in document with id '%s'. Preview of field's value: '%s'", c.at(n), path, f.typ, c.id, n.text())
	return parsingError(reason, &Error{Type: "illegal_argument_exception", Reason: bad})
}

func parsingError(reason string, cause *Error) *Error {
	e := badRequest("document_parsing_exception", "%s", reason)
	e.cause = cause
	return e
}

func badSyntax(err error) *Error {
	var s *syntaxError
	if !errors.As(err, &s) {
		return parsingError("failed to parse: "+err.Error(), nil)
	}
	typ := "x_content_parse_exception"
	if s.eof {
		typ = "x_content_e_o_f_exception"
	}
	where, _, _ := strings.Cut(s.msg, " ")
	return parsingError(where+" failed to parse: "+s.msg, &Error{Type: typ, Reason: s.msg})
}

// tokenName returns the name that the engine's parser has for what follows a document.
func tokenName(rest []byte) string {
	name := map[byte]string{'{': "START_OBJECT", '[': "START_ARRAY", '}': "END_OBJECT", ']': "END_ARRAY", '"': "VALUE_STRING"}[rest[0]]
	return cmp.Or(name, "VALUE")
}

package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Step is one operation of a transform. The steps are carried out in their order, each on what those before it left.
type Step struct {
	// Op is what the step does: the operations of RFC 6902 (add, remove, replace, move, copy, test), and increment (adds a number,
	// exactly), append (one element at the end of a list), union (elements that aren't in the list yet), max, min, default (only where
	// there is nothing or null), now (the time), merge (RFC 7396), remove_empty (null, "", [] and {} below the path). A test that
	// fails is a 409; a value of the wrong type a 400.
	Op Action `json:"op"`

	// Path is what it is done to: a JSON Pointer (`/updated_at`, `/lines/*/price`). `*` is every element or key, `-` the end of a
	// list. "" is the whole document, for remove_empty the default. Objects on the way are made where they are missing; to remove
	// what isn't there is no mistake. A key that is literally `*` can't be named.
	Path string `json:"path"`

	// From is the pointer that move and copy take from. Only they have it. A `*` in it stands for what the `*` at the same place of
	// the path does.
	From string `json:"from"`

	// Value is a literal, or a reference: {from: incoming, path: /x} (what the client sent), {from: current, path: /x} (what is stored;
	// costs a read where nothing else does), {from: base, path: /x} (what the client had read), {from: header, name: X-User}, {from: id},
	// {from: index}, {from: user}, {from: now}. A reference to what isn't there leaves the document as it is. {literal: …} is for objects that
	// look like a reference. Needed by all but remove, move, copy, now and remove_empty.
	Value Value `json:"value"`

	// Format is how the time (of this machine) is written, by now and in values from now: rfc3339 (default: text, UTC, milliseconds),
	// epoch_millis or epoch_second (numbers).
	Format TimeFormat `json:"format"`

	// When is a condition in CEL (`incoming.status == "published"`) over request, incoming, current and base; without it the step is
	// always carried out. It is compiled when the file is read. Reading current costs a read where nothing else does.
	When string `json:"when"`
}

// MarshalJSON writes the keys that the step has.
func (s Step) MarshalJSON() ([]byte, error) {
	type plain struct {
		Op     Action          `json:"op"`
		Path   string          `json:"path"`
		From   *string         `json:"from,omitempty"`
		Value  json.RawMessage `json:"value,omitempty"`
		Format TimeFormat      `json:"format,omitempty"`
		When   string          `json:"when,omitempty"`
	}
	p := plain{Op: s.Op, Path: s.Path, Format: s.Format, When: s.When}
	if s.Op.takesFrom() {
		p.From = &s.From
	}
	if s.Value.Given {
		raw, err := s.Value.MarshalJSON()
		if err != nil {
			return nil, err
		}
		p.Value = raw
	}
	return json.Marshal(p)
}

// takesFrom, takesValue and wholeByDefault tell which keys an operation has.
func (a Action) takesFrom() bool { return a == ActionMove || a == ActionCopy }

func (a Action) takesValue() bool {
	switch a {
	case ActionRemove, ActionMove, ActionCopy, ActionNow, ActionRemoveEmpty:
		return false
	}
	return true
}

func (a Action) wholeByDefault() bool { return a == ActionRemoveEmpty }

// Value is what a step works with.
type Value struct {
	Given   bool            // the file has one
	Source  Source          // where it comes from; empty: Literal
	Literal json.RawMessage // JSON, numbers as they were written
	Path    string          // of incoming, current and base
	Name    string          // of a header
}

// reference is a value that stands elsewhere.
type reference struct {
	From Source `json:"from"`
	Path string `json:"path"`
	Name string `json:"name"`
}

// decodeNull takes null for a value.
func (v *Value) decodeNull() { *v = Value{Given: true, Literal: json.RawMessage("null")} }

// decodeNode reads a literal, or a reference: a mapping with from, and nothing else than path or name.
func (v *Value) decodeNode(d *decoder, n ast.Node, path string) {
	v.Given = true
	m, ok := n.(*ast.MappingNode)
	switch {
	case ok && len(m.Values) == 1 && keyName(m.Values[0].Key) == "literal":
		v.literal(d, m.Values[0].Value, path)
	case ok && looksLikeReference(m):
		v.refer(d, m, path)
	default:
		v.literal(d, n, path)
	}
}

func (v *Value) literal(d *decoder, n ast.Node, path string) {
	w := jsonWriter{d: d, path: path}
	w.value(n, 0)
	if v.Literal = w.out.Bytes(); w.failed {
		v.Literal = json.RawMessage("null")
	}
}

// looksLikeReference reports whether a mapping is meant as one: it has the keys of a reference alone, or names a source.
func looksLikeReference(m *ast.MappingNode) bool {
	from, only := false, true
	for _, kv := range m.Values {
		switch keyName(kv.Key) {
		case "from":
			from = true
			if isSource(scalarText(kv.Value)) {
				return true
			}
		case "path", "name":
		default:
			only = false
		}
	}
	return from && only
}

func isSource(s string) bool { return slices.Contains(Source("").choices(), s) }

func (v *Value) refer(d *decoder, m *ast.MappingNode, path string) {
	before := len(d.problems)
	var r reference
	d.structure(m, reflect.ValueOf(&r).Elem(), path)
	v.Source, v.Path, v.Name = r.From, r.Path, r.Name
	if len(d.problems) > before {
		last := &d.problems[len(d.problems)-1]
		last.Message = strings.TrimSuffix(last.Message, "?") + "; to write this object as it stands: {literal: {…}}"
		return
	}
	has := func(key string) bool { _, ok := d.cfg.at[path+"."+key]; return ok }
	document := r.From == SourceIncoming || r.From == SourceCurrent || r.From == SourceBase
	switch {
	case has("path") && !document:
		d.fail(m, path, "%s has no path", r.From)
	case has("name") && r.From != SourceHeader:
		d.fail(m, path, "%s has no name", r.From)
	case r.From == SourceHeader && !isToken(r.Name):
		d.fail(m, path, "header needs the name of one, as in {from: header, name: X-User}")
	}
	if err := checkPointer(r.Path); r.Path != "" && err != nil {
		d.fail(m, path, "%q: %s", r.Path, err)
	}
}

// MarshalJSON writes the value in the file's own form.
func (v Value) MarshalJSON() ([]byte, error) {
	switch {
	case !v.Given:
		return []byte("null"), nil
	case v.Source == "":
		var m map[string]json.RawMessage
		if bytes.HasPrefix(v.Literal, []byte("{")) && json.Unmarshal(v.Literal, &m) == nil && (m["from"] != nil || m["literal"] != nil) {
			return json.Marshal(map[string]json.RawMessage{"literal": v.Literal})
		}
		return v.Literal, nil
	}
	return json.Marshal(struct {
		From Source `json:"from"`
		Path string `json:"path,omitempty"`
		Name string `json:"name,omitempty"`
	}{v.Source, v.Path, v.Name})
}

// Bounds of a literal: aliases may name each other, and a value that holds itself has no end.
const (
	maxLiteralDepth = 64
	maxLiteralSize  = 1 << 20
)

// jsonWriter writes YAML as JSON. Numbers keep their digits, so those that JSON doesn't know are refused.
type jsonWriter struct {
	d      *decoder
	path   string
	out    bytes.Buffer
	failed bool
}

func (w *jsonWriter) fail(n ast.Node, format string, args ...any) {
	if !w.failed {
		w.d.fail(n, w.path, format, args...)
	}
	w.failed = true
}

func (w *jsonWriter) value(n ast.Node, depth int) {
	at := n
	n = w.d.resolve(n, w.path)
	switch {
	case w.failed:
		return
	case depth > maxLiteralDepth || w.out.Len() > maxLiteralSize:
		w.fail(at, "the value is nested too deeply, or too large")
		return
	case n == nil:
		w.out.WriteString("null")
		return
	}
	switch n := n.(type) {
	case *ast.NullNode:
		w.out.WriteString("null")
	case *ast.BoolNode:
		w.json(n.Value)
	case *ast.StringNode:
		if n.Token.Type == token.StringType && isNumber(n.Value) { // the library takes 1e400 for text
			w.out.WriteString(n.Value)
			return
		}
		w.json(n.Value)
	case *ast.LiteralNode:
		w.json(scalarText(n))
	case *ast.IntegerNode, *ast.FloatNode:
		text := tokenValue(n)
		if !isNumber(text) {
			w.fail(n, "%s is no number in JSON; write it with decimal digits, or in quotes if it is text", text)
		}
		w.out.WriteString(text)
	case *ast.SequenceNode:
		w.list(n, depth)
	case *ast.MappingNode:
		w.object(n, depth)
	default:
		w.fail(n, "%s can't be written as JSON", kindOf(n))
	}
}

// isNumber reports whether a plain scalar is a number as JSON writes it.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// json writes what has no way to fail.
func (w *jsonWriter) json(v any) {
	e := json.NewEncoder(&w.out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // of a text or a truth value
	w.out.Truncate(w.out.Len() - 1)
}

func (w *jsonWriter) list(n *ast.SequenceNode, depth int) {
	w.out.WriteByte('[')
	for i, item := range n.Values {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.value(item, depth+1)
	}
	w.out.WriteByte(']')
}

func (w *jsonWriter) object(n *ast.MappingNode, depth int) {
	seen := map[string]bool{}
	w.out.WriteByte('{')
	for i, kv := range n.Values {
		key := keyName(kv.Key)
		switch {
		case key == "<<":
			w.fail(kv, "merge keys (<<) are not read here; an alias can stand for a whole value")
		case seen[key]:
			w.fail(kv, "the key %q is here twice", key)
		}
		seen[key] = true
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.json(key)
		w.out.WriteByte(':')
		w.value(kv.Value, depth+1)
	}
	w.out.WriteByte('}')
}

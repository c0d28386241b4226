package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"optimist/internal/jsontext"
)

// decodeNode reads a literal, or a reference: a mapping with from, and nothing else than path or name.
func (v *Value) decodeNode(d *decoder, n *yaml.Node, path string) {
	v.IsSet = true
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && n.Content[0].Value == "literal":
		v.Literal = d.json(n.Content[1], path)
	case looksLikeReference(n):
		v.refer(d, n, path)
	default:
		v.Literal = d.json(n, path)
	}
}

// looksLikeReference reports whether a mapping is meant as a reference: it has only keys of references, or its from is a known source.
func looksLikeReference(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	from, only := false, true
	for i := 0; i < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case "from":
			if slices.Contains(Source("").choices(), n.Content[i+1].Value) {
				return true
			}
			from = true
		case "path", "name":
		default:
			only = false
		}
	}
	return from && only
}

func (v *Value) refer(d *decoder, n *yaml.Node, path string) {
	before := len(d.problems)
	var r reference
	d.structure(n, reflect.ValueOf(&r).Elem(), path)
	if len(d.problems) > before {
		last := &d.problems[len(d.problems)-1]
		last.Message = strings.TrimSuffix(last.Message, "?") + "; to write this object as it stands: {literal: {…}}"
		return
	}
	has := func(key string) bool { _, ok := d.cfg.at[path+"."+key]; return ok }
	badPath := checkPointer(r.Path)
	switch document := r.From == SourceIncoming || r.From == SourceCurrent || r.From == SourceBase; {
	case r.From == SourceHeader && !IsToken(r.Name):
		d.fail(n, path, "header needs the name of one, as in {from: header, name: X-User}")
	case has("path") && !document:
		d.fail(n, path, "%s has no path", r.From)
	case has("name") && r.From != SourceHeader:
		d.fail(n, path, "%s has no name", r.From)
	case r.Path != "" && badPath != nil:
		d.fail(n, path, "%q: %s", r.Path, badPath)
	}
	v.Source, v.Path, v.Name = r.From, r.Path, r.Name
}

// MarshalJSON writes the value in the file's own form.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.Source != "" {
		return json.Marshal(reference{v.Source, v.Path, v.Name})
	}
	var m map[string]json.RawMessage
	if bytes.HasPrefix(v.Literal, []byte("{")) && json.Unmarshal(v.Literal, &m) == nil && (m["from"] != nil || m["literal"] != nil) {
		return json.Marshal(map[string]json.RawMessage{"literal": v.Literal})
	}
	return v.Literal, nil
}

// The bounds of a literal. An alias may lead back to the value that it stands in: that value would have no end.
const (
	maxLiteralDepth = 64
	maxLiteralSize  = 1 << 20
)

// json is a node as JSON. Numbers keep their digits, so a number that JSON can't write is a mistake. After a mistake, json is null.
func (d *decoder) json(n *yaml.Node, path string) json.RawMessage {
	w := jsonWriter{decoder: d, path: path, before: len(d.problems)}
	w.value(n, 0)
	if w.failed() {
		return json.RawMessage("null")
	}
	return w.out.Bytes()
}

type jsonWriter struct {
	*decoder
	path   string
	before int // problems when it began
	out    bytes.Buffer
}

func (w *jsonWriter) failed() bool { return len(w.problems) > w.before }

func (w *jsonWriter) value(n *yaml.Node, depth int) {
	at := n
	n = w.resolve(n, w.path)
	if w.failed() {
		return
	}
	if depth > maxLiteralDepth || w.out.Len() > maxLiteralSize {
		w.fail(at, w.path, "the value is nested too deeply, or too large")
		return
	}
	switch n.Kind {
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		for i, item := range n.Content {
			w.comma(i)
			w.value(item, depth+1)
		}
		w.out.WriteByte(']')
	case yaml.MappingNode:
		w.out.WriteByte('{')
		for i, e := range w.entries(n, w.path, "") {
			w.comma(i)
			w.text(e.name)
			w.out.WriteByte(':')
			w.value(e.value, depth+1)
		}
		w.out.WriteByte('}')
	default:
		w.scalar(n)
	}
}

func (w *jsonWriter) comma(i int) {
	if i > 0 {
		w.out.WriteByte(',')
	}
}

func (w *jsonWriter) scalar(n *yaml.Node) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	switch {
	case isNull(n):
		w.out.WriteString("null")
	case n.Tag == "!!bool":
		w.out.WriteString(strings.ToLower(n.Value))
	case n.Style&quoted == 0 && isNumber(n.Value): // not by the tag: the library takes 1e400 for a text
		w.out.WriteString(n.Value)
	case isText(n):
		w.text(n.Value)
	default:
		w.fail(n, w.path, "%s is not a number in JSON; write it with decimal digits, or in quotes if it is text", n.Value)
	}
}

// isNumber reports whether a plain scalar is a number as JSON writes it.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

func (w *jsonWriter) text(s string) {
	w.out.Write(jsontext.AppendString(w.out.AvailableBuffer(), s))
}

package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// decodeNode reads {Name: pattern}.
func (h *HeaderPatterns) decodeNode(d *decoder, n ast.Node, path string) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(n, path, "want names of headers with values, as in X-Tenant: acme; found %s", kindOf(n))
		return
	}
	*h = nil
	seen := map[string]Pos{}
	for _, kv := range mapping.Values {
		name, at := keyName(kv.Key), position(kv.Key)
		key := path + "." + name
		if first, ok := seen[strings.ToLower(name)]; ok {
			d.failAt(at, path, "the header %q is here twice; the first is in line %d", name, first.Line)
			continue
		}
		seen[strings.ToLower(name)] = at
		d.mark(key, at)
		switch value := d.resolve(kv.Value, key); {
		case !isToken(name):
			d.failAt(at, path, "%q is no header's name", name)
		case equalFold(name, "Authorization", "Cookie"):
			d.failAt(at, path, "%s holds credentials, which don't belong into this file; users tells clients apart", name)
		case value == nil || value.Type() == ast.NullType:
			d.failAt(at, path, "%s needs a value or pattern; * takes any", name)
		default:
			if pattern, ok := d.str(value, key); ok {
				*h = append(*h, HeaderPattern{name, pattern})
			}
		}
	}
}

// MarshalJSON writes the headers as the file has them, in its order.
func (h HeaderPatterns) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range h {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(p.Name) // a text
		pattern, _ := json.Marshal(p.Pattern)
		b.Write(name)
		b.WriteByte(':')
		b.Write(pattern)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

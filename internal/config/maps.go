package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"optimist/internal/spelling"
)

// decodeNode reads {Name: pattern}.
func (h *HeaderPatterns) decodeNode(d *decoder, n *yaml.Node, path string) {
	for _, e := range d.entries(n, path, "names of headers with values, as in X-Tenant: acme; found %s") {
		key := path + "." + e.name
		d.mark(key, e.key, e.key)
		switch {
		case slices.ContainsFunc(*h, func(p HeaderPattern) bool { return strings.EqualFold(p.Name, e.name) }):
			d.fail(e.key, path, "the header %q is here twice", e.name)
		case !IsToken(e.name):
			d.fail(e.key, path, "%q is not a header's name", e.name)
		case equalFold(e.name, "Authorization", "Cookie"):
			d.fail(e.key, path, "%s holds credentials, which don't belong in this file; use users to tell clients apart", e.name)
		case isNull(e.value):
			d.fail(e.key, path, `%s needs a value or pattern; "*" takes any`, e.name)
		default:
			if value := d.resolve(e.value, key); value != nil {
				pattern, _ := d.str(value, key)
				*h = append(*h, HeaderPattern{e.name, pattern})
			}
		}
	}
}

// MarshalJSON writes the headers as the file has them, in its order.
func (h HeaderPatterns) MarshalJSON() ([]byte, error) {
	return object(len(h), func(i int) (string, any) { return h[i].Name, h[i].Pattern })
}

// decodeNode reads {/path: strategy, /list: {by_key: field}}.
func (m *MergePaths) decodeNode(d *decoder, n *yaml.Node, path string) {
	for _, e := range d.entries(n, path, "paths with strategies, as in /stock: sum; found %s") {
		p, key := MergePath{Path: e.name}, path+"."+e.name
		d.mark(key, e.key, e.key)
		if err := checkPointer(p.Path); err != nil {
			d.fail(e.key, path, "%q: %s", p.Path, err)
		} else if value := d.resolve(e.value, key); value != nil {
			p.decode(d, value, key)
			if p.Strategy != "" {
				*m = append(*m, p)
			}
		}
	}
}

// decode reads the strategy of one path.
func (p *MergePath) decode(d *decoder, n *yaml.Node, key string) {
	const field = "by_key needs the field that tells the list's objects apart: {by_key: id}"
	choices := append(p.Strategy.choices(), "{by_key: FIELD}")
	switch byKey := string(StrategyByKey); {
	case n.Kind == yaml.MappingNode && (len(n.Content) != 2 || n.Content[0].Value != byKey):
		d.fail(n, key, "the only strategy with a setting is by_key, as in {by_key: id}")
	case n.Kind == yaml.MappingNode:
		p.Strategy = StrategyByKey
		if value := d.resolve(n.Content[1], key); value == nil {
			return
		} else if isNull(value) || isText(value) && value.Value == "" {
			d.fail(n, key, field)
		} else {
			p.Key, _ = d.str(value, key)
			if name, pointer := strings.CutPrefix(p.Key, "/"); pointer {
				d.fail(value, key, "%q: write the field's name, %q; it stands at the top of the list's objects", p.Key, name)
			}
		}
	case !isText(n):
		d.fail(n, key, "want one of %s; found %s", strings.Join(choices, ", "), kindOf(n))
	case n.Value == byKey:
		d.fail(n, key, field)
	case !slices.Contains(p.Strategy.choices(), n.Value):
		d.fail(n, key, "%s", spelling.NotOneOf(n.Value, choices))
	default:
		p.Strategy = Strategy(n.Value)
	}
}

// MarshalJSON writes the paths as the file has them, in its order.
func (m MergePaths) MarshalJSON() ([]byte, error) {
	return object(len(m), func(i int) (string, any) {
		if m[i].Strategy == StrategyByKey {
			return m[i].Path, map[string]string{string(StrategyByKey): m[i].Key}
		}
		return m[i].Path, m[i].Strategy
	})
}

// object writes n keys with their values as JSON, in their order.
func object(n int, entry func(i int) (key string, value any)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		key, value := entry(i)
		text, err := json.Marshal(map[string]any{key: value})
		if err != nil {
			return nil, err
		}
		b.Write(text[1 : len(text)-1])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"optimist/internal/spelling"

	"github.com/goccy/go-yaml/ast"
)

// decodeNode reads {/path: strategy, /list: {by_key: field}}.
func (m *MergePaths) decodeNode(d *decoder, n ast.Node, path string) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(n, path, "want paths with strategies, as in /stock: sum; found %s", kindOf(n))
		return
	}
	*m = nil
	seen := map[string]Pos{}
	for _, kv := range mapping.Values {
		p := MergePath{Path: keyName(kv.Key)}
		at, key := position(kv.Key), path+"."+p.Path
		if first, ok := seen[p.Path]; ok {
			d.failAt(at, path, "the path %q is here twice; the first is in line %d", p.Path, first.Line)
			continue
		}
		seen[p.Path] = at
		d.mark(key, at)
		if err := checkPointer(p.Path); err != nil {
			d.failAt(at, path, "%q: %s", p.Path, err)
			continue
		}
		if p.decode(d, d.resolve(kv.Value, key), key, at) {
			*m = append(*m, p)
		}
	}
}

// decode reads the strategy of one path.
func (p *MergePath) decode(d *decoder, n ast.Node, key string, at Pos) bool {
	choices := append(p.Strategy.choices(), "{by_key: FIELD}")
	switch n := n.(type) {
	case nil, *ast.NullNode:
		d.failAt(at, key, "the strategy is missing; one of %s", strings.Join(choices, ", "))
	case *ast.StringNode:
		switch {
		case slices.Contains(p.Strategy.choices(), n.Value):
			p.Strategy = Strategy(n.Value)
			return true
		case n.Value == string(StrategyByKey):
			d.fail(n, key, "by_key needs the field that tells the list's objects apart: {by_key: id}")
		default:
			d.fail(n, key, "%s", spelling.NotOneOf(n.Value, choices))
		}
	case *ast.MappingNode:
		return p.byKey(d, n, key)
	default:
		d.fail(n, key, "want one of %s; found %s", strings.Join(choices, ", "), kindOf(n))
	}
	return false
}

func (p *MergePath) byKey(d *decoder, n *ast.MappingNode, key string) bool {
	if len(n.Values) != 1 || keyName(n.Values[0].Key) != string(StrategyByKey) {
		d.fail(n, key, "the only strategy with a setting is by_key, as in {by_key: id}")
		return false
	}
	field, ok := d.str(d.resolve(n.Values[0].Value, key), key)
	if ok && field == "" {
		d.fail(n, key, "by_key needs the field that tells the list's objects apart: {by_key: id}")
		return false
	}
	p.Strategy, p.Key = StrategyByKey, field
	return ok
}

// MarshalJSON writes the paths as the file has them, in its order.
func (m MergePaths) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		var value any = p.Strategy
		if p.Strategy == StrategyByKey {
			value = map[string]string{string(StrategyByKey): p.Key}
		}
		for j, part := range []any{p.Path, value} {
			text, err := json.Marshal(part)
			if err != nil {
				return nil, err
			}
			if j > 0 {
				b.WriteByte(':')
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/spelling"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder fills structs from a syntax tree. It goes on after a mistake, so that all of a file's mistakes are told at once,
// and it remembers where each key stands, so that what is found later can be told with its place, too. That is why it
// isn't the library's own decoder, which stops at the first and forgets the places.
type decoder struct {
	cfg      *Config
	file     int // among the sources
	anchors  map[string]ast.Node
	problems Problems
	other    bool // the file is no configuration
}

// starter is a struct whose keys don't start from their zero values.
type starter interface{ start() }

func (r *Rule) start() { *r = newRule("") }

// nodeDecoder is a type that reads more than one form.
type nodeDecoder interface {
	decodeNode(d *decoder, n ast.Node, path string)
}

// nullDecoder is one for which null is a value.
type nullDecoder interface {
	nodeDecoder
	decodeNull()
}

func (d *decoder) fail(n ast.Node, path, format string, args ...any) {
	d.failAt(position(n), path, format, args...)
}

func (d *decoder) failAt(at Pos, path, format string, args ...any) {
	p := Problem{Key: brief(shown(path), shownMessage), full: path}
	p.Message = brief(fmt.Sprintf(format, args...), shownMessage)
	d.problems = append(d.problems, d.cfg.placed(p, spot{Pos: at, file: d.file}))
}

// mark remembers where a key stands.
func (d *decoder) mark(key string, at Pos) { d.cfg.at[key] = spot{Pos: at, file: d.file} }

// decode reads n into v, which is settable. A key without a value (null) leaves v as it is.
func (d *decoder) decode(n ast.Node, v reflect.Value, path string) {
	n = d.resolve(n, path)
	if n == nil || n.Type() == ast.NullType {
		if nd, ok := v.Addr().Interface().(nullDecoder); ok && n != nil {
			nd.decodeNull()
		}
		return
	}
	if nd, ok := v.Addr().Interface().(nodeDecoder); ok {
		nd.decodeNode(d, n, path)
		return
	}
	if e, ok := v.Interface().(enum); ok {
		d.enum(n, v, e.choices(), path)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, u, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	case reflect.String:
		if s, ok := d.str(n, path); ok {
			v.SetString(s)
			d.cfg.at[path] = spot{Pos: position(n), file: d.file, text: n}
		}
	case reflect.Int:
		d.integer(n, v, path)
	default:
		d.fail(n, path, "optimist can't read this key")
	}
}

// resolve follows aliases and takes anchors off.
func (d *decoder) resolve(n ast.Node, path string) ast.Node {
	switch n := n.(type) {
	case *ast.AnchorNode:
		value := d.resolve(n.Value, path)
		d.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		value, ok := d.anchors[name]
		if !ok {
			d.fail(n, path, "there is no anchor &%s above", name)
		}
		return value
	case *ast.TagNode:
		d.fail(n, path, "tags (%s) are not read here", n.GetToken().Value)
		return nil
	case *ast.MappingNode:
		if len(n.Values) == 1 && !n.IsFlowStyle {
			return unsplit(n.Values[0], n)
		}
	case *ast.MappingValueNode:
		return unsplit(n, ast.Mapping(n.Start, false, n))
	}
	return n
}

// unsplit undoes a mistake of the library's scanner: within { } it takes every colon for the end of a key, so that
// {urls: [http://es1:9200]} holds a mapping of http://es1 to 9200. In YAML a colon after a plain word ends it only before a
// space (YAML 1.2.2, §7.3.3). other is what to return where nothing was split.
func unsplit(kv *ast.MappingValueNode, other ast.Node) ast.Node {
	key, ok := kv.Key.(*ast.StringNode)
	if !ok || key.Token.Type != token.StringType || !scalarLike(kv.Value) {
		return other
	}
	colon, value := kv.Start, kv.Value.GetToken()
	if value == nil || value.Type == token.SingleQuoteType || value.Type == token.DoubleQuoteType || value.Type == token.NullType ||
		value.Position.Line != colon.Position.Line || value.Position.Column != colon.Position.Column+1 {
		return other
	}
	whole := *key.Token
	whole.Value += ":" + value.Value
	return ast.String(&whole)
}

func (d *decoder) structure(n ast.Node, v reflect.Value, path string) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(n, path, "want keys with values, found %s", kindOf(n))
		return
	}
	names := keys(v.Type())
	seen := make(map[string]Pos, len(m.Values))
	for _, kv := range m.Values {
		name, at := keyName(kv.Key), position(kv.Key)
		if first, ok := seen[name]; ok {
			d.failAt(at, path, "the key %q is here twice; the first is in line %d", name, first.Line)
			continue
		}
		seen[name] = at
		field, ok := fieldOf(v, name)
		if !ok {
			if shown(path) == "" && path != "" && slices.Contains(keys(reflect.TypeFor[Config]()), name) {
				d.failAt(at, path, "%q belongs into the file that names this one in rule_files; here are rules only", name)
				continue
			}
			d.failAt(at, path, "%s", d.unknownKey(name, names))
			continue
		}
		sub := join(path, name)
		d.mark(sub, at)
		if kv.Value != nil && kv.Value.Type() != ast.NullType && scalarLike(kv.Value) {
			d.mark(sub, position(kv.Value))
		}
		d.decode(kv.Value, field, sub)
	}
}

func (d *decoder) unknownKey(name string, names []string) string {
	if name == "<<" {
		return "merge keys (<<) are not read here; an alias can stand for a whole value"
	}
	if near := spelling.Nearest(name, names); near != "" {
		return fmt.Sprintf("unknown key %q; did you mean %q?", name, near)
	}
	if section := sectionOf(name); section != "" && !d.other {
		return fmt.Sprintf("unknown key %q; it belongs into %s", name, section)
	}
	return fmt.Sprintf("unknown key %q; the keys here are %s", name, strings.Join(names, ", "))
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("json"); tag != "" && tag == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		hint := ""
		if scalarLike(n) {
			hint = fmt.Sprintf("; write [%s]", tokenValue(n))
		}
		d.fail(n, path, "want a list, found %s%s", kindOf(n), hint)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		sub := path + "[" + strconv.Itoa(i) + "]"
		d.mark(sub, position(item))
		if s, ok := out.Index(i).Addr().Interface().(starter); ok {
			s.start()
		}
		if item == nil || item.Type() == ast.NullType {
			d.failAt(position(item), sub, "this entry of the list is empty")
			continue
		}
		d.decode(item, out.Index(i), sub)
	}
	v.Set(out)
}

func (d *decoder) enum(n ast.Node, v reflect.Value, choices []string, path string) {
	if !scalarLike(n) {
		d.fail(n, path, "want one of %s; found %s", strings.Join(choices, ", "), kindOf(n))
		return
	}
	s := scalarText(n)
	for _, c := range choices {
		if s == c {
			v.SetString(s)
			return
		}
	}
	d.fail(n, path, "%s", spelling.NotOneOf(s, choices))
}

func (d *decoder) text(n ast.Node, u encoding.TextUnmarshaler, path string) {
	switch n.Type() {
	case ast.StringType, ast.LiteralType, ast.IntegerType, ast.FloatType:
		if err := u.UnmarshalText([]byte(tokenValue(n))); err != nil {
			d.fail(n, path, "%s", err)
		}
	default:
		d.fail(n, path, "want one value, found %s", kindOf(n))
	}
}

func (d *decoder) str(n ast.Node, path string) (string, bool) {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return scalarText(n), true
	}
	if text, ok := n.(ast.ScalarNode); ok {
		d.fail(n, path, "want text, found %s; if it is meant as text, write it in quotes: %q", kindOf(n), tokenValue(text))
	} else {
		d.fail(n, path, "want text, found %s", kindOf(n))
	}
	return "", false
}

func (d *decoder) integer(n ast.Node, v reflect.Value, path string) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		d.fail(n, path, "want a whole number, found %s", kindOf(n))
		return
	}
	value, err := strconv.ParseInt(i.Token.Value, 0, 64)
	if err != nil || int64(int(value)) != value {
		d.fail(n, path, "%s is not a number that fits here", i.Token.Value)
		return
	}
	v.SetInt(value)
}

// keysIn finds the keys that aren't plain texts, wherever in n they are, and returns how many mistakes are known then. An alias, an anchor
// or a tag would be taken for a key of its sign's name.
func (d *decoder) keysIn(n ast.Node) int {
	ast.Walk(keyVisitor{d}, n)
	return len(d.problems)
}

type keyVisitor struct{ d *decoder }

// Visit implements ast.Visitor.
func (v keyVisitor) Visit(n ast.Node) ast.Visitor {
	kv, ok := n.(*ast.MappingValueNode)
	if !ok {
		return v
	}
	var key ast.Node = kv.Key
	if k, ok := key.(*ast.MappingKeyNode); ok {
		key = k.Value
	}
	switch key.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.TagNode:
		v.d.fail(key, "", "a key is a text here, no alias (*), and has no anchor (&) or tag (!); one that begins with such a sign needs quotes")
	}
	return v
}

func keyName(k ast.MapKeyNode) string {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value
	case *ast.MappingKeyNode:
		return scalarText(k.Value)
	}
	return tokenValue(k)
}

func scalarLike(n ast.Node) bool {
	_, ok := n.(ast.ScalarNode)
	return ok
}

// scalarText is a scalar as it was written, without quotes.
func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	return tokenValue(n)
}

func tokenValue(n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return ""
	}
	return n.GetToken().Value
}

// position is where a node begins. Mappings are asked for their first key: their own token is the colon after it.
func position(n ast.Node) Pos {
	if n == nil {
		return Pos{}
	}
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return position(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return position(m.Key)
	}
	return place(n.GetToken())
}

func place(t *token.Token) Pos {
	if t == nil || t.Position == nil {
		return Pos{}
	}
	return Pos{Line: t.Position.Line, Column: t.Position.Column}
}

// kindOf names what was found, in the words that users have for it.
func kindOf(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "keys with values"
	case ast.SequenceType:
		return "a list"
	case ast.BoolType:
		return tokenValue(n)
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "the number " + tokenValue(n)
	case ast.StringType, ast.LiteralType:
		return fmt.Sprintf("the text %q", brief(tokenValue(n), shownText))
	case ast.NullType:
		return "nothing"
	}
	return "something else"
}

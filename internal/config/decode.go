package config

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"optimist/internal/spelling"
	"optimist/internal/unit"
)

// decoder fills structs from YAML's nodes. It goes on after a mistake, so that it reports all of a file's mistakes at once. It remembers
// where each key stands, so that later checks can report the place, too. The library's own decoder does neither.
type decoder struct {
	cfg      *Config
	file     int // among the sources
	problems Problems
	foreign  bool // the file is no configuration: see Decode
	read     bool // something stands in the file: not only comments
}

// nodeDecoder is a type that is written in more than one form. Its decodeNode is called for null, too.
type nodeDecoder interface {
	decodeNode(d *decoder, n *yaml.Node, path string)
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.failAt(position(n), path, format, args...)
}

func (d *decoder) failAt(at Pos, path, format string, args ...any) {
	d.problems = append(d.problems, d.cfg.placed(newProblem(Error, path, format, args...), at, d.file))
}

func position(n *yaml.Node) Pos { return Pos{Line: n.Line, Column: n.Column} }

// decode reads n into v, which is settable. A key without a value (null) leaves v as it is.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if n = d.resolve(n, path); n == nil {
		return
	}
	custom, isCustom := v.Addr().Interface().(nodeDecoder)
	text, isText := v.Addr().Interface().(encoding.TextUnmarshaler)
	choice, isEnum := v.Interface().(enum)
	switch {
	case isCustom:
		custom.decodeNode(d, n, path)
	case isNull(n):
	case isEnum:
		d.enum(n, v, choice.choices(), path)
	case isText:
		d.text(n, text, path)
	case v.Kind() == reflect.Struct:
		d.structure(n, v, path)
	case v.Kind() == reflect.Slice:
		d.list(n, v, path)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path)
	case v.Kind() == reflect.Bool && n.Tag == "!!bool":
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case v.Kind() == reflect.Bool:
		d.fail(n, path, "want true or false, found %s", kindOf(n))
	case v.Kind() == reflect.String:
		if s, ok := d.str(n, path); ok {
			v.SetString(s)
		}
	default:
		d.integer(n, v, path)
	}
}

// resolve follows an alias. It returns nil, and reports the mistake, if n has a tag.
func (d *decoder) resolve(n *yaml.Node, path string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if isTagged(n) {
		hint := ""
		if len(n.Tag) > 1 && n.Tag[1] != '!' {
			hint = "; a text that begins with ! needs quotes"
		}
		d.fail(n, path, "tags (%s) are not read here%s", n.Tag, hint)
		return nil
	}
	return n
}

// entry is one key of a mapping with its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries returns a mapping's keys and values. It reports keys that can't be keys, or that are there twice, and leaves them out. form is
// the message if n is no mapping: it says what a mapping looks like here, and has %s for what was found.
func (d *decoder) entries(n *yaml.Node, path, form string) []entry {
	if n.Kind != yaml.MappingNode {
		switch {
		case isNull(n):
		case isText(n) && noSpace.MatchString(n.Value):
			d.fail(n, path, noColon)
		default:
			d.fail(n, path, "want "+form, kindOf(n))
		}
		return nil
	}
	list, lines := make([]entry, 0, len(n.Content)/2), map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		switch first, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			d.fail(key, path, "a key is a text here, no alias (*), and has no anchor (&) or tag (!); one that begins with such a sign needs quotes")
		case key.Tag == "!!merge":
			d.fail(key, path, "merge keys (<<) are not read here; an alias can stand for a whole value")
		case twice:
			d.fail(key, path, "the key %q is here twice; the first is in line %d", key.Value, first)
		default:
			list = append(list, entry{key.Value, key, n.Content[i+1]})
			lines[key.Value] = key.Line
		}
	}
	return list
}

// mark remembers where messages about a key point to: to its value if that is a scalar, else to the key itself.
func (d *decoder) mark(path string, key, value *yaml.Node) {
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value.Kind != yaml.ScalarNode || isNull(value) {
		value = key
	}
	d.cfg.at[path] = spot{value, d.file}
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	names := keys(v.Type())
	form := "keys with values, found %s; the keys here are " + strings.Join(names, ", ")
	for _, e := range d.entries(n, path, form) {
		f, ok := fieldOf(v.Type(), e.name)
		if !ok {
			d.fail(e.key, path, "%s", d.unknownKey(e.name, path, names))
			continue
		}
		sub := join(path, e.name)
		d.mark(sub, e.key, e.value)
		if like := f.Tag.Get("like"); like != "" && isNumberOrBool(e.value) {
			d.fail(e.value, sub, "want %s; found %s", like, kindOf(e.value))
			continue
		}
		d.decode(e.value, v.FieldByIndex(f.Index), sub)
		d.bounds(e.value, v.FieldByIndex(f.Index), f.Tag, sub)
	}
}

func (d *decoder) unknownKey(name, path string, names []string) string {
	if d.file > 0 && localKey(path) == "" && slices.Contains(keys(reflect.TypeFor[Config]()), name) {
		return fmt.Sprintf("%q belongs into the file that names this one in rule_files; here are rules only", name)
	}
	if name == "tests" && path == "" && !d.foreign {
		return `unknown key "tests"; tests of rules stand in files of their own, which optimist test --config FILE runs`
	}
	if glued.MatchString(name) {
		return noColon
	}
	if near := spelling.Nearest(name, names); near != "" {
		return fmt.Sprintf("unknown key %q; did you mean %q?", name, near)
	}
	if longer := withWord(name, names); longer != "" {
		return fmt.Sprintf("unknown key %q; did you mean %s?", name, longer)
	}
	if section := sectionOf(name, path); section != "" && !d.foreign {
		return fmt.Sprintf("unknown key %q; it belongs into %s", name, section)
	}
	return fmt.Sprintf("unknown key %q; the keys here are %s", name, strings.Join(names, ", "))
}

// bounds checks a number, a duration or a size against its field's tags min and max. A field with max has min, too.
func (d *decoder) bounds(n *yaml.Node, v reflect.Value, tag reflect.StructTag, path string) {
	least, hasLeast := bound(v.Type(), tag.Get("min"))
	most, hasMost := bound(v.Type(), tag.Get("max"))
	value := v.Interface()
	switch {
	case hasLeast && hasMost && (v.Int() < least.Int() || v.Int() > most.Int()):
		d.fail(n, path, "%v is out of range: %v to %v", value, least, most)
	case hasLeast && v.Int() < least.Int() && v.Type() == reflect.TypeFor[unit.Duration]():
		d.fail(n, path, "it must be more than 0")
	case hasLeast && v.Int() < least.Int():
		d.fail(n, path, "%v is too little: %v at least", value, least)
	}
}

// bound reads a tag's value as one of type t.
func bound(t reflect.Type, text string) (reflect.Value, bool) {
	v := reflect.New(t)
	if u, ok := v.Interface().(encoding.TextUnmarshaler); ok && text != "" {
		return v.Elem(), u.UnmarshalText([]byte(text)) == nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		v.Elem().SetInt(n)
	}
	return v.Elem(), err == nil
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		hint := ""
		switch n.Kind {
		case yaml.ScalarNode:
			hint = "; write " + listOf(Redact(n.Value))
		case yaml.MappingNode:
			hint = "; each entry of a list begins with a dash and a space"
		}
		d.fail(n, path, "want a list, found %s%s", kindOf(n), hint)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		sub := path + "[" + strconv.Itoa(i) + "]"
		d.mark(sub, item, item)
		if r, ok := out.Index(i).Addr().Interface().(*Rule); ok {
			*r = newRule("") // the keys that the file leaves out have defaults
		}
		if isNull(item) {
			d.fail(item, sub, "this entry of the list is empty")
			continue
		}
		d.decode(item, out.Index(i), sub)
	}
	v.Set(out)
}

// listOf is a list with one text, in YAML. The text gets quotes if YAML would take it for something else without them, as it takes * for an
// alias.
func listOf(text string) string {
	plain := "[" + text + "]"
	var list []string
	if err := yaml.Unmarshal([]byte(plain), &list); err != nil || len(list) != 1 || list[0] != text {
		return "[" + strconv.Quote(text) + "]"
	}
	return plain
}

func (d *decoder) enum(n *yaml.Node, v reflect.Value, choices []string, path string) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fail(n, path, "want one of %s; found %s", strings.Join(choices, ", "), kindOf(n))
	case d.expandable(n, path):
	case !slices.Contains(choices, n.Value):
		d.fail(n, path, "%s", notOneOf(v.Interface().(enum), n.Value))
	default:
		v.SetString(n.Value)
	}
}

func (d *decoder) text(n *yaml.Node, u encoding.TextUnmarshaler, path string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "want one value, found %s", kindOf(n))
	} else if err := u.UnmarshalText([]byte(n.Value)); err != nil && !d.expandable(n, path) {
		d.fail(n, path, "%s", err)
	}
}

func (d *decoder) str(n *yaml.Node, path string) (string, bool) {
	switch {
	case isText(n):
		return n.Value, !d.expandable(n, path)
	case n.Kind == yaml.ScalarNode:
		d.fail(n, path, "want text, found %s; if it is meant as text, write it in quotes: %q", kindOf(n), n.Value)
	default:
		d.fail(n, path, "want text, found %s", kindOf(n))
	}
	return "", false
}

func (d *decoder) integer(n *yaml.Node, v reflect.Value, path string) {
	value, err := strconv.ParseInt(n.Value, 0, strconv.IntSize)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil {
		d.fail(n, path, "want a whole number, found %s", kindOf(n))
		return
	}
	v.SetInt(value)
}

// variable is a text in whose place shells, and other programs, put a variable's value.
var variable = regexp.MustCompile(`\$\{[A-Z_][A-Z0-9_]*\}|^\$[A-Z_][A-Z0-9_]*$`)

// expandable reports a text that names a variable as a mistake, since optimist doesn't expand it. In a transform such a text may be data,
// and $NAME may be what a rule asks for.
func (d *decoder) expandable(n *yaml.Node, path string) bool {
	name := variable.FindString(n.Value)
	mayBe := func(key string) bool { return strings.Contains(path, key) }
	bare := !strings.HasPrefix(name, "${")
	if name == "" || d.foreign || mayBe(".transform[") || bare && (mayBe(".match.") || mayBe(".merge.")) {
		return false
	}
	d.fail(n, path, "variables (%s) are not expanded in this file: OPTIMIST_LISTEN, _ADMIN, _UPSTREAM, _MODE, _LOG_LEVEL and _LOG_FORMAT "+
		"win over it, and credentials come from the files that keys in _file name", name)
	return true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// isText reports whether n is a text. A text that looks like a date is one, too, because no key takes dates.
func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!merge")
}

func isTagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 || n.Tag == "!" }

// isNumberOrBool reports whether n is a single value that is neither a text nor null.
func isNumberOrBool(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !isText(n) && !isNull(n) && !isTagged(n)
}

// kindOf names what was found, in the words that users have for it.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys with values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	case isText(n):
		return fmt.Sprintf("the text %q", brief(Redact(n.Value), maxText))
	case n.Tag == "!!bool":
		return n.Value
	}
	return "the number " + n.Value
}

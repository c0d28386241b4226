package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"optimist/internal/unit"
)

// configs/schema.json is for editors: they complete keys and values from it, and show the manual. It is made of the structs and their
// comments; `go test ./internal/config -update` writes it. What it can't say (what belongs together, what hides what), check does.
// tools/schema holds good and bad files to it, by a validator that nothing else here needs.

const schemaFile = "../../configs/schema.json"

// schema is a JSON Schema: its keywords in their order.
type schema []keyword

type keyword struct {
	name  string
	value any
}

func (s schema) MarshalJSON() ([]byte, error) {
	return object(len(s), func(i int) (string, any) { return s[i].name, s[i].value })
}

// schemaWriter makes schemas of the structs, the manual and the defaults.
type schemaWriter struct {
	m   *manual
	all map[string]string
}

// file is the schema of the whole file.
func (w *schemaWriter) file() schema {
	head := schema{
		{"$schema", "http://json-schema.org/draft-07/schema#"}, // the newest that all editors know
		{"title", "optimist's configuration"},
		{"description", "Every key with its default: optimist.yaml beside this file. `optimist check` finds what a schema can't say."},
	}
	return append(head, orNothing(w.value(reflect.TypeFor[Config](), ""))...)
}

// value is the schema of a value at a path.
func (w *schemaWriter) value(t reflect.Type, path string) schema {
	e, isEnum := reflect.Zero(t).Interface().(enum)
	switch {
	case isEnum:
		return words(e)
	case t == reflect.TypeFor[unit.Duration]():
		return pattern(`^(0|[0-9]+(nanos|micros|ms|s|m|h|d))$`)
	case t == reflect.TypeFor[unit.Size]():
		return pattern(`^(0|[0-9]+([kKmMgGtT][iI]?)?[bB])$`)
	case t == reflect.TypeFor[Prefix]():
		return pattern(`^[0-9a-fA-F.:]+(/[0-9]{1,3})?$`)
	case t == reflect.TypeFor[Headers]():
		name := schema{{"type", "string"}}
		return schema{{"anyOf", []schema{name, {{"type", "array"}, {"items", name}}}}}
	case t == reflect.TypeFor[Value]():
		return valueSchema()
	case t == reflect.TypeFor[MergePaths]():
		byKey := record(schema{{"by_key", schema{{"type", "string"}, {"description", "The field that tells the list's objects apart."}}}}, "by_key")
		return entries(`^(/([^~/]|~[01])*)+$`, schema{{"anyOf", []schema{words(Strategy("")), byKey}}})
	case t == reflect.TypeFor[HeaderPatterns]():
		return entries("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", schema{{"type", "string"}})
	case t.Kind() == reflect.Struct:
		return w.structure(t, path)
	case t.Kind() == reflect.Slice:
		return schema{{"type", "array"}, {"items", w.value(t.Elem(), path+"[]")}}
	case t.Kind() == reflect.Bool:
		return schema{{"type", "boolean"}}
	case t.Kind() == reflect.Int:
		return schema{{"type", "integer"}}
	}
	return schema{{"type", "string"}}
}

func (w *schemaWriter) structure(t reflect.Type, path string) schema {
	var properties schema
	for _, f := range reflect.VisibleFields(t) {
		if key := keyOf(f); key != "" {
			properties = append(properties, keyword{key, w.field(t, f, join(path, key))})
		}
	}
	switch t {
	case reflect.TypeFor[Rule]():
		return record(properties, "name")
	case reflect.TypeFor[Step]():
		return record(properties, "op")
	}
	return record(properties)
}

func (w *schemaWriter) field(t reflect.Type, f reflect.StructField, path string) schema {
	s := orNothing(w.value(f.Type, path))
	if f.Type.Kind() == reflect.Int {
		for _, bound := range [...]string{"min", "max"} {
			if n, err := strconv.Atoi(f.Tag.Get(bound)); err == nil {
				s = append(s, keyword{bound + "imum", n})
			}
		}
	}
	if raw, ok := w.all[path]; ok && !isSection(f.Type) && json.Valid([]byte(raw)) && raw != "null" && raw != `""` {
		s = append(s, keyword{"default", json.RawMessage(raw)})
	}
	return append(s, keyword{"description", strings.ReplaceAll(w.m.text(w.m.fields[t.Name()+"."+f.Name], f.Name), "`", "")})
}

// orNothing lets a key stand without a value, and a duration or size be the number 0.
func orNothing(s schema) schema {
	for i, k := range s {
		switch {
		case k.name == "enum":
			s[i].value = append(slices.Clone(k.value.([]any)), nil)
		case k.name != "type":
		case slices.ContainsFunc(s, func(k keyword) bool { return k.name == "pattern" }):
			s[i].value = []string{"string", "integer", "null"}
			s = append(s, keyword{"minimum", 0}, keyword{"maximum", 0})
		default:
			s[i].value = []any{k.value, "null"}
		}
	}
	return s
}

func words(e enum) schema {
	var list []any
	for _, c := range e.choices() {
		list = append(list, c)
	}
	return schema{{"type", "string"}, {"enum", list}}
}

func pattern(p string) schema { return schema{{"type", "string"}, {"pattern", p}} }

// record is an object with these keys and no other.
func record(properties schema, required ...string) schema {
	s := schema{{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}
	if len(required) > 0 {
		s = append(s, keyword{"required", required})
	}
	return s
}

// entries is an object with any keys of a pattern.
func entries(pattern string, value schema) schema {
	return schema{{"type", "object"}, {"propertyNames", schema{{"pattern", pattern}}}, {"additionalProperties", value}}
}

// valueSchema is that of a step's value: anything, with the forms of a reference for editors to offer.
func valueSchema() schema {
	ref := record(schema{
		{"from", words(Source(""))},
		{"path", schema{{"type", "string"}, {"description", "JSON Pointer in incoming, current or base."}}},
		{"name", schema{{"type", "string"}, {"description", "Of the header."}}},
	}, "from")
	literal := record(schema{{"literal", schema{{"description", "What stands here is the value, whatever it looks like."}}}}, "literal")
	return schema{{"anyOf", []schema{ref, literal, {{"description", "A literal."}}}}}
}

// TestTheSchemaIsTheStructs writes, or compares, configs/schema.json.
func TestTheSchemaIsTheStructs(t *testing.T) {
	text, err := json.Marshal((&schemaWriter{m: readManual(t), all: defaults()}).file())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, b.String()+"\n")
}

func TestTheSchemaHasTheManual(t *testing.T) {
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, node map[string]any)
	walk = func(path string, node map[string]any) {
		properties, _ := node["properties"].(map[string]any)
		for key, p := range properties {
			sub, _ := p.(map[string]any)
			if sub["description"] == nil || sub["description"] == "" {
				t.Errorf("%s has no description", join(path, key))
			}
			if items, ok := sub["items"].(map[string]any); ok {
				walk(join(path, key)+"[]", items)
			}
			walk(join(path, key), sub)
		}
	}
	walk("", doc)
}

package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"optimist/internal/unit"

	invopop "github.com/invopop/jsonschema"
	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// configs/schema.json is for editors: they complete keys and values from it, and show the manual. It is made of the structs and their
// comments; `go test ./internal/config -update` writes it. What it can't say (what belongs together, what hides what), check does.

const schemaFile = "../../configs/schema.json"

const pointerPattern = `^(/([^~/]|~[01])*)+$`

// schema is the JSON Schema of the file.
func schema(t *testing.T) *invopop.Schema {
	t.Helper()
	r := invopop.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true, RequiredFromJSONSchemaTags: true, Mapper: mapped}
	s := r.Reflect(&Config{})
	w := &schemaWriter{m: readManual(t), all: defaults()}
	w.section(s, reflect.TypeFor[Config](), "")
	s.Version = "http://json-schema.org/draft-07/schema#" // the newest that all editors know
	s.Title, s.Type = "optimist's configuration", ""
	s.Extras["type"] = []string{"object", "null"}
	s.Description = "Every key with its default: optimist.yaml beside this file. `optimist check` finds what a schema can't say."
	return s
}

// mapped is the schema of types that aren't read as Go's types alone say.
func mapped(t reflect.Type) *invopop.Schema {
	e, isEnum := reflect.Zero(t).Interface().(enum)
	switch {
	case isEnum:
		s := &invopop.Schema{Type: "string"}
		for _, c := range e.choices() {
			s.Enum = append(s.Enum, c)
		}
		return s
	case t == reflect.TypeFor[unit.Duration]():
		return &invopop.Schema{Type: "string", Pattern: `^(0|[0-9]+(nanos|micros|ms|s|m|h|d))$`}
	case t == reflect.TypeFor[unit.Size]():
		return &invopop.Schema{Type: "string", Pattern: `^(0|[0-9]+([kKmMgGtT][iI]?)?[bB])$`}
	case t == reflect.TypeFor[Prefix]():
		return &invopop.Schema{Type: "string", Pattern: `^[0-9a-fA-F.:]+(/[0-9]{1,3})?$`}
	case t == reflect.TypeFor[Value]():
		return valueSchema()
	case t == reflect.TypeFor[MergePaths]():
		byKey := &invopop.Schema{Type: "object", Properties: invopop.NewProperties(), Required: []string{"by_key"}, AdditionalProperties: invopop.FalseSchema}
		byKey.Properties.Set("by_key", &invopop.Schema{Type: "string", Description: "The field that tells the list's objects apart."})
		return &invopop.Schema{Type: "object", PropertyNames: &invopop.Schema{Pattern: pointerPattern},
			AdditionalProperties: &invopop.Schema{AnyOf: []*invopop.Schema{mapped(reflect.TypeFor[Strategy]()), byKey}}}
	case t == reflect.TypeFor[HeaderPatterns]():
		return &invopop.Schema{Type: "object", PropertyNames: &invopop.Schema{Pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
			AdditionalProperties: &invopop.Schema{Type: "string"}}
	}
	return nil
}

// valueSchema is that of a step's value: anything, with the forms of a reference for editors to offer.
func valueSchema() *invopop.Schema {
	ref := &invopop.Schema{Type: "object", Properties: invopop.NewProperties(), Required: []string{"from"}, AdditionalProperties: invopop.FalseSchema}
	ref.Properties.Set("from", mapped(reflect.TypeFor[Source]()))
	ref.Properties.Set("path", &invopop.Schema{Type: "string", Description: "JSON Pointer in incoming, current or base."})
	ref.Properties.Set("name", &invopop.Schema{Type: "string", Description: "Of the header."})
	literal := &invopop.Schema{Type: "object", Properties: invopop.NewProperties(), Required: []string{"literal"}, AdditionalProperties: invopop.FalseSchema}
	literal.Properties.Set("literal", &invopop.Schema{Description: "What stands here is the value, whatever it looks like."})
	return &invopop.Schema{AnyOf: []*invopop.Schema{ref, literal, {Description: "A literal."}}}
}

// schemaWriter adds what structs can't say: the manual, defaults, and that a key may be left without a value.
type schemaWriter struct {
	m   *manual
	all map[string]string
}

func (w *schemaWriter) section(s *invopop.Schema, t reflect.Type, path string) {
	s.Extras = map[string]any{}
	s.AdditionalProperties = invopop.FalseSchema
	switch t {
	case reflect.TypeFor[Rule]():
		s.Required = []string{"name"}
	case reflect.TypeFor[Step]():
		s.Required = []string{"op"}
	}
	for _, f := range reflect.VisibleFields(t) {
		key := keyOf(f)
		if key == "" {
			continue
		}
		p, ok := s.Properties.Get(key)
		if !ok {
			panic("no schema of " + join(path, key))
		}
		sub, ft := join(path, key), f.Type
		if isSection(ft) && ft.Kind() == reflect.Slice {
			w.section(p.Items, ft.Elem(), sub+"[]")
		} else if isSection(ft) {
			w.section(p, ft, sub)
		}
		p.Description = strings.ReplaceAll(w.m.text(w.m.fields[t.Name()+"."+f.Name], f.Name), "`", "")
		if raw, ok := w.all[sub]; ok && !isSection(ft) && json.Valid([]byte(raw)) && raw != "null" && raw != `""` {
			p.Default = json.RawMessage(raw)
		}
		w.orNothing(p, ft)
	}
}

// orNothing lets a key stand without a value, and a duration or size be the number 0.
func (w *schemaWriter) orNothing(p *invopop.Schema, t reflect.Type) {
	if p.Extras == nil {
		p.Extras = map[string]any{}
	}
	if len(p.Enum) > 0 {
		p.Enum = append(p.Enum, nil)
	}
	switch {
	case t == reflect.TypeFor[unit.Duration](), t == reflect.TypeFor[unit.Size]():
		p.Extras["type"] = []string{"string", "integer", "null"}
		p.Minimum, p.Maximum = "0", "0"
	case p.Type != "":
		p.Extras["type"] = []string{p.Type, "null"}
	}
	p.Type = ""
}

// TestTheSchemaIsTheStructs writes, or compares, configs/schema.json.
func TestTheSchemaIsTheStructs(t *testing.T) {
	text, err := json.Marshal(schema(t))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, schemaFile, b.String()+"\n")
}

// compiledSchema is configs/schema.json, by a validator of other hands.
func compiledSchema(t *testing.T) *santhosh.Schema {
	t.Helper()
	file, err := os.Open(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := santhosh.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := santhosh.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate holds YAML to the schema. It is read by another library than the configuration is, as editors do.
func validate(t *testing.T, s *santhosh.Schema, data []byte) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := santhosh.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestTheSchemaTakesWhatIsRight(t *testing.T) {
	s := compiledSchema(t)
	files := append(fixtures(t, "testdata/good/*.yaml"), "../../configs/optimist.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestTheSchemaRefusesWhatCantBeRead: every mistake in a key, a word, a unit or a type.
func TestTheSchemaRefusesWhatCantBeRead(t *testing.T) {
	s := compiledSchema(t)
	refused := 0
	for _, file := range fixtures(t, "testdata/bad/*.yaml") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		told, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, sentence := range []string{"unknown key", "is not one of", "is no duration", "is no size", ": want "} {
			seen = seen || bytes.Contains(told, []byte(sentence))
		}
		if !seen {
			continue
		}
		if refused++; validate(t, s, data) == nil {
			t.Errorf("%s is taken", filepath.Base(file))
		}
	}
	if refused < 8 {
		t.Errorf("only %d files were held to the schema", refused)
	}
}

func TestTheSchemaRefusesEachOfThese(t *testing.T) {
	s := compiledSchema(t)
	for _, text := range []string{
		"lisen: a", "listen: 1", "mode: gaurd", "upstream: {url: a}", "upstream: {urls: a}", "upstream: {connect_timeout: 1m30s}",
		"upstream: {connect_timeout: 5}", "limits: {max_header: 1}", "limits: {max_header: 1XB}", "rules: [{match: {}}]", "rules: {name: a}",
		"rules: [{name: a, merge: {paths: {stock: sum}}}]", "rules: [{name: a, merge: {paths: {/stock: add}}}]",
		"rules: [{name: a, merge: {paths: {/l: {by_key: a, x: y}}}}]", "rules: [{name: a, match: {headers: {a b: c}}}]",
		"rules: [{name: a, transform: [{path: /a}]}]", "rules: [{name: a, transform: [{op: inc, path: /a}]}]",
		"rules: [{name: a, transform: [{op: now, pth: /a}]}]", "rules: [{name: a, retry: {max_attempts: x}}]", "rule_files: a",
		"sessions: {trusted_proxies: [localhost]}",
	} {
		if validate(t, s, []byte(text)) == nil {
			t.Errorf("it takes %s", text)
		}
	}
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

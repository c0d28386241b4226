// Package schema holds configs/schema.json to the rules of JSON Schema, and good and bad configurations to it. The validator is not in the
// product's module, which has no other use for it.
package schema

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

const (
	schemaFile = "../../configs/schema.json"
	fixtures   = "../../internal/config/testdata/"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate holds YAML to the schema. It is read by another library than optimist's own, as editors do.
func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func files(t *testing.T, patterns ...string) (names []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", p, len(found), err)
		}
		names = append(names, found...)
	}
	return names
}

func TestTheSchemaTakesWhatIsRight(t *testing.T) {
	s := compiled(t)
	for _, file := range files(t, fixtures+"good/*.yaml", "../../configs/optimist.yaml") {
		if err := validate(t, s, read(t, file)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestTheSchemaRefusesWhatCantBeRead: every mistake in a key, a word, a unit or a type.
func TestTheSchemaRefusesWhatCantBeRead(t *testing.T) {
	s := compiled(t)
	refused := 0
	for _, file := range files(t, fixtures+"bad/*.yaml") {
		messages := string(read(t, strings.TrimSuffix(file, ".yaml")+".txt"))
		for _, sentence := range []string{"unknown key", "is not one of", "is not a duration", "is not a size", ": want "} {
			if !strings.Contains(messages, sentence) {
				continue
			}
			if refused++; validate(t, s, read(t, file)) == nil {
				t.Errorf("%s is taken", filepath.Base(file))
			}
			break
		}
	}
	if refused < 8 {
		t.Errorf("only %d files were held to the schema", refused)
	}
}

func TestTheSchemaRefusesEachOfThese(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		"lisen: a", "listen: 1", "mode: gaurd", "upstream: {url: a}", "upstream: {urls: a}", "upstream: {connect_timeout: 1m30s}",
		"upstream: {connect_timeout: 5}", "limits: {max_header: 1}", "limits: {max_header: 1XB}", "rules: [{match: {}}]", "rules: {name: a}",
		"rules: [{name: a, merge: {paths: {stock: sum}}}]", "rules: [{name: a, merge: {paths: {/stock: add}}}]",
		"rules: [{name: a, merge: {paths: {/l: {by_key: a, x: y}}}}]", "rules: [{name: a, match: {headers: {a b: c}}}]",
		"rules: [{name: a, transform: [{path: /a}]}]", "rules: [{name: a, transform: [{op: inc, path: /a}]}]",
		"rules: [{name: a, transform: [{op: now, pth: /a}]}]", "rules: [{name: a, retry: {max_attempts: x}}]", "rule_files: a",
		"sessions: {trusted_proxies: [localhost]}", "locks: {chain: 16}", "rules: [{name: a, retry: {max_attempts: 0}}]",
	} {
		if validate(t, s, []byte(text)) == nil {
			t.Errorf("it takes %s", text)
		}
	}
}

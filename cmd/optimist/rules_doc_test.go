package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"optimist/internal/config"
)

// yamlBlock is a fenced block of YAML in a page.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// ruleBlocks are the blocks of docs/rules.md: each a configuration, and tests of it after `---`.
func ruleBlocks(t *testing.T) (configs, tests []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range yamlBlock.FindAllSubmatch(page, -1) {
		c, tt, ok := strings.Cut(string(m[1]), "\n---\n")
		if !ok {
			t.Fatalf("a block without tests:\n%s", m[1])
		}
		configs, tests = append(configs, c+"\n"), append(tests, tt)
	}
	if len(configs) < 14 {
		t.Fatalf("%d blocks found in the page", len(configs))
	}
	return configs, tests
}

// command runs optimist and fails the test unless it ends well.
func command(t *testing.T, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, &out, &errs); status != exitOK {
		t.Fatalf("optimist %s: status %d\n%s%s", strings.Join(args, " "), status, &out, &errs)
	}
}

func TestEveryBlockOfTheRulesPageIsTrue(t *testing.T) {
	configs, tests := ruleBlocks(t)
	for i := range configs {
		t.Run(fmt.Sprintf("block%d", i+1), func(t *testing.T) {
			dir := t.TempDir()
			c, f := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "rules.test.yaml")
			for name, content := range map[string]string{c: configs[i], f: tests[i]} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			command(t, "check", "--config", c)
			command(t, "test", "--config", c, f)
		})
	}
}

// TestTheRulesPageHasAnExampleOfEveryKey: of every key of a rule, of every operation and of every strategy.
func TestTheRulesPageHasAnExampleOfEveryKey(t *testing.T) {
	configs, _ := ruleBlocks(t)
	all := strings.Join(configs, "\n")
	for _, key := range keysOf(reflect.TypeFor[config.Rule]()) {
		if !regexp.MustCompile(`(?m)\b` + key + `:`).MatchString(all) {
			t.Errorf("no example of %s", key)
		}
	}
	for _, word := range words() {
		if !regexp.MustCompile(`\b` + word + `\b`).MatchString(all) {
			t.Errorf("no example of %s", word)
		}
	}
}

// keysOf are the keys of a struct of the configuration and of those in it.
func keysOf(t reflect.Type) (keys []string) {
	for f := range t.Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
			keys = append(keys, key)
		}
		in := f.Type
		for in.Kind() == reflect.Slice {
			in = in.Elem()
		}
		if in.Kind() == reflect.Struct && f.IsExported() {
			keys = append(keys, keysOf(in)...)
		}
	}
	return keys
}

// words are what an example must show: operations of steps, strategies, and where values come from.
func words() []string {
	return strings.Fields("add replace remove move copy test increment append union max min default now merge remove_empty " +
		"sent current fail sum by_key incoming base header id index user if_match stamp epoch_millis epoch_second literal")
}

func TestExamplesDoWhatTheyPromise(t *testing.T) {
	tests, err := filepath.Glob("../../configs/examples/*.test.yaml")
	if err != nil || len(tests) < 8 {
		t.Fatalf("%d examples with tests: %v", len(tests), err)
	}
	configs, err := filepath.Glob("../../configs/examples/*.yaml")
	if err != nil || len(configs) != 2*len(tests) {
		t.Fatalf("%d files and %d tests: an example is without tests, or tests without an example", len(configs), len(tests))
	}
	index, err := os.ReadFile("../../configs/examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range tests {
		c := strings.TrimSuffix(f, ".test.yaml") + ".yaml"
		t.Run(strings.TrimSuffix(filepath.Base(c), ".yaml"), func(t *testing.T) {
			command(t, "check", "--config", c)
			command(t, "test", "--config", c, f)
			if !bytes.Contains(index, []byte("("+filepath.Base(c)+")")) {
				t.Error("the list of examples doesn't name it")
			}
		})
	}
}

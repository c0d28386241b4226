// Package configtest compiles configurations for tests.
//
// It is for tests only. Nothing of the program imports it.
package configtest

import (
	"testing"

	"optimist/internal/config"
	"optimist/internal/rule"
)

// Compile returns a configuration and its rules. yaml is the text of its file. If it isn't valid, Compile ends the test.
func Compile(t testing.TB, yaml string) (*config.Config, *rule.Set) {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(yaml), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := rule.FromConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, set
}

package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// reloadable are the keys that can change while optimist runs. The others belong to sockets, connections and memory that
// exist already.
func reloadable() []string {
	return []string{"mode", "rules", "rule_files", "log.level", "drain"}
}

// Reload is the configuration in force after next was read while c was in force. It has next's values of the keys that can change while
// optimist runs, and c's values of all others. restart names the keys whose new values wait for a restart.
func (c *Config) Reload(next *Config) (inForce *Config, restart []string) {
	merged := *next
	keep(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(c).Elem(), "")
	return &merged, differing(&merged, next)
}

// ReplacedBy returns an error if next must not be put into force, because its file may be half written. Rules stand at the end of a file. A
// half-written file without rules would get the built-in rule: optimist would enforce no locks any more, and add up no totals. So all rules
// go at once only if next has an empty list of rules.
func (c *Config) ReplacedBy(next *Config) error {
	if c.builtIn || !next.builtIn || next.noRules {
		return nil
	}
	return Problems{next.Fail("rules", "the file has none, and these are in force: %s; if all of them shall go, write rules: []",
		strings.Join(c.ruleNames(), ", "))}
}

// RulesGone names the rules of c that next doesn't have.
func (c *Config) RulesGone(next *Config) []string {
	if c.builtIn {
		return nil
	}
	there := next.ruleNames()
	return slices.DeleteFunc(c.ruleNames(), func(name string) bool { return slices.Contains(there, name) })
}

func (c *Config) ruleNames() []string {
	names := make([]string, len(c.Rules))
	for i := range c.Rules {
		names[i] = c.Rules[i].Name
	}
	return names
}

// keep sets the keys of next that can't change while optimist runs back to the values in force.
func keep(next, inForce reflect.Value, path string) {
	for i := range next.NumField() {
		field := next.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		key := join(path, keyOf(field))
		below := func(change string) bool { return strings.HasPrefix(change, key+".") }
		switch {
		case slices.Contains(reloadable(), key):
		case slices.ContainsFunc(reloadable(), below):
			keep(next.Field(i), inForce.Field(i), key)
		default:
			next.Field(i).Set(inForce.Field(i))
		}
	}
}

// differing are the keys whose values differ; lists count as one value.
func differing(a, b *Config) []string {
	left, right := leaves(a), leaves(b)
	var keys []string
	for key, value := range left {
		if right[key] != value {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// leaves are all keys of a configuration with their values as JSON.
func leaves(c *Config) map[string]string {
	found := map[string]string{}
	text, err := json.Marshal(c)
	if err != nil {
		return found
	}
	collect("", text, found)
	return found
}

func collect(path string, value json.RawMessage, into map[string]string) {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) != nil || object == nil {
		into[path] = string(value)
		return
	}
	for key, sub := range object {
		collect(join(path, key), sub, into)
	}
}

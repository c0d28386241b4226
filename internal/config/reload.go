package config

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

// reloadable are the keys that can change while optimist runs. The others belong to sockets, connections and memory that
// exist already.
func reloadable() []string {
	return []string{"mode", "rules", "rule_files", "log.level", "drain"}
}

// Reload is what is in force after next was read while c was in force: next's values where a key can change while running,
// c's elsewhere. restart names the keys that differ and wait for a restart.
func (c *Config) Reload(next *Config) (inForce *Config, restart []string) {
	merged := *next
	merged.Listen, merged.Admin, merged.Upstream = c.Listen, c.Admin, c.Upstream
	merged.ListenTLS, merged.AdminTLS, merged.AdminTokenFile = c.ListenTLS, c.AdminTLS, c.AdminTokenFile
	merged.Limits, merged.Sniffing, merged.Sessions, merged.Locks = c.Limits, c.Sniffing, c.Sessions, c.Locks
	merged.Learning, merged.Identity, merged.DeadLetters = c.Learning, c.Identity, c.DeadLetters
	merged.Idempotency, merged.Undo = c.Idempotency, c.Undo
	merged.Log.Format = c.Log.Format
	for _, key := range differing(c, next) {
		if !slices.ContainsFunc(reloadable(), func(prefix string) bool { return key == prefix || strings.HasPrefix(key, prefix+".") }) {
			restart = append(restart, key)
		}
	}
	return &merged, restart
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
	sort.Strings(keys)
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

package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAReloadChangesOnlyWhatCanChange(t *testing.T) {
	parse := func(text string) *Config {
		t.Helper()
		c, err := Parse("f.yaml", []byte(text), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old := parse("listen: :1\nupstream: {urls: [http://a:1]}\nlog: {level: info}\n")
	next := parse(`
listen: :2
mode: observe
upstream: {urls: [http://b:1], tls: {server_name: x}}
limits: {idle_timeout: 1s}
sniffing: {answer: pass}
sessions: {header: X-Session, max_age: 1m, infer: none}
drain: {timeout: 3s}
log: {format: json, level: debug}
rules: [{name: a}]
`)
	got, restart := old.Reload(next)
	want := []string{"limits.idle_timeout", "listen", "log.format", "sessions.header", "sessions.infer", "sessions.max_age", "sniffing.answer", "upstream.tls.server_name", "upstream.urls"}
	if d := cmp.Diff(want, restart); d != "" {
		t.Errorf("what waits for a restart: %s", d)
	}
	if got.Listen != ":1" || got.Upstream.URLs[0] != "http://a:1" || got.Limits != old.Limits || got.Sniffing != old.Sniffing ||
		got.Sessions.MaxAge.Std() != 5*time.Minute || got.Sessions.Header[0] != "Optimist-Session" || got.Log.Format != LogText {
		t.Errorf("what can't change has changed: %+v", got)
	}
	if got.Mode != ModeObserve || got.Log.Level != LevelDebug ||
		got.Drain.Timeout.Std() != 3*time.Second || got.Rules[0].Name != "a" {
		t.Errorf("what can change hasn't: %+v", got)
	}
	if _, restart := old.Reload(old); restart != nil {
		t.Errorf("nothing changed, and %v needs a restart", restart)
	}
}

// TestEveryKeyIsInForceOrWaits: a key that differs has its new value if it can change, else its old one, and is named.
func TestEveryKeyIsInForceOrWaits(t *testing.T) {
	old, err := Load("testdata/good/minimal.yaml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := Load("testdata/good/full.yaml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	got, restart := old.Reload(next)
	changed := differing(old, got)
	if d := cmp.Diff(differing(old, next), slices.Sorted(slices.Values(slices.Concat(changed, restart)))); d != "" {
		t.Error(d)
	}
	for _, key := range changed {
		if !slices.ContainsFunc(reloadable(), func(r string) bool { return key == r || strings.HasPrefix(key, r+".") }) {
			t.Errorf("%s has changed", key)
		}
	}
}

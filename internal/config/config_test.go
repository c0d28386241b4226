package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got); if the change is meant: go test ./internal/config -update\n%s", name, d)
	}
}

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

// TestEveryMistakeIsToldWithItsPlace: each bad file has its messages beside it.
func TestEveryMistakeIsToldWithItsPlace(t *testing.T) {
	for _, file := range fixtures(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(filepath.Base(file), data, Overrides{})
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v, want problems", err)
			}
			var b strings.Builder
			for _, p := range problems {
				b.WriteString(p.String() + "\n" + p.Excerpt())
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", b.String())
			if messages := problems.Error(); strings.Contains(messages, "secret") {
				t.Error("a password is in the message")
			}
		})
	}
}

// TestGoodFilesSayWhatIsInForce: each good file has its whole configuration beside it, with what was warned of.
func TestGoodFilesSayWhatIsInForce(t *testing.T) {
	for _, file := range fixtures(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			cfg, err := Load(file, Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := cfg.JSON()
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, w := range cfg.Warnings() {
				b.WriteString(filepath.ToSlash(w.String()) + "\n" + w.Excerpt())
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".json", b.String()+string(text)+"\n")
		})
	}
}

func TestFlagsWinOverTheFile(t *testing.T) {
	file := []byte("listen: :1\nadmin: localhost:2\nmode: observe\nupstream: {urls: [http://a:1]}\nlog: {format: json, level: error}\n")
	cfg, err := Parse("f.yaml", file, Overrides{Listen: ":3", Admin: new("[::1]:4"), Mode: "off", LogFormat: "text", LogLevel: "debug",
		Upstream: []string{"http://b:1", " http://c:1 "}})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{cfg.Listen, cfg.Admin, string(cfg.Mode), strings.Join(cfg.Upstream.URLs, " "), string(cfg.Log.Format), string(cfg.Log.Level)}
	if d := cmp.Diff([]string{":3", "[::1]:4", "off", "http://b:1 http://c:1", "text", "debug"}, got); d != "" {
		t.Error(d)
	}
	cfg, err = Parse("f.yaml", file, Overrides{Admin: new("")})
	if err != nil || cfg.Admin != "" {
		t.Errorf("an empty flag doesn't switch the listener off: %v", err)
	}
	cfg, err = Parse("f.yaml", file, Overrides{})
	if err != nil || cfg.Listen != ":1" || cfg.Admin != "localhost:2" || cfg.Mode != ModeObserve {
		t.Errorf("without flags the file's values are not there: %v %v", cfg, err)
	}
}

func TestMistakesInFlagsNameTheFlag(t *testing.T) {
	_, err := Parse("f.yaml", []byte("listen: :1\n"), Overrides{Listen: "x", Mode: "gaurd", LogLevel: "loud", Upstream: []string{"es:9200"}})
	want := `--mode (or OPTIMIST_MODE): mode: "gaurd" is not one of guard, observe, off; did you mean "guard"?
--log-level (or OPTIMIST_LOG_LEVEL): log.level: "loud" is not one of debug, info, warn, error
--listen (or OPTIMIST_LISTEN): listen: "x" is not an address; write host and port, as in 127.0.0.1:9280 or :9280
--upstream (or OPTIMIST_UPSTREAM): upstream.urls[0]: "es:9200" is not a URL of a node; write it as in http://127.0.0.1:9200 or https://es1:9200`
	if err == nil {
		t.Fatal("no error")
	}
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Error(d)
	}
}

func TestFileNamesAreRelativeToTheFile(t *testing.T) {
	cfg, err := Load("testdata/good/full.yaml", Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	tls := cfg.Upstream.TLS
	got := []string{filepath.ToSlash(tls.CAFile), tls.CertFile, filepath.ToSlash(cfg.Upstream.Auth.APIKeyFile)}
	if d := cmp.Diff([]string{"testdata/good/ca.pem", "/etc/optimist/client.pem", "testdata/good/key"}, got); d != "" {
		t.Error(d)
	}
}

func TestAMissingFileIsTheSystemsError(t *testing.T) {
	if _, err := Load("testdata/none.yaml", Overrides{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// FuzzParse: no file makes the reader panic, and what it takes can be told as JSON.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "testdata/good/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := Parse("fuzz.yaml", data, Overrides{})
		if err != nil {
			var problems Problems
			if !errors.As(err, &problems) || !problems.failed() {
				t.Fatalf("an error that isn't a problem: %v", err)
			}
			for _, p := range problems {
				_ = p.String() + p.Excerpt()
			}
			return
		}
		if _, err := cfg.JSON(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAnotherServerOfThisMachineIsNoLoop: another port, or another address of the same port, is no data port of optimist's own.
func TestAnotherServerOfThisMachineIsNoLoop(t *testing.T) {
	for _, c := range []struct {
		listen, node string
		loop         bool
	}{
		{"127.0.0.1:9280", "http://127.0.0.1:9280", true},
		{"127.0.0.1:9280", "http://localhost:9280", true},
		{"localhost:9280", "http://[::1]:9280", true},
		{"0.0.0.0:9280", "http://127.0.0.1:9280", true},
		{"0.0.0.0:9280", "http://[::1]:9280", true}, // Go listens there for IPv6, too
		{"[::]:80", "http://localhost", true},
		{"10.0.0.7:9280", "http://10.0.0.7:9280", true},
		{"127.0.0.1:9280", "http://127.0.0.1:9200", false},
		{"127.0.0.1:9280", "http://127.0.0.2:9280", false},
		{"127.0.0.1:9280", "http://[::1]:9280", false},
		{"10.0.0.7:9280", "http://localhost:9280", false},
		{"0.0.0.0:9280", "http://es1:9280", false},
		{"127.0.0.1:0", "http://127.0.0.1:9280", false},
	} {
		_, err := Parse("f.yaml", fmt.Appendf(nil, "listen: %q\nupstream: {urls: [%q]}\n", c.listen, c.node), Overrides{})
		if loop := err != nil && strings.Contains(err.Error(), "own data port"); loop != c.loop || err != nil && !loop {
			t.Errorf("%s, %s: %v", c.listen, c.node, err)
		}
	}
}

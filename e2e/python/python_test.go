// Package python_test lets an application in Python, on the official Elasticsearch client, work through the real program. It needs
// python3; the client comes from the package index, pinned, into a folder of the user's cache.
package python_test

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// interpreterEnv names a Python that has the client already.
const interpreterEnv = "OPTIMIST_E2E_PYTHON"

//go:embed requirements.txt
var requirements []byte

//go:embed application.py
var application string

// environment is the interpreter of a virtual environment with the client, made once and kept.
var environment = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	h := fnv.New64a()
	_, _ = h.Write(requirements) // never fails
	dir := filepath.Join(cache, "optimist-e2e", "python-"+hex.EncodeToString(h.Sum(nil)))
	python, complete := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return python, nil
	}
	ctx := context.Background()
	for _, command := range [][]string{
		{"python3", "-m", "venv", "--clear", dir},
		{python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", "requirements.txt"},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s\non Debian and Ubuntu: apt-get install -y python3-venv", command, err, out)
		}
	}
	return python, os.WriteFile(complete, nil, 0o600)
})

// interpreter returns a Python that has the client. Only a machine without any Python skips the test.
func interpreter(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(interpreterEnv); path != "" {
		return path
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 isn't installed: apt-get install -y python3 python3-venv")
	}
	python, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	return python
}

// orders are what the application is told to do.
type orders struct {
	URL      string `json:"url"`
	Engine   string `json:"engine"`
	Index    string `json:"index"`
	ID       string `json:"id"`
	Shape    string `json:"shape"`
	Sessions string `json:"sessions"`
	Workers  int    `json:"workers"`
	Lookers  int    `json:"lookers"`
	Rounds   int    `json:"rounds"`
}

// result is what the application was told, and what it found.
type result struct {
	Acknowledged, Found, Lost, Invented int
	Refused, Errors, Damaged            []string
}

func run(t *testing.T, python string, o orders) result {
	t.Helper()
	unique := make([]byte, 4)
	_, _ = rand.Read(unique) // never fails, says its documentation
	o.ID = hex.EncodeToString(unique)
	in, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", application)
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("the application: %v\n%s", err, &errs)
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	t.Logf("%d acknowledged, %d found, %d lost, %d invented, %d refused, %d errors", r.Acknowledged, r.Found, r.Lost, r.Invented, len(r.Refused), len(r.Errors))
	return r
}

var shapes = []string{"fields", "counter", "list"}

func rounds(workers int) int {
	n := max(320/workers, 4)
	if os.Getenv("E2E_LONG") == "1" {
		n *= 10
	}
	return n
}

func TestOfficialClientLosesWithoutOptimist(t *testing.T) {
	python := interpreter(t)
	e := engine.Shared(t, engine.ES7)
	index := e.Index(t)
	for _, shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			r := run(t, python, orders{URL: e.URL, Engine: e.URL, Index: index, Shape: shape, Sessions: "unnamed", Workers: 16, Rounds: rounds(16)})
			if r.Lost == 0 || len(r.Refused)+len(r.Errors) != 0 {
				t.Errorf("the control is to lose, and nothing else: %+v", r)
			}
		})
	}
}

func TestOfficialClientLosesNothing(t *testing.T) {
	python := interpreter(t)
	e := engine.Shared(t, engine.ES7)
	index := e.Index(t)
	plain := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}})
	counting := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: "rules:\n  - {name: counters, merge: {paths: {/stock: sum}}}\n"})
	for _, shape := range shapes {
		p := plain
		if shape == "counter" {
			p = counting
		}
		for _, workers := range []int{16, 64} {
			for _, sessions := range []string{"named", "unnamed", "pooled"} {
				t.Run(fmt.Sprintf("%s/%d/%s", shape, workers, sessions), func(t *testing.T) {
					r := run(t, python, orders{URL: p.URL, Engine: e.URL, Index: index, Shape: shape, Sessions: sessions, Workers: workers, Rounds: rounds(workers)})
					if r.Lost+r.Invented+len(r.Refused)+len(r.Errors)+len(r.Damaged) != 0 || r.Acknowledged != workers*rounds(workers) || r.Found != r.Acknowledged {
						t.Errorf("%+v", r)
					}
				})
			}
		}
	}
}

// Each change is a span around the read and the write, and the instrumentation of urllib3 sends its trace id with both. All workers have
// one pool of connections, and others only look.
func TestWithTracesNothingIsInferred(t *testing.T) {
	python := interpreter(t)
	engine.Each(t, []engine.Kind{engine.OpenSearch38, engine.ES7}, func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		p := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: "rules:\n  - {name: counters, merge: {paths: {/stock: sum}}}\n"})
		for _, shape := range []string{"counter", "cart"} {
			t.Run(shape, func(t *testing.T) {
				r := run(t, python, orders{URL: p.URL, Engine: e.URL, Index: index, Shape: shape, Sessions: "traced", Workers: 16, Lookers: 4, Rounds: rounds(16)})
				if r.Lost+r.Invented+len(r.Refused)+len(r.Errors)+len(r.Damaged) != 0 || r.Acknowledged != 16*rounds(16) || r.Found != r.Acknowledged {
					t.Errorf("%+v", r)
				}
			})
		}
	})
}

// Package javascript_test lets the bulk helper of the official JavaScript client work through the real program. It needs Node.js and npm;
// the client comes from the package registry, pinned, into a folder of the user's cache.
package javascript_test

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

//go:embed package.json
var manifest []byte

//go:embed package-lock.json
var lock []byte

//go:embed bulk.mjs
var program []byte

// rules guard what the tests write, in indices of their own.
const rules = "rules:\n- {name: all, match: {index: ['helper-*']}, merge: {paths: {/n: sum}}}\n"

// errNoClient reports that the client can't be had here.
var errNoClient = errors.New("the JavaScript client can't be had")

// environment is a folder with the program and the client, made once and kept.
var environment = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("%w: %w\non Debian and Ubuntu: apt-get install -y nodejs npm", errNoClient, err)
	}
	h := fnv.New64a()
	for _, file := range [][]byte{manifest, lock, program} {
		_, _ = h.Write(file) // never fails
	}
	dir := filepath.Join(cache, "optimist-e2e", "javascript-"+hex.EncodeToString(h.Sum(nil)))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "javascript-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // nothing is left there on success
	for name, file := range map[string][]byte{"package.json": manifest, "package-lock.json": lock, "bulk.mjs": program} {
		if err := os.WriteFile(filepath.Join(tmp, name), file, 0o600); err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // where the registry can't be reached npm tries for long
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--silent", "--no-audit", "--no-fund", "--fetch-timeout=30000", "--fetch-retries=1")
	cmd.WaitDelay = time.Second // its children may go on
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: npm ci: %w\n%s", errNoClient, err, out)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nil
})

// helper has the client do something, and returns the lines that it prints.
func helper(t *testing.T, args ...string) []string {
	t.Helper()
	dir, err := environment()
	if errors.Is(err, errNoClient) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"bulk.mjs"}, args...)...)
	cmd.Dir = dir
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// before starts optimist in front of the engine. The client takes no other than Elasticsearch 8 or later.
func before(t *testing.T) (e *engine.Engine, url string) {
	t.Helper()
	e = engine.Shared(t, engine.ES9)
	return e, optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: rules}).URL
}

// ask does one request to the engine, which has to be answered with the status.
func ask(t *testing.T, e *engine.Engine, status int, method, path, body string) string {
	t.Helper()
	a, err := e.Do(t.Context(), method, path, body)
	if err != nil || a.Status != status {
		t.Fatalf("%s %s: %d, want %d: %s %v", method, path, a.Status, status, a.Body, err)
	}
	return string(a.Body)
}

// newIndex makes an index with the documents that the items of the helper meet.
func newIndex(t *testing.T, e *engine.Engine) string {
	t.Helper()
	index := "helper-" + strings.ToLower(rand.Text())
	ask(t, e, http.StatusOK, http.MethodPut, "/"+index,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"double"}}}}`)
	for _, id := range []string{"x", "a", "b", "c", "d"} { // x, so that the number 0 is of another document
		ask(t, e, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/"+id, `{"n":0}`)
	}
	return index
}

// The bulk helper says the same through optimist as on the engine, item by item, errors included.
func TestTheBulkHelperSaysTheSame(t *testing.T) {
	e, url := before(t)
	direct, through := newIndex(t, e), newIndex(t, e)
	want, got := helper(t, "items", e.URL, direct), helper(t, "items", url, through)
	if len(want) != 16 || !strings.Contains(want[15], `"total":15`) || !slices.Equal(got, want) {
		t.Errorf("%s\ndirectly\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	left := func(index string) string {
		var all []string
		for _, h := range gjson.Get(ask(t, e, http.StatusOK, http.MethodPost, "/"+index+"/_search", `{"size":100}`), "hits.hits").Array() {
			all = append(all, h.Get("_id").Str+h.Get("_routing").Str+" "+h.Get("_source").Raw)
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	if a, b := left(through), left(direct); a != b || a == "" {
		t.Errorf("left is\n%s\ndirectly\n%s", a, b)
	}
}

// Workers with the bulk helper each write back what they have read: each entry and each count is there once.
func TestBulkHelpersOfManyWorkersLoseNothing(t *testing.T) {
	const workers, rounds, changes = "8", "6", 48
	e, url := before(t)
	index := newIndex(t, e)
	ask(t, e, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1", `{"n":0,"entries":[]}`)
	if told := helper(t, "workers", url, index, workers, rounds); told[0] != "" {
		t.Error(told)
	}
	got := ask(t, e, http.StatusOK, http.MethodGet, "/"+index+"/_source/1", "")
	unique := map[string]bool{}
	for _, v := range gjson.Get(got, "entries").Array() {
		unique[v.Str] = true
	}
	if n := gjson.Get(got, "n").Int(); n != changes || len(unique) != changes || gjson.Get(got, "entries.#").Int() != changes {
		t.Errorf("%d changes, in %s", changes, got)
	}
}

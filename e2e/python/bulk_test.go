package python_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

//go:embed bulk.py
var bulk string

// TestBulkHelpersGiveBackWhatTheyDoWithoutOptimist: bulk, streaming_bulk and parallel_bulk write new documents, and items that fail: a
// create of what is there, a value that the mapping refuses, absent documents, a guard that doesn't hold.
func TestBulkHelpersGiveBackWhatTheyDoWithoutOptimist(t *testing.T) {
	python := interpreter(t)
	e := engine.Shared(t, engine.ES7)
	p := optimist.Start(t, optimist.Options{Upstream: []string{e.URL}})
	direct := helped(t, python, e, e.URL, false)
	if !strings.Contains(direct, "version_conflict_engine_exception") || !strings.Contains(direct, "mapper_parsing_exception") {
		t.Fatalf("nothing fails: nothing is tested\n%s", direct)
	}
	for name, session := range map[string]bool{"unnamed": false, "named": true} {
		t.Run(name, func(t *testing.T) {
			if got := helped(t, python, e, p.URL, session); got != direct {
				t.Errorf("through optimist\n%s\ndirect\n%s", got, direct)
			}
		})
	}
}

// helped is what the helpers gave back, and what is stored.
func helped(t *testing.T, python string, e *engine.Engine, url string, session bool) string {
	t.Helper()
	index := e.Index(t)
	a, err := e.Do(t.Context(), http.MethodPut, "/"+index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},`+
		`"mappings":{"properties":{"n":{"type":"integer"},"text":{"type":"keyword"}}}}`)
	if err != nil || a.Status != http.StatusOK {
		t.Fatal(a.Status, err)
	}
	orders, err := json.Marshal(map[string]any{"url": url, "index": index, "session": session})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", bulk)
	cmd.Stdin = bytes.NewReader(orders)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("the helpers: %v\n%s", err, &errs)
	}
	return out.String()
}

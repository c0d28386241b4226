package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
)

// ingests guards what the Java client writes.
const ingests = "rules:\n- {name: all, match: {index: ['absent-*']}, merge: {paths: {/n: sum}}}\n"

// javaClient has the official Java client do something, and returns the lines that it prints.
func javaClient(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := engine.JavaClient(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

// ingested is an index with the documents that the items of the Java client meet.
func ingested(t *testing.T, e target) string {
	t.Helper()
	index := e.absent(t)
	e.send(t, http.StatusOK, http.MethodPut, "/"+index,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"double"}}}}`)
	for _, id := range []string{"x", "a", "b", "c", "d"} { // x, so that the number 0 is of another document
		e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/"+id, `{"n":0}`)
	}
	return index
}

// The official Java client takes no other engine than its own.
func eachJavaTarget(t *testing.T, test func(t *testing.T, e target)) {
	t.Helper()
	engine.Each(t, []engine.Kind{engine.ES9}, func(t *testing.T, e *engine.Engine) { test(t, target{e.Kind.String(), e.URL}) })
}

// A BulkIngester is told the same through optimist as by the engine, item by item, errors included.
func TestTheBulkIngesterOfJavaIsToldTheSame(t *testing.T) {
	eachJavaTarget(t, func(t *testing.T, e target) {
		p := optimistFor(t, e, ingests)
		direct, through := ingested(t, e), ingested(t, e)
		want, got := javaClient(t, "items", e.url, direct), javaClient(t, "items", p.URL, through)
		if len(want) != 15 || len(got) != len(want) {
			t.Fatalf("%q, directly %q", got, want)
		}
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("item %q, directly %q", got[k], want[k])
			}
		}
		left := func(index string) string {
			var all []string
			found := e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_search", `{"size":100}`)
			for _, h := range gjson.Get(found.body, "hits.hits").Array() {
				all = append(all, h.Get("_id").Str+h.Get("_routing").Str+" "+h.Get("_source").Raw)
			}
			slices.Sort(all)
			return strings.Join(all, "\n")
		}
		if a, b := left(through), left(direct); a != b || a == "" {
			t.Errorf("left is\n%s\ndirectly\n%s", a, b)
		}
	})
}

// Workers with a BulkIngester each write back what they have read: each entry and each count is there once.
func TestBulkIngestersOfManyWorkersLoseNothing(t *testing.T) {
	const workers, rounds, changes = "8", "6", 48
	eachJavaTarget(t, func(t *testing.T, e target) {
		p, index := optimistFor(t, e, ingests), e.absent(t)
		e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1", `{"n":0,"entries":[]}`)
		if told := javaClient(t, "workers", p.URL, index, workers, rounds); told[0] != "" {
			t.Error(told)
		}
		got := e.source(t, "/"+index+"/_doc/1")
		unique := map[string]bool{}
		for _, v := range gjson.Get(got, "entries").Array() {
			unique[v.Str] = true
		}
		if n := gjson.Get(got, "n").Int(); n != changes || len(unique) != changes || gjson.Get(got, "entries.#").Int() != changes {
			t.Errorf("%d changes, in %s", changes, got)
		}
	})
}

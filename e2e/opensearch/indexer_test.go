// Package opensearch_test has the official Go client of OpenSearch work through optimist. It is a module of its own, so that nobody who
// builds optimist gets that client.
package opensearch_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	"github.com/opensearch-project/opensearch-go/v4/opensearchutil"
	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// rules guard what the tests write, in indices of their own.
const rules = "rules:\n- {name: all, match: {index: ['indexer-*']}, merge: {paths: {/n: sum}}}\n"

// on runs a test on the embedded engine, and on OpenSearch; url is the engine's, and through that of optimist before it.
func on(t *testing.T, test func(t *testing.T, url, through string)) {
	t.Helper()
	run := func(t *testing.T, url string) {
		t.Helper()
		test(t, url, optimist.Start(t, optimist.Options{Upstream: []string{url}, Config: rules}).URL)
	}
	t.Run("embedded", func(t *testing.T) { run(t, engine.Embedded(t)) })
	engine.Each(t, []engine.Kind{engine.OpenSearch38}, func(t *testing.T, e *engine.Engine) { run(t, e.URL) })
}

// send does one request that has to be answered with the status.
func send(t *testing.T, status int, method, url, body, session string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = headerOf(session)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		t.Fatalf("%s %s: %d, want %d: %s %v", method, url, res.StatusCode, status, text, err)
	}
	return string(text)
}

func headerOf(session string) http.Header { return http.Header{"Optimist-Session": {session}} }

// newIndex makes an index that no other test uses.
func newIndex(t *testing.T, url string) string {
	t.Helper()
	name := "indexer-" + strings.ToLower(rand.Text())
	send(t, http.StatusOK, http.MethodPut, url+"/"+name,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"double"}}}}`, "")
	return name
}

// bulkIndexer makes a BulkIndexer that sends everything at its end.
func bulkIndexer(t *testing.T, at, index, session string) opensearchutil.BulkIndexer {
	t.Helper()
	client, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{at}, DisableRetry: true}})
	if err != nil {
		t.Fatal(err)
	}
	indexer, err := opensearchutil.NewBulkIndexer(opensearchutil.BulkIndexerConfig{
		Client: client, Index: index, NumWorkers: 1, FlushInterval: time.Hour, Refresh: "true", Header: headerOf(session),
		OnError: func(_ context.Context, err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return indexer
}

// everyItem has every action, and every error that an item can have. Documents a to d are there before.
func everyItem() []opensearchutil.BulkIndexerItem {
	body := func(text string) io.ReadSeeker { return strings.NewReader(text) }
	stale, term, low, external, retries, routing, yes := int64(0), int64(1), int64(3), "external", 2, "r1", true
	return []opensearchutil.BulkIndexerItem{
		{Action: "index", DocumentID: "new", Body: body(`{"n":1}`)},
		{Action: "index", DocumentID: "a", Body: body(`{"n":2,"t":"as it  was \u0061"}`)},
		{Action: "create", DocumentID: "made", Body: body(`{"n":3.0}`)},
		{Action: "create", DocumentID: "b", Body: body(`{"n":4}`)},
		{Action: "update", DocumentID: "b", Body: body(`{"doc":{"m":5}}`), RetryOnConflict: &retries},
		{Action: "update", DocumentID: "b", Body: body(`{"doc":{"m":5}}`)},
		{Action: "update", DocumentID: "absent", Body: body(`{"doc":{"m":6}}`)},
		{Action: "update", DocumentID: "upserted", Body: body(`{"doc":{"m":7},"doc_as_upsert":true}`)},
		{Action: "delete", DocumentID: "c"},
		{Action: "delete", DocumentID: "absent"},
		{Action: "index", DocumentID: "odd", Body: body(`{"n":"no number"}`)},
		{Action: "index", DocumentID: "d", Body: body(`{"n":8}`), IfSeqNum: &stale, IfPrimaryTerm: &term},
		{Action: "index", DocumentID: "d", Body: body(`{"n":9}`), Version: &low, VersionType: &external},
		{Action: "index", DocumentID: "routed", Routing: &routing, Body: body(`{"n":10}`)},
		{Action: "index", DocumentID: "d", RequireAlias: &yes, Body: body(`{"n":11}`)},
	}
}

// indexed is what a BulkIndexer was told.
type indexed struct {
	items []string // of each item that was added, in order: what its callback got
	stats string
	left  string // the documents afterwards
}

// indexAll sends every item by a BulkIndexer at an address, from a session that has read the documents that are there.
func indexAll(t *testing.T, url, at string) (got indexed) {
	t.Helper()
	const session = "indexer"
	index := newIndex(t, url)
	for _, id := range []string{"x", "a", "b", "c", "d"} { // x, so that the number 0 is of another document
		send(t, http.StatusCreated, http.MethodPut, url+"/"+index+"/_doc/"+id, `{"n":0}`, "")
		send(t, http.StatusOK, http.MethodGet, at+"/"+index+"/_doc/"+id, "", session)
	}
	items := everyItem()
	got.items = make([]string, len(items))
	var mu sync.Mutex
	indexer := bulkIndexer(t, at, index, session)
	for k := range items {
		note := func(what string, r *opensearchapi.BulkRespItem, err error) {
			mu.Lock()
			defer mu.Unlock()
			text := fmt.Sprint(what, " ", r.Status, " ", r.ID, " ", r.Result, " v", r.Version)
			if r.Error != nil {
				text += fmt.Sprint(" ", r.Error.Type, " ", r.Error.Reason, " ", r.Error.Cause)
			}
			got.items[k] += strings.ReplaceAll(fmt.Sprint(text, " ", err), index, "INDEX")
		}
		items[k].OnSuccess = func(_ context.Context, _ opensearchutil.BulkIndexerItem, r opensearchapi.BulkRespItem) {
			note("done", &r, nil)
		}
		items[k].OnFailure = func(_ context.Context, _ opensearchutil.BulkIndexerItem, r opensearchapi.BulkRespItem, err error) {
			note("failed", &r, err)
		}
		if err := indexer.Add(t.Context(), items[k]); err != nil {
			t.Fatal(err)
		}
	}
	if err := indexer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := indexer.Stats()
	got.stats = fmt.Sprintf("%d added, %d flushed, %d failed, %d indexed, %d created, %d updated, %d deleted, %d requests",
		s.NumAdded, s.NumFlushed, s.NumFailed, s.NumIndexed, s.NumCreated, s.NumUpdated, s.NumDeleted, s.NumRequests)
	var left []string
	for _, h := range gjson.Get(send(t, http.StatusOK, http.MethodPost, url+"/"+index+"/_search", `{"size":100}`, ""), "hits.hits").Array() {
		left = append(left, h.Get("_id").Str+h.Get("_routing").Str+" "+h.Get("_source").Raw)
	}
	slices.Sort(left)
	got.left = strings.Join(left, "\n")
	return got
}

// A BulkIndexer is told the same through optimist as by the engine, item by item, errors included.
func TestABulkIndexerIsToldTheSame(t *testing.T) {
	on(t, func(t *testing.T, url, through string) {
		want, got := indexAll(t, url, url), indexAll(t, url, through)
		for k := range want.items {
			if want.items[k] == "" || got.items[k] != want.items[k] {
				t.Errorf("item %d: %q, directly %q", k, got.items[k], want.items[k])
			}
		}
		if got.stats != want.stats || !strings.Contains(want.stats, "15 added") {
			t.Errorf("%s, directly %s", got.stats, want.stats)
		}
		if got.left != want.left || want.left == "" {
			t.Errorf("left is\n%s\ndirectly\n%s", got.left, want.left)
		}
	})
}

// Workers with a BulkIndexer each write back what they have read: each entry and each count is there once.
func TestBulkIndexersOfManyWorkersLoseNothing(t *testing.T) {
	const workers, rounds = 8, 6
	on(t, func(t *testing.T, url, through string) {
		index := newIndex(t, url)
		send(t, http.StatusCreated, http.MethodPut, url+"/"+index+"/_doc/1", `{"n":0,"entries":[]}`, "")
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				session := fmt.Sprint("worker", w)
				for r := range rounds {
					was := send(t, http.StatusOK, http.MethodGet, through+"/"+index+"/_source/1", "", session)
					entries := fmt.Sprintf(`"w%d-%d"`, w, r)
					if before := strings.Trim(gjson.Get(was, "entries").Raw, "[]"); before != "" {
						entries = before + "," + entries
					}
					body := strings.NewReader(fmt.Sprintf(`{"n":%d,"entries":[%s]}`, gjson.Get(was, "n").Int()+1, entries))
					indexer := bulkIndexer(t, through, index, session)
					err := indexer.Add(t.Context(), opensearchutil.BulkIndexerItem{Action: "index", DocumentID: "1", Body: body})
					if err == nil {
						err = indexer.Close(t.Context())
					}
					if err != nil || indexer.Stats().NumFailed != 0 {
						t.Error(err, indexer.Stats())
						return
					}
				}
			})
		}
		all.Wait()
		got := send(t, http.StatusOK, http.MethodGet, url+"/"+index+"/_source/1", "", "")
		unique := map[string]bool{}
		for _, v := range gjson.Get(got, "entries").Array() {
			unique[v.Str] = true
		}
		if n := gjson.Get(got, "n").Int(); n != workers*rounds || len(unique) != workers*rounds || gjson.Get(got, "entries.#").Int() != n {
			t.Errorf("%d changes, in %s", workers*rounds, got)
		}
	})
}

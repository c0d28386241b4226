package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/tidwall/gjson"
)

// plain sends requests to engines that the official client refuses, because they aren't Elasticsearch 8 or later.
type plain struct{ base *url.URL }

func (p plain) Perform(r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = p.base.Scheme, p.base.Host
	r.RequestURI = ""
	return http.DefaultClient.Do(r)
}

// officialClient is the transport under a BulkIndexer.
func officialClient(t *testing.T, e target, at string) esapi.Transport {
	t.Helper()
	if e.name == "elasticsearch9" {
		c, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{at}, DisableRetry: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	base, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return plain{base}
}

// indexed is what a BulkIndexer was told.
type indexed struct {
	items []string // of each item that was added, in order: what its callback got
	stats esutil.BulkIndexerStats
	left  string // the documents afterwards
}

// indexerItems are of every action, with every error that an item can have. Documents a to d are there before.
func indexerItems() []esutil.BulkIndexerItem {
	stale, term, retries := int64(0), int64(1), 2
	low := int64(3)
	return []esutil.BulkIndexerItem{
		{Action: "index", DocumentID: "new", Body: strings.NewReader(`{"n":1}`)},
		{Action: "index", DocumentID: "a", Body: strings.NewReader(`{"n":2,"t":"as it  was \u0061"}`)},
		{Action: "create", DocumentID: "made", Body: strings.NewReader(`{"n":3.0}`)},
		{Action: "create", DocumentID: "b", Body: strings.NewReader(`{"n":4}`)},
		{Action: "update", DocumentID: "b", Body: strings.NewReader(`{"doc":{"m":5}}`), RetryOnConflict: &retries},
		{Action: "update", DocumentID: "b", Body: strings.NewReader(`{"doc":{"m":5}}`)},
		{Action: "update", DocumentID: "absent", Body: strings.NewReader(`{"doc":{"m":6}}`)},
		{Action: "update", DocumentID: "upserted", Body: strings.NewReader(`{"doc":{"m":7},"doc_as_upsert":true}`)},
		{Action: "delete", DocumentID: "c"},
		{Action: "delete", DocumentID: "absent"},
		{Action: "index", DocumentID: "odd", Body: strings.NewReader(`{"n":"no number"}`)},
		{Action: "index", DocumentID: "d", Body: strings.NewReader(`{"n":8}`), IfSeqNo: &stale, IfPrimaryTerm: &term},
		{Action: "index", DocumentID: "d", Body: strings.NewReader(`{"n":9}`), Version: &low, VersionType: "external"},
		{Action: "index", DocumentID: "routed", Routing: "r1", Body: strings.NewReader(`{"n":10}`)},
		{Action: "index", DocumentID: "d", RequireAlias: true, Body: strings.NewReader(`{"n":11}`)},
	}
}

// indexAll sends them by a BulkIndexer at an address, from a session that has read the documents that are there.
func indexAll(t *testing.T, e target, at, index string) (got indexed) {
	t.Helper()
	e.send(t, http.StatusOK, http.MethodPut, "/"+index,
		`{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"double"}}}}`)
	for _, id := range []string{"x", "a", "b", "c", "d"} {
		e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/"+id, `{"n":0}`)
		if id == "x" {
			continue // so that the number 0 is of another document
		}
		request(t, http.StatusOK, http.MethodGet, at+"/"+index+"/_doc/"+id, "", session("indexer"))
	}
	items := indexerItems()
	got.items = make([]string, len(items))
	var mu sync.Mutex
	failed := func(_ context.Context, err error) { t.Error(err) }
	indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{
		Client: officialClient(t, e, at), Index: index, NumWorkers: 1, FlushInterval: time.Hour, Refresh: "true",
		Header: session("indexer"), OnError: failed,
	})
	if err != nil {
		t.Fatal(err)
	}
	for k := range items {
		note := func(what string, r *esutil.BulkIndexerResponseItem, err error) {
			mu.Lock()
			defer mu.Unlock()
			text := fmt.Sprint(what, " ", r.Status, " ", r.DocumentID, " ", r.Result, " v", r.Version, " ", r.Error.Type, " ",
				r.Error.Reason, " ", r.Error.Cause, " ", err)
			got.items[k] += strings.ReplaceAll(text, index, "INDEX")
		}
		items[k].OnSuccess = func(_ context.Context, _ esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem) {
			note("done", &r, nil)
		}
		items[k].OnFailure = func(_ context.Context, _ esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem, err error) {
			note("failed", &r, err)
		}
		if err := indexer.Add(t.Context(), items[k]); err != nil {
			t.Fatal(err)
		}
	}
	if err := indexer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got.stats = indexer.Stats()
	got.stats.FlushedMs, got.stats.FlushedBytes = 0, 0 // the index's name is longer or shorter
	found := e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_search", `{"size":100,"query":{"match_all":{}}}`)
	var left []string
	for _, h := range gjson.Get(found.body, "hits.hits").Array() {
		left = append(left, h.Get("_id").Str+h.Get("_routing").Str+" "+h.Get("_source").Raw)
	}
	slices.Sort(left)
	got.left = strings.Join(left, "\n")
	return got
}

// A BulkIndexer of the official Go client is told the same through optimist as by the engine, item by item, errors included.
func TestTheOfficialBulkIndexerIsToldTheSame(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		direct := indexAll(t, e, e.url, e.absent(t))
		p := optimistFor(t, e, "rules:\n- {name: all, match: {index: ['absent-*']}, merge: {paths: {/n: sum}}}\n")
		through := indexAll(t, e, p.URL, e.absent(t))
		for k := range direct.items {
			if direct.items[k] == "" || through.items[k] != direct.items[k] {
				t.Errorf("item %d: %q, directly %q", k, through.items[k], direct.items[k])
			}
		}
		if through.stats != direct.stats || direct.stats.NumFailed == 0 || direct.stats.NumCreated == 0 {
			t.Errorf("%+v, directly %+v", through.stats, direct.stats)
		}
		if through.left != direct.left || direct.left == "" {
			t.Errorf("left is\n%s\ndirectly\n%s", through.left, direct.left)
		}
	})
}

// Workers with a BulkIndexer each write back what they have read: each entry and each count is there once.
func TestBulkIndexersOfManyWorkersLoseNothing(t *testing.T) {
	const workers, rounds = 8, 6
	e := inMemory(t)
	p := optimistFor(t, e, "rules:\n- {name: all, match: {index: ['*']}, merge: {paths: {/n: sum}}}\n")
	index := e.index(t)
	e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1", `{"n":0,"entries":[]}`)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			name := session(fmt.Sprint("worker", w))
			for r := range rounds {
				was := request(t, http.StatusOK, http.MethodGet, p.URL+"/"+index+"/_source/1", "", name).body
				entries := append(strings.Split(strings.Trim(gjson.Get(was, "entries").Raw, "[]"), ","), fmt.Sprintf(`"w%d-%d"`, w, r))
				body := fmt.Sprintf(`{"n":%d,"entries":[%s]}`, gjson.Get(was, "n").Int()+1, strings.Trim(strings.Join(entries, ","), ","))
				indexer, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: officialClient(t, e, p.URL), Index: index, NumWorkers: 1, Header: name})
				if err == nil {
					err = indexer.Add(t.Context(), esutil.BulkIndexerItem{Action: "index", DocumentID: "1", Body: strings.NewReader(body)})
				}
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
	got := e.source(t, "/"+index+"/_doc/1")
	unique := map[string]bool{}
	for _, v := range gjson.Get(got, "entries").Array() {
		unique[v.Str] = true
	}
	if n := gjson.Get(got, "n").Int(); n != workers*rounds || len(unique) != workers*rounds || gjson.Get(got, "entries.#").Int() != n {
		t.Errorf("%d changes, in %s", workers*rounds, got)
	}
}

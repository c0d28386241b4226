package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// format is the number of the documents' format. A program that is too old for an index refuses it.
const format = 1

// How leases are judged, in the index's _meta: all proxies on one index must mean the same.
const (
	clockEngine   = "engine"   // by the engine's clock, in scripts
	clockObserved = "observed" // by how long a proxy has seen them unchanged
)

// settings are those of the index. What is not searched isn't indexed: a lock costs one small document.
const settings = `{"settings":{"index":{"number_of_shards":1,"auto_expand_replicas":"0-1","hidden":true}},` +
	`"mappings":{"dynamic":false,"_meta":{"optimist":{"format":%d,"clock":"%s"}},"properties":{` +
	`"lock":{"type":"keyword"},"kind":{"type":"keyword"},"owners":{"type":"keyword"},"since":{"type":"long"},"seen":{"type":"long"},` +
	`"last":{"type":"long"},"holds":{"type":"object","enabled":false},"queue":{"type":"object","enabled":false},` +
	`"lapsed":{"type":"object","enabled":false},"said":{"type":"object","enabled":false}}}}`

// prepare makes the index, if it isn't there, and finds out how leases are judged. After the first success it costs nothing.
func (s *Store) prepare(ctx context.Context) (method int32, err error) {
	if m := s.method.Load(); m != 0 {
		return m, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.method.Load(); m != 0 {
		return m, nil
	}
	clock, err := s.open(ctx)
	if err != nil {
		return 0, err
	}
	if clock == "" {
		if clock, err = s.choose(ctx); err != nil {
			return 0, err
		}
	} else if err = s.agree(ctx, clock); err != nil {
		return 0, err
	}
	method = byScript
	if clock == clockObserved {
		method = byGuard
	}
	s.o.Log.Info("locks are ready", "index", s.o.Index, "clock", clock)
	s.method.Store(method)
	return method, nil
}

// open reads the _meta of the index, which it makes if it isn't there: how leases are judged, or "" if nobody has said yet. It
// looks again if another proxy has made the index in between.
func (s *Store) open(ctx context.Context) (clock string, err error) {
	for range 2 {
		a, err := s.read(ctx, esapi.IndicesGetMappingRequest{Index: []string{s.index}})
		switch {
		case err != nil:
			return "", err
		case a.Status == http.StatusOK:
			return s.meta(a.Body)
		case a.Status != http.StatusNotFound:
			return "", s.failure(a)
		}
		a, err = s.send(ctx, esapi.IndicesCreateRequest{Index: s.index, Body: strings.NewReader(fmt.Sprintf(settings, format, ""))})
		switch {
		case err != nil:
			return "", err
		case a.Status == http.StatusOK:
			return "", nil
		case gjson.GetBytes(a.Body, "error.type").Str != "resource_already_exists_exception":
			return "", s.failure(a)
		}
	}
	return "", errNoIndex
}

func (s *Store) meta(mapping []byte) (clock string, err error) {
	meta, err := es.OwnMeta(mapping, "a lock index", format)
	if err != nil {
		return "", fmt.Errorf("%w: %s %w", ErrFormat, s.o.Index, err)
	}
	return meta.Get("clock").Str, nil
}

// choose decides for a new index, and writes it down.
func (s *Store) choose(ctx context.Context) (clock string, err error) {
	clock = clockEngine
	switch works, err := s.scripts(ctx); {
	case err != nil:
		return "", err
	case !works:
		clock = clockObserved
	}
	if err := s.template(ctx, clock); err != nil {
		return "", err
	}
	meta := map[string]any{"_meta": map[string]any{"optimist": map[string]any{"format": format, "clock": clock}}}
	a, err := s.send(ctx, esapi.IndicesPutMappingRequest{Index: []string{s.index}, Body: jsonBody(meta)})
	switch {
	case err != nil:
		return "", err
	case a.Status != http.StatusOK:
		return "", s.failure(a)
	}
	return clock, nil
}

// agree holds what the index says against what can be done here. Proxies that can run scripts can do without; the other way round
// a lease's end would be judged by nobody.
func (s *Store) agree(ctx context.Context, clock string) error {
	switch clock {
	case clockObserved:
		if s.o.Scripts == Always {
			return fmt.Errorf("%w: %s was made for locks without scripts, and scripts are demanded", ErrFormat, s.o.Index)
		}
		return nil
	case clockEngine:
		works, err := s.scripts(ctx)
		if err == nil && !works {
			err = fmt.Errorf("%w: %s was made for locks by scripts, and they can't be run now; allow them, or stop all proxies and delete it",
				ErrFormat, s.o.Index)
		}
		return err
	}
	return fmt.Errorf("%w: %s has leases judged by %q, which this program doesn't know", ErrFormat, s.o.Index, clock)
}

// scripts tries ours, on a document that it doesn't make.
func (s *Store) scripts(ctx context.Context) (bool, error) {
	if s.o.Scripts == Never || s.before == byGuard {
		return false, nil
	}
	_, _, err := s.call(ctx, "probe", &state.Call{Kind: state.Global, Ops: []state.Op{}})
	var refused *refusedError
	switch {
	case !errors.As(err, &refused):
		return err == nil, err
	case s.o.Scripts != Auto:
		return false, s.failure(refused.a)
	}
	s.o.Log.Warn("the engine runs no scripts: locks use guarded writes instead", "index", s.o.Index, obs.KeyReason, es.Why(refused.a))
	return false, nil
}

// refusedError is a script that the engine refused, or that failed. Nothing was done.
type refusedError struct{ a es.Answer }

func (e *refusedError) Error() string { return "the engine has refused the script" }

// Read gives the documents as they are now.
func (s *Store) Read(ctx context.Context, ids []string) ([]*state.Doc, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	items, err := s.mget(ctx, ids)
	if err != nil {
		return nil, err
	}
	return s.documents(ids, items)
}

// mget reads documents, each as the engine's item, which has found only where there is an index.
func (s *Store) mget(ctx context.Context, ids []string) ([]gjson.Result, error) {
	a, err := s.read(ctx, esapi.MgetRequest{Index: s.index, Body: jsonBody(map[string]any{"ids": ids})})
	switch {
	case err != nil:
		return nil, err
	case a.IsNoIndex():
		return make([]gjson.Result, len(ids)), nil
	case a.Status != http.StatusOK:
		return nil, s.failure(a)
	}
	items := gjson.GetBytes(a.Body, "docs").Array()
	if len(items) != len(ids) {
		return nil, s.failure(a)
	}
	for _, item := range items {
		if item.Get("error").Exists() && item.Get("error.type").Str != "index_not_found_exception" {
			return nil, s.failure(es.Answer{Status: a.Status, Body: []byte(item.Raw)})
		}
	}
	return items, nil
}

// documents are the lock documents of items that mget has read.
func (s *Store) documents(ids []string, items []gjson.Result) (docs []*state.Doc, err error) {
	docs = make([]*state.Doc, len(ids))
	for i, id := range ids {
		if items[i].Get("found").Bool() {
			if docs[i], err = state.Parse([]byte(items[i].Get("_source").Raw)); err != nil {
				return nil, fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
			}
		}
		if s.method.Load() == byGuard {
			s.known.note(id, docs[i], numbersOf(items[i]), s.monotonic())
		}
	}
	return docs, nil
}

// Find lists documents that hold leases.
func (s *Store) Find(ctx context.Context, q *lockrouter.Query) (*lockrouter.Page, error) {
	hits, err := s.search(ctx, listed(q))
	if err != nil {
		return nil, err
	}
	page := &lockrouter.Page{}
	for _, hit := range hits {
		d, err := state.Parse([]byte(hit.Get("_source").Raw))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", lockrouter.ErrStore, err)
		}
		page.Docs = append(page.Docs, d)
	}
	if len(page.Docs) == q.Size && q.Size > 0 {
		page.Next = page.Docs[q.Size-1].Lock
	}
	return page, nil
}

// search finds documents: none where there is no index. What was acquired a moment ago has to be among them; the index is small.
func (s *Store) search(ctx context.Context, what map[string]any) ([]gjson.Result, error) {
	switch a, err := s.read(ctx, esapi.IndicesRefreshRequest{Index: []string{s.index}}); {
	case err != nil:
		return nil, err
	case a.IsMissing():
		return nil, nil
	case a.Status == http.StatusNotFound:
		return nil, s.failure(a)
	}
	a, err := s.read(ctx, esapi.SearchRequest{Index: []string{s.index}, Body: jsonBody(what)})
	switch {
	case err != nil:
		return nil, err
	case a.Status != http.StatusOK:
		return nil, s.failure(a)
	}
	return gjson.GetBytes(a.Body, "hits.hits").Array(), nil
}

// listed is the search that a query means.
func listed(q *lockrouter.Query) map[string]any {
	type object = map[string]any
	filter := []object{{"exists": object{"field": "owners"}}}
	if q.Owner != "" {
		filter = append(filter, object{"term": object{"owners": q.Owner}})
	}
	if q.Owners != "" {
		filter = append(filter, object{"prefix": object{"owners": q.Owners}})
	}
	if q.Prefix != "" {
		filter = append(filter, object{"prefix": object{"lock": q.Prefix}})
	}
	if q.Before > 0 {
		filter = append(filter, object{"range": object{"since": object{"lt": q.Before}}})
	}
	if q.After != "" {
		filter = append(filter, object{"range": object{"lock": object{"gt": q.After}}})
	}
	return object{"size": q.Size, "query": object{"bool": object{"filter": filter}}, "sort": []object{{"lock": "asc"}},
		"track_total_hits": false}
}

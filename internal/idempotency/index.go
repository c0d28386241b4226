package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/chore"
	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/upstream"
)

// format is the number of the records' format. A program that is too old for an index refuses it.
const format = 1

// settings are those of the index. Only the end of a record's time is searched.
const settings = `{"settings":{"index":{"number_of_shards":1,"auto_expand_replicas":"0-1","hidden":true}},` +
	`"mappings":{"dynamic":false,"_meta":{"optimist":{"format":%d}},"properties":{"until":{"type":"long"}}}}`

// prepare makes the index, if it isn't there. After the first success it costs nothing.
func (s *Store) prepare(ctx context.Context) error {
	if s.open.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Load() {
		return nil
	}
	for range 2 {
		a, err := s.ask(ctx, esapi.IndicesGetMappingRequest{Index: []string{s.index}}, true)
		switch {
		case err != nil:
			return err
		case a.Status == http.StatusOK:
			if _, err := es.OwnMeta(a.Body, "an index for it", format); err != nil {
				return fmt.Errorf("%w: %s %w", ErrStore, s.o.Index, err)
			}
			s.open.Store(true)
			return nil
		case a.Status != http.StatusNotFound:
			return failure(a)
		}
		a, err = s.ask(ctx, esapi.IndicesCreateRequest{Index: s.index, Body: strings.NewReader(fmt.Sprintf(settings, format))}, false)
		switch {
		case isLost(err): // it is looked for again
		case err != nil:
			return err
		case a.Status != http.StatusOK && gjson.GetBytes(a.Body, "error.type").Str != "resource_already_exists_exception":
			return failure(a)
		}
	}
	return fmt.Errorf("%w: the index %s isn't there", ErrStore, s.o.Index)
}

// ask makes one request with optimist's own credentials. Every error is an ErrStore.
func (s *Store) ask(ctx context.Context, req esapi.Request, reads bool) (es.Answer, error) {
	a, err := es.Ask(ctx, s.o.Upstream, req, es.Way{Caller: es.Caller{Own: true}, Reads: reads, Timeout: s.o.Timeout})
	if err != nil {
		return a, fmt.Errorf("%w: %w", ErrStore, err)
	}
	return a, nil
}

// isLost reports whether a request was sent, and its answer didn't come.
func isLost(err error) bool {
	var failed *upstream.Error
	return errors.As(err, &failed) && failed.Sent
}

func failure(a es.Answer) error {
	return fmt.Errorf("%w: the engine answered %d: %.300s", ErrStore, a.Status, a.Body)
}

// CleanEvery removes expired records until ctx ends, once in that time. Every proxy does; what one has removed the next doesn't find.
func (s *Store) CleanEvery(ctx context.Context, every time.Duration) {
	chore.Every(ctx, every, func(ctx context.Context) {
		if !s.open.Load() {
			return // nobody has used a key here
		}
		switch n, err := s.Clean(ctx); {
		case err != nil && ctx.Err() == nil:
			s.o.Log.Warn("expired records of Idempotency-Keys weren't removed", obs.KeyError, err.Error())
		case n > 0:
			s.o.Log.Info("expired records of Idempotency-Keys were removed", obs.KeyCount, n)
		}
	})
}

// atOnce is how many records are removed with one request.
const atOnce = 1000

// Clean removes expired records, and says how many. One whose key is used again meanwhile stays.
func (s *Store) Clean(ctx context.Context) (removed int, err error) {
	if a, err := s.ask(ctx, esapi.IndicesRefreshRequest{Index: []string{s.index}}, true); err != nil || a.Status != http.StatusOK {
		return 0, errOf(a, err)
	}
	for {
		n, err := s.cleanSome(ctx)
		if removed += n; err != nil || n == 0 {
			return removed, err
		}
	}
}

// cleanSome removes so many as one request can.
func (s *Store) cleanSome(ctx context.Context) (removed int, err error) {
	type object = map[string]any
	what, _ := json.Marshal(object{"size": atOnce, "_source": false, "seq_no_primary_term": true, "track_total_hits": false,
		"query": object{"range": object{"until": object{"lte": s.o.Now().UnixMilli()}}}}) // it always has a form
	a, err := s.ask(ctx, esapi.SearchRequest{Index: []string{s.index}, Body: bytes.NewReader(what)}, true)
	if err != nil || a.Status != http.StatusOK {
		return 0, errOf(a, err)
	}
	var b bytes.Buffer
	for _, hit := range gjson.GetBytes(a.Body, "hits.hits").Array() {
		fmt.Fprintf(&b, `{"delete":{"_id":%s,"if_seq_no":%d,"if_primary_term":%d}}`+"\n", hit.Get("_id").Raw, hit.Get("_seq_no").Int(),
			hit.Get("_primary_term").Int())
	}
	if b.Len() == 0 {
		return 0, nil
	}
	a, err = s.ask(ctx, esapi.BulkRequest{Index: s.index, Refresh: "true", Body: &b}, false) // else they are found again
	if err != nil || a.Status != http.StatusOK {
		return 0, errOf(a, err)
	}
	for _, item := range gjson.GetBytes(a.Body, "items.#.delete.result").Array() {
		if item.Str == "deleted" {
			removed++
		}
	}
	return removed, nil
}

// errOf is what went wrong with a request whose answer isn't the one that was asked for.
func errOf(a es.Answer, err error) error {
	if err != nil {
		return err
	}
	return failure(a)
}

package idempotency

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/obs"
	"optimist/internal/timer"
)

// format is the number of the records' format. A program that is too old for an index refuses it.
const format = 1

// settings are those of the index. Only the end of a record's time is searched.
const settings = `{"settings":{"index":{"number_of_shards":1,"auto_expand_replicas":"0-1","hidden":true}},` +
	`"mappings":{"dynamic":false,"_meta":{"optimist":{"format":%d}},"properties":{"until":{"type":"long"}}}}`

// CleanEvery removes expired records until ctx ends, once in that time. Every proxy does; what one has removed the next doesn't find.
func (s *Store) CleanEvery(ctx context.Context, every time.Duration) {
	timer.Every(ctx, every, func(ctx context.Context) {
		if !s.own.IsThere() {
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
	if a, err := s.own.Ask(ctx, esapi.IndicesRefreshRequest{Index: []string{s.index}}, true); err != nil || a.Status != http.StatusOK {
		return 0, s.own.ErrorOf(a, err)
	}
	for {
		n, err := s.cleanSome(ctx)
		removed += n
		if err != nil || n == 0 {
			return removed, err
		}
	}
}

// cleanSome removes so many as one request can.
func (s *Store) cleanSome(ctx context.Context) (removed int, err error) {
	type object = map[string]any
	what, _ := json.Marshal(object{"size": atOnce, "_source": false, "seq_no_primary_term": true, "track_total_hits": false,
		"query": object{"range": object{"until": object{"lte": s.o.Now().UnixMilli()}}}}) // it always has a form
	a, err := s.own.Ask(ctx, esapi.SearchRequest{Index: []string{s.index}, Body: bytes.NewReader(what)}, true)
	if err != nil || a.Status != http.StatusOK {
		return 0, s.own.ErrorOf(a, err)
	}
	var b bytes.Buffer
	for _, hit := range gjson.GetBytes(a.Body, "hits.hits").Array() {
		fmt.Fprintf(&b, `{"delete":{"_id":%s,"if_seq_no":%d,"if_primary_term":%d}}`+"\n", hit.Get("_id").Raw, hit.Get("_seq_no").Int(),
			hit.Get("_primary_term").Int())
	}
	if b.Len() == 0 {
		return 0, nil
	}
	a, err = s.own.Ask(ctx, esapi.BulkRequest{Index: s.index, Refresh: "true", Body: &b}, false) // else they are found again
	if err != nil || a.Status != http.StatusOK {
		return 0, s.own.ErrorOf(a, err)
	}
	for _, item := range gjson.GetBytes(a.Body, "items.#.delete.result").Array() {
		if item.Str == "deleted" {
			removed++
		}
	}
	return removed, nil
}

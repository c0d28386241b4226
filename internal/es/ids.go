package es

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// The size of a page of hits, and how long the engine keeps the list between two pages.
const (
	hits     = 1000
	scrolled = time.Minute
)

// IDs returns the ids of the documents that a query finds in an index, at most `most` of them, as the caller sees them. It finds writes
// from before the call, if the caller may refresh the index. Errors: ErrNoIndex, ErrForbidden, *StatusError, and those of the upstream.
func (c *Client) IDs(ctx context.Context, caller Caller, index string, query []byte, most int) ([]string, error) {
	// Whoever may search and not refresh finds what was written a second ago.
	if _, _, err := c.do(ctx, caller, esapi.IndicesRefreshRequest{Index: []string{Segment(index)}}); err != nil {
		return nil, err
	}
	body := append(append([]byte(`{"query":`), query...), `,"_source":false,"sort":["_doc"]}`...)
	size := min(hits, most)
	status, page, err := c.do(ctx, caller, esapi.SearchRequest{Index: []string{Segment(index)}, Body: bytes.NewReader(body), Size: &size,
		Scroll: scrolled})
	var ids []string
	for {
		switch {
		case err != nil:
			return nil, err
		case status != http.StatusOK:
			return nil, failure(status, page)
		}
		found := gjson.GetBytes(page, "hits.hits.#._id").Array()
		for _, id := range found {
			ids = append(ids, strings.Clone(id.Str))
		}
		scroll := gjson.GetBytes(page, "_scroll_id").Str
		if len(found) < size || len(ids) >= most || scroll == "" {
			if scroll != "" {
				_, _, _ = c.do(ctx, caller, esapi.ClearScrollRequest{ScrollID: []string{scroll}}) // else it ends by itself
			}
			return ids[:min(len(ids), most)], nil
		}
		status, page, err = c.do(ctx, caller, esapi.ScrollRequest{Body: strings.NewReader(`{"scroll":"1m","scroll_id":"` + scroll + `"}`)})
	}
}

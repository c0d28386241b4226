package es

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
)

// The size of a page of hits, and how long the engine keeps the list between two pages.
const (
	hits     = 1000
	scrolled = time.Minute
)

// Refresh has searches of an index find what was written before the call. Errors: ErrNoIndex, ErrForbidden, *StatusError, and those of the
// upstream.
func (c *Client) Refresh(ctx context.Context, caller Caller, index string) error {
	a, err := c.do(ctx, caller, esapi.IndicesRefreshRequest{Index: []string{Segment(index)}})
	return a.allShards(err)
}

// Find returns the documents that a query finds in an index, at most `most` of them, as the caller sees them: each with the index that it
// is in, and its routing. It finds all of them or is an error: ErrNoIndex, ErrForbidden, *StatusError, and those of the upstream.
func (c *Client) Find(ctx context.Context, caller Caller, index string, query []byte, most int) (found []doc.Ref, err error) {
	body := append(append([]byte(`{"query":`), query...), `,"_source":false,"sort":["_doc"]}`...)
	size, partial := min(hits, most), false
	req := esapi.SearchRequest{Index: []string{Segment(index)}, Body: bytes.NewReader(body), Size: &size, AllowPartialSearchResults: &partial}
	if most > size {
		req.Scroll = scrolled
	}
	page, err := c.do(ctx, caller, req)
	for {
		if err := page.allShards(err); err != nil {
			return nil, err
		}
		n := len(found)
		gjson.GetBytes(page.Body, "hits.hits").ForEach(func(_, hit gjson.Result) bool {
			ref := doc.Ref{Index: hit.Get("_index").Str, Routing: hit.Get("_routing").Str, ID: hit.Get("_id").Str}
			found = append(found, ref.Clone())
			return true
		})
		scroll := gjson.GetBytes(page.Body, "_scroll_id").Str
		if len(found)-n < size || len(found) >= most || scroll == "" {
			if scroll != "" {
				_, _ = c.do(ctx, caller, esapi.ClearScrollRequest{ScrollID: []string{scroll}}) // else it ends by itself
			}
			return found[:min(len(found), most)], nil
		}
		page, err = c.do(ctx, caller, esapi.ScrollRequest{Body: strings.NewReader(`{"scroll":"1m","scroll_id":"` + scroll + `"}`)})
	}
}

// allShards is the error of an answer, or of one that isn't of all shards.
func (a *Answer) allShards(err error) error {
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return a.failure()
	case gjson.GetBytes(a.Body, "_shards.failed").Int() > 0:
		return &StatusError{Status: http.StatusServiceUnavailable, Body: a.Body}
	}
	return nil
}

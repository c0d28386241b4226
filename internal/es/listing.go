package es

import (
	"context"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// listFilter keeps the answer small.
var listFilter = []string{"*.settings.index.uuid", "*.settings.index.history.uuid", "*.aliases", "*.data_stream"}

// Listing is what the indices of an expression are, by their names.
type Listing map[string]Listed

// Listed is one index.
type Listed struct {
	// ID tells the index from one of the same name that is made anew, or restored.
	ID string
	// Names are its aliases and the data stream that it backs, each with its settings, for comparisons only.
	Names map[string]string
}

// List tells what the indices of an expression are. The expression is one of the engine's, as it stands in a path: names and
// patterns with commas between them, percent-encoded. Indices that aren't there, or that the caller may not see, are left out.
// Errors: ErrForbidden, *StatusError, and those of the upstream.
func (c *Client) List(ctx context.Context, caller Caller, expression string) (Listing, error) {
	yes := true
	a, err := c.do(ctx, caller, esapi.IndicesGetRequest{Index: []string{expression}, FilterPath: listFilter,
		IgnoreUnavailable: &yes, AllowNoIndices: &yes, ExpandWildcards: "all"})
	if err != nil {
		return nil, err
	}
	list := Listing{}
	if a.IsMissing() {
		return list, nil
	}
	if a.Status != http.StatusOK || !gjson.ParseBytes(a.Body).IsObject() {
		return nil, a.failure()
	}
	gjson.ParseBytes(a.Body).ForEach(func(k, v gjson.Result) bool {
		index := Listed{ID: identity(v.Get("settings.index")), Names: map[string]string{}}
		v.Get("aliases").ForEach(func(k, v gjson.Result) bool {
			index.Names[k.String()] = v.Raw
			return true
		})
		if stream := v.Get("data_stream"); stream.Exists() {
			index.Names[stream.String()] = ""
		}
		list[k.String()] = index
		return true
	})
	return list, nil
}

// identity tells an index from one of the same name that was made anew. An index that is restored from a snapshot over a closed
// one keeps that one's UUID, and gets a history of its own.
func identity(settings gjson.Result) string {
	return settings.Get("uuid").String() + settings.Get("history.uuid").String()
}

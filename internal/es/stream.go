package es

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// ofStream is the backing index to which a write by the name goes. all are the backing indices for which the name stands: those of one
// data stream, or, behind an alias, of several. An alias of several streams without one for writing is ErrNoIndex.
func (c *Client) ofStream(ctx context.Context, caller Caller, name string, all []Index) (Index, error) {
	var streams []string
	for i := range all {
		if stream := all[i].DataStream; stream != "" && !slices.Contains(streams, stream) {
			streams = append(streams, stream)
		}
	}
	stream, aliases := streams[0], gjson.Result{}
	if several := len(streams) > 1; several || c.StreamAliases != nil && c.StreamAliases() {
		var err error
		if aliases, err = c.streamAliases(ctx, caller, streams); err != nil {
			return Index{}, err
		}
		writes := func(stream string) bool {
			return aliases.Get(gjsonKey(stream) + ".aliases." + gjsonKey(name) + ".is_write_index").Bool()
		}
		if n := slices.IndexFunc(streams, writes); n >= 0 {
			stream = streams[n]
		} else if several {
			return Index{}, ErrNoIndex
		}
	}
	// The last backing index is the one written to; the engine lists them by name, which grows.
	var last Index
	for i := range all {
		if all[i].DataStream == stream && all[i].Name > last.Name {
			last = all[i]
		}
	}
	aliases.Get(gjsonKey(stream) + ".aliases").ForEach(func(alias, _ gjson.Result) bool {
		last.Aliases = append(last.Aliases, alias.String())
		return true
	})
	return last, nil
}

// streamAliases are the aliases of data streams, as Elasticsearch tells them: what it tells of an index has only its own. OpenSearch
// has no aliases of data streams, and finds nothing by such a name.
func (c *Client) streamAliases(ctx context.Context, caller Caller, streams []string) (gjson.Result, error) {
	names := make([]string, len(streams))
	for i, stream := range streams {
		names[i] = Segment(stream)
	}
	a, err := c.do(ctx, caller, esapi.IndicesGetAliasRequest{Index: []string{strings.Join(names, ",")}})
	if err == nil && a.Status != http.StatusOK {
		err = a.failure()
	}
	switch {
	case err == nil:
		return gjson.ParseBytes(a.Body), nil
	case IsAnswer(err):
		return gjson.Result{}, nil
	}
	return gjson.Result{}, err
}

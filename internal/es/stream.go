package es

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// ofStream is the backing index to which a write by the name goes. all are the backing indices for which the name stands: those of one
// data stream, or, behind an alias, of several. An alias of several streams without one for writing is ErrNoIndex.
func (c *Client) ofStream(ctx context.Context, caller Caller, name string, all []Index) (Index, error) {
	streams := streamsOf(all)
	stream, aliases := streams[0], streamAliases(nil)
	if several := len(streams) > 1; several || c.StreamAliases != nil && c.StreamAliases() {
		var err error
		aliases, err = c.streamAliases(ctx, caller, streams)
		if err != nil && (several || !errors.Is(err, ErrForbidden)) { // who may not ask has a lock count by the other names
			return Index{}, err
		}
		writes := func(stream string) bool { return aliases.of(stream, name).Get("is_write_index").Bool() }
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
	if len(streams) > 1 {
		last.Narrow = aliases.filter(name)
	} else if name != all[0].Name && name != stream { // an alias, of whose filter the engine says nothing here
		last.Narrow, last.Wide = true, stream
	}
	own := last.Aliases
	for _, alias := range aliases.names(stream) {
		if !slices.Contains(own, alias) {
			last.Aliases = append(last.Aliases, alias)
		}
	}
	return last, nil
}

// streamsOf are the data streams that indices back, each once.
func streamsOf(all []Index) (streams []string) {
	for i := range all {
		if stream := all[i].DataStream; stream != "" && !slices.Contains(streams, stream) {
			streams = append(streams, stream)
		}
	}
	return streams
}

// streamAliases are the aliases of data streams, by the names of the streams, as the engine describes them.
type streamAliases map[string]gjson.Result

// of is the description of an alias of a stream.
func (a streamAliases) of(stream, alias string) gjson.Result { return a[stream].Get(gjsonKey(alias)) }

// names are the aliases of a stream.
func (a streamAliases) names(stream string) (names []string) {
	a[stream].ForEach(func(alias, _ gjson.Result) bool {
		names = append(names, alias.String())
		return true
	})
	return names
}

// filter reports whether an alias has a filter in one of the streams.
func (a streamAliases) filter(alias string) bool {
	for stream := range a {
		if a.of(stream, alias).Get("filter").Exists() {
			return true
		}
	}
	return false
}

// longestNames bounds the names in one question. An engine takes 4096 bytes for a request's first line.
const longestNames = 2048

// streamAliases asks for the aliases of data streams, as Elasticsearch tells them: what it tells of an index has only its own. OpenSearch
// has no aliases of data streams, and finds nothing by such a name.
func (c *Client) streamAliases(ctx context.Context, caller Caller, streams []string) (streamAliases, error) {
	all := make(streamAliases, len(streams))
	for len(streams) > 0 {
		names := Segment(streams[0])
		for streams = streams[1:]; len(streams) > 0; streams = streams[1:] {
			more := names + "," + Segment(streams[0])
			if len(more) > longestNames {
				break
			}
			names = more
		}
		a, err := c.do(ctx, caller, esapi.IndicesGetAliasRequest{Index: []string{names}})
		switch {
		case err != nil:
			return nil, err
		case a.IsMissing(), a.Status == http.StatusMethodNotAllowed:
			continue
		case a.Status != http.StatusOK:
			return nil, a.failure()
		}
		gjson.ParseBytes(a.Body).ForEach(func(stream, of gjson.Result) bool {
			all[stream.String()] = of.Get("aliases")
			return true
		})
	}
	return all, nil
}

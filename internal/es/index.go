package es

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
)

// Index is what optimist has to know of an index before it merges into its documents.
type Index struct {
	Name       string   // the concrete index that the asked name stands for in a write
	UUID       string   // tells an index from one of the same name that was made anew, or restored from a snapshot
	DataStream string   // the data stream that the index backs, if any
	Routing    string   // where the asked name is an alias that routes: writes and gets through it, but not by Name, get this routing
	Aliases    []string // of the index and of its data stream (see Client.StreamAliases), in no order; nobody changes the slice
	Shared     bool     // reads by the asked name may find documents of other indices, too
	Narrow     bool     // searches by the asked name, an alias, may not find all documents of its indices: it has a filter, or routes
	Wide       string   // if Narrow: the name by which they find all of them; "": no one name does

	// OneShard: no routing leads to another document.
	OneShard bool
	// MustRoute: the engine finds no document without a routing.
	MustRoute bool
	// NoSeqNo: the index has no sequence numbers; a guard is refused with 400.
	NoSeqNo bool
	// Partial: _source isn't kept whole (disabled, filtered, or made up from other fields); fetching a document and writing it
	// back would lose fields.
	Partial bool
	// Pipeline: an ingest pipeline changes what is written; a merged document would go through it twice.
	Pipeline bool
}

// indexFilter keeps the answer small: a mapping can have megabytes.
var indexFilter = []string{
	"*.settings.index", "*.mappings._source", "*.mappings.*._source", "*.mappings._routing", "*.mappings.**.type", "*.aliases",
	"*.data_stream",
}

// ResolveIndex asks what the name (an index, an alias, a data stream, a date expression; decoded) stands for. Errors: ErrNoIndex,
// ErrForbidden, *StatusError, and those of the upstream. An alias of several indices without one for writing is ErrNoIndex: the
// engine refuses writes to it. So is a name that no index can have, for which the engine would show something else.
func (c *Client) ResolveIndex(ctx context.Context, caller Caller, name string) (Index, error) {
	if name == "" || name[0] == '_' {
		return Index{}, ErrNoIndex
	}
	req := esapi.IndicesGetRequest{Index: []string{Segment(name)}, FilterPath: indexFilter}
	a, err := c.do(ctx, caller, req)
	if err != nil {
		return Index{}, err
	}
	if a.Status != http.StatusOK || !gjson.ParseBytes(a.Body).IsObject() {
		return Index{}, a.failure()
	}
	var all []Index
	var chosen Index
	narrow, described := false, true
	gjson.ParseBytes(a.Body).ForEach(func(k, v gjson.Result) bool {
		ix := indexOf(k.String(), v)
		described = described && ix.UUID != ""
		alias := v.Get("aliases." + gjsonKey(name))
		ix.Routing = alias.Get("index_routing").String()
		narrow = narrow || alias.Get("filter").Exists() || alias.Get("search_routing").Exists()
		if alias.Get("is_write_index").Bool() {
			chosen = ix
		}
		all = append(all, ix)
		return true
	})
	switch {
	case !described || len(all) == 0: // a gateway's JSON: its members aren't indices
		return Index{}, a.failure()
	case chosen.Name != "":
	case len(all) > 0 && all[0].DataStream != "":
		if chosen, err = c.ofStream(ctx, caller, name, all); err != nil {
			return Index{}, err
		}
	case len(all) == 1:
		chosen = all[0]
	default:
		return Index{}, ErrNoIndex
	}
	chosen.Shared = len(all) > 1
	if narrow {
		chosen.Narrow = true
		if !chosen.Shared && chosen.Wide == "" {
			chosen.Wide = chosen.Name
		}
	}
	return chosen, nil
}

func indexOf(name string, v gjson.Result) Index {
	s := v.Get("settings.index")
	ix := Index{Name: name, UUID: identity(s), DataStream: v.Get("data_stream").String()}
	v.Get("aliases").ForEach(func(alias, _ gjson.Result) bool {
		ix.Aliases = append(ix.Aliases, alias.String())
		return true
	})
	if ix.DataStream == "" && strings.HasPrefix(name, ".ds-") {
		ix.DataStream = strings.TrimPrefix(name, ".ds-")
	}
	ix.OneShard = s.Get("number_of_shards").String() == "1"
	ix.MustRoute = v.Get("mappings._routing.required").Bool()
	ix.NoSeqNo = s.Get("disable_sequence_numbers").Bool()
	ix.Pipeline = Pipeline(s) != ""
	ix.Partial = Partial(s, v.Get("mappings")) != ""
	return ix
}

// Pipeline names the setting by which an ingest pipeline changes what is written to an index, and the pipeline; "" if none does.
func Pipeline(settings gjson.Result) string {
	for _, key := range []string{"default_pipeline", "final_pipeline"} {
		if p := settings.Get(key).String(); p != "" && p != "_none" {
			return key + " " + p
		}
	}
	return ""
}

// Partial says why fetching a document of an index may give less, or other bytes, than were written; "" if it gives all.
func Partial(settings, mappings gjson.Result) string {
	mode := settings.Get("mapping.source.mode").String()
	switch index := settings.Get("mode").String(); {
	case mode == "synthetic", mode == "disabled":
		return mode + " _source"
	case (index == "time_series" || index == "logsdb") && mode != "stored":
		return "synthetic _source (mode " + index + ")"
	case settings.Get("derived_source.enabled").Bool():
		return "derived _source"
	}
	why := filtered(mappings.Get("_source"))
	mappings.ForEach(func(_, v gjson.Result) bool { // mapping types of Elasticsearch 6
		if why == "" && v.IsObject() {
			why = filtered(v.Get("_source"))
		}
		return why == ""
	})
	if why == "" && hidesVectors(settings) && hasVector(mappings.Get("properties")) {
		return "_source without vectors"
	}
	return why
}

// hidesVectors reports whether reads of the index may leave vectors out of _source: Elasticsearch does so from 9.2 on, in indices
// that it made and whose settings don't say otherwise. A merge would write the document back without them. Index versions of
// Elasticsearch 9 are 9,xxx,xxx; OpenSearch's are above 134 million.
func hidesVectors(settings gjson.Result) bool {
	created := settings.Get("version.created").Int()
	if created < 9_000_000 || created >= 100_000_000 {
		return false
	}
	exclude := settings.Get("mapping.exclude_source_vectors")
	return !exclude.Exists() || exclude.Bool()
}

// hasVector reports whether one of the fields, or of those below them, is a vector.
func hasVector(fields gjson.Result) (found bool) {
	fields.ForEach(func(_, field gjson.Result) bool {
		switch field.Get("type").String() {
		case "dense_vector", "sparse_vector", "rank_vectors", "semantic_text":
			found = true
		default:
			found = hasVector(field.Get("properties"))
		}
		return !found
	})
	return found
}

// filtered says what the _source of a mapping leaves out, or "".
func filtered(source gjson.Result) string {
	if on := source.Get("enabled"); on.Exists() && !on.Bool() {
		return "_source disabled"
	}
	if mode := source.Get("mode").String(); mode == "synthetic" || mode == "disabled" {
		return mode + " _source"
	}
	var parts []string
	for _, key := range []string{"includes", "excludes"} {
		if len(source.Get(key).Array()) > 0 {
			parts = append(parts, key)
		}
	}
	if len(parts) > 0 {
		return "_source " + strings.Join(parts, " and ")
	}
	return ""
}

// gjsonKey escapes a name for use as one key of a gjson path.
func gjsonKey(name string) string {
	b := make([]byte, 0, len(name)+8)
	for i := range len(name) {
		if strings.IndexByte(`\.*?|#@!{}`, name[i]) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, name[i])
	}
	return string(b)
}

// SeesWhole reports whether the caller's view of the index's documents is unfiltered. Under document or field level security the
// engines refuse _update before they look at anything, because it would write the filtered document back; so a document that
// isn't there is updated: a 404 says that the update was let through, anything else that it may not have been. Nothing is written
// in either case. An engine that couldn't say is an error, and so is an index that takes no writes now, or a name that takes none.
//
// The engine makes an index that an update doesn't find, and this one may just have been deleted: so the update demands an alias,
// which is looked at after the security and before the index. For an index's own name that alone is the 404.
//
// The routing is that of a document at hand: an index may demand one.
func (c *Client) SeesWhole(ctx context.Context, caller Caller, index, routing string) (bool, error) {
	alias := true
	req := esapi.UpdateRequest{
		Index: Segment(index), DocumentID: "optimist-probe-" + rand.Text(), Routing: routing, RequireAlias: &alias,
		Body: strings.NewReader(`{"doc":{}}`),
	}
	a, err := c.do(ctx, caller, req)
	if err != nil {
		return false, err
	}
	if a.Status == http.StatusNotFound && letThrough(a.Body) {
		return true, nil
	}
	failed := &StatusError{a.Status, a.Body, a.Challenge} // of the credentials a 403 says nothing here
	kind := gjson.GetBytes(a.Body, "error.type").String()
	// OpenSearch's security refuses it with a 500.
	refused := a.Status == http.StatusInternalServerError && kind == "security_exception"
	busy := a.Status >= 500 || a.Status == http.StatusTooManyRequests || takesNoWrites(a.Body)
	if !refused && busy || IsPage(failed) && kind == "" {
		return false, failed
	}
	return false, nil
}

// letThrough reports whether a 404 to an update comes from the engine's own search for the document or the alias. The engine has
// no error type of its own for the alias; the parameter's name is part of the reason.
func letThrough(body []byte) bool {
	why := gjson.GetBytes(body, "error")
	switch why.Get("type").String() {
	case "document_missing_exception":
		return true
	case "index_not_found_exception":
		return strings.Contains(why.Get("reason").String(), "require_alias")
	}
	return false
}

// BlockType is the type of the error by which an engine refuses a request because its index, or the cluster, is blocked: by an operator
// (403), or because a disk is full (429). Until somebody makes room, trying again doesn't help.
const BlockType = "cluster_block_exception"

// takesNoWrites reports whether the engine refuses a request because of the index: it is blocked or closed, or the name is an alias of
// several indices, none of which is the one that writes go to. That proves nothing of the caller's view: an engine may look for it before
// its security does.
func takesNoWrites(body []byte) bool {
	switch gjson.GetBytes(body, "error.type").String() {
	case BlockType, "index_closed_exception", "illegal_argument_exception":
		return true
	}
	return false
}
